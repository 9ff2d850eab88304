# Everything a contributor runs. Each target sets up what it needs, from a clean clone on.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PLAIN := $(VENV)/.plain
export BENCH_PEERS ?= build/peers

.PHONY: quickstart setup lint types test interop docs clean
.PHONY: bench bench-peers bench-scale bench-page bench-setup

quickstart: $(PLAIN)
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/quickstart.sh

setup: $(STAMP)

SOURCES := pyproject.toml setup.py $(wildcard broker/protocol/native/*)

$(STAMP): EXTRAS := [spark,web,test]
$(STAMP) $(PLAIN): $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "pylogctl needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 9; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.$(EXTRAS)'
	touch $@ $(PLAIN)

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

# What reads the messages in logs to keep them safe must do so with either codec: with the one that
# is built, then the plain one.
DURABILITY := tests/unit/broker/log \
	$(addprefix tests/integration/broker/log/test_, manager.py verify_files.py) \
	$(addprefix tests/integration/process/test_, \
		disk_full.py kill.py shortened_log.py terms.py unreadable.py)

# Files of tests run side by side, each as a whole: what its tests share is started once. They often
# wait for other processes, so that three of them keep two processors busy.
TEST_PROCESSES ?= 3
# They start thousands of processes, each of which would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile

test: lint types tests durability

.PHONY: tests durability
tests: $(STAMP)
	$(PYTEST)

durability: $(STAMP)
	PYLOGCTL_CODEC=python $(PYTEST) $(DURABILITY)

# Seeds from one on, the same each time, so that a change is judged by itself; `make simulate`
# searches with others.
seeds-%: $(STAMP)
	$(BIN)/python -m tests.simulation --first $* --runs 1100 --seconds 150

# Else each process of the tests would compile all of their modules.
.PHONY: compiled
compiled: $(STAMP)
	$(BIN)/python -m pytest --collect-only -qq

# Clients and brokers of other makes, from their registries; see docs/interop.md.
INTEROP ?= build/interop
interop: $(STAMP)
	$(BIN)/python -m tests.interop.fetch $(INTEROP)
	PYLOGCTL_PEERS=$(INTEROP) $(BIN)/python -m pytest tests/interop

# The codec's engines held against each other, the compiled one built with sanitizers.
.PHONY: fuzz
FUZZ_SECONDS ?= 120
FUZZ_SEED ?= 0
FUZZ_BUILD := build/fuzz/_codec.abi3.so

$(FUZZ_BUILD): $(wildcard broker/protocol/native/*) | $(STAMP)
	mkdir -p $(@D)
	$(CC) -g -O1 -fno-omit-frame-pointer -Wall -Wextra -Werror -fsanitize=address,undefined \
		-fno-sanitize-recover=all -fPIC -shared -o $@ \
		-I$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
		$(filter %.c,$^)

fuzz: $(FUZZ_BUILD)
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so)" PYTHONMALLOC=malloc \
		ASAN_OPTIONS=detect_leaks=0 \
		$(BIN)/python -m fuzz --build $(<D) --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

# Clusters of processes with everything on that keeps strangers out: all their tests, and failures in
# turn, as often as ROUNDS says.
.PHONY: closed chaos
closed: $(STAMP)
	$(PYTEST) --closed tests/integration/cluster tests/integration/replication

ROUNDS ?= 20
chaos: $(STAMP)
	$(BIN)/python -m pytest --closed --rounds $(ROUNDS) --timeout 0 -s \
		tests/integration/replication/test_chaos.py

# Clusters in simulated time, with faults, from one random seed each; CONTRIBUTING.md tells more.
.PHONY: simulate
SECONDS ?= 120

simulate: $(STAMP)
	$(BIN)/python -m tests.simulation --seconds $(SECONDS)

bench: $(STAMP)
	mkdir -p build
	$(BIN)/python -m bench --output build/bench.json

bench-peers: $(STAMP)
	mkdir -p build
	$(BIN)/python -m bench limits peers --output build/bench-peers.json

bench-scale: $(STAMP)
	mkdir -p build
	$(BIN)/python -m bench scale --output build/bench-scale.json

# docs/performance.md with the figures of the runs there are.
bench-page: $(STAMP)
	$(BIN)/python -m bench.page $(wildcard build/bench*.json)

# What other brokers need beside their Debian packages; see docs/performance.md.
bench-setup:
	test -x $(BENCH_PEERS)/venv/bin/python || $(PYTHON) -m venv $(BENCH_PEERS)/venv
	$(BENCH_PEERS)/venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/peers.txt
	mvn --quiet --batch-mode --file bench/kafka.xml dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(abspath $(BENCH_PEERS))/kafka

# What a plain installation shows in its first minute, for the README.
.PHONY: terminal
terminal: $(STAMP)
	$(PYTHON) -m venv --clear build/plain
	build/plain/bin/python -m pip install --quiet --disable-pip-version-check .
	PATH="$(CURDIR)/build/plain/bin:$$PATH" $(BIN)/python -m tests.support.terminal docs/terminal.svg

# The pages of `pylogctl web` in its documentation, by an installed Chromium.
.PHONY: screenshots
screenshots: $(STAMP)
	$(BIN)/python -m tests.support.screenshots docs/web

# What is written from the code, and in the repository: man/, completions/, schemas, docs/operations/metrics.md.
.PHONY: generated site
generated: $(STAMP)
	$(BIN)/python -m docs.docgen
	$(BIN)/python -m docs.metrics_page
	$(BIN)/python -m monitoring.dashboard

# The pages in build/site; what builds them reads the product, and does not install it.
DOCS_VENV := build/docs
DOCS_EXTRA := import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")

$(DOCS_VENV)/.installed: pyproject.toml
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(PYTHON) -c '$(DOCS_EXTRA)' > $(@D)/requirements.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $(@D)/requirements.txt
	touch $@

site: $(DOCS_VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

docs: generated site

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

"""`pipeline load` as a command: what is wrong shows before Spark is started."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from broker.protocol.envelope import Envelope
from broker.server.broker import Broker
from broker.spark.local import LocalProcesses
from pylogctl.cli.environment import ExitStatus
from pylogctl.pipeline.options import SparkChoice
from tests.support.command_line import Invoke
from tests.support.spark_session import publish

pytest.importorskip("pyspark")
pq = pytest.importorskip("pyarrow.parquet")

Load = Callable[..., tuple[int, str, str]]


@pytest.fixture
def load(invoke: Invoke, running_broker: Broker, tmp_path: Path) -> Load:
    """Run `pipeline load`, without Spark by default; returns status, stdout and stderr."""

    def run(*args: str, dry: bool = True, local: bool = True) -> tuple[int, str, str]:
        where = ("--broker", f"127.0.0.1:{running_broker.port}", "--to", str(tmp_path / "lake"))
        flags = [flag for flag, is_set in (("--dry-run", dry), ("--local", local)) if is_set]
        result = invoke("pipeline", "load", *where, *args, *flags)
        return result.status, result.text, result.stderr

    return run


def test_plan_when_dry_then_shows_ranges_and_makes_nothing(
    load: Load, running_broker: Broker, tmp_path: Path
) -> None:
    publish(running_broker, "events", [b"0000"] * 50)

    status, text, _ = load("events", "--output", "csv", "--columns", "topic,start,end,tasks")

    assert (status, text.split()) == (0, ["topic,start,end,tasks", "events,0,700,1"])
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("bounds", "start", "end"),
    [
        (("--from", "28"), "28", "700"),
        (("--from", "-2", "--until", "end"), "672", "700"),
        (("--until", "0-0=140"), "0", "140"),
        (("--from", "+56B", "--until", "~141"), "56", "154"),
        (("--from", "start", "--until", "@2001-01-01"), "0", "0"),
    ],
)
def test_plan_when_bounds_are_given_then_they_are_those_of_consume(
    load: Load, running_broker: Broker, bounds: tuple[str, ...], start: str, end: str
) -> None:
    publish(running_broker, "events", [b"0000"] * 50)

    status, text, _ = load("events", *bounds, "--output", "csv", "--columns", "start,end")

    assert (status, text.split()[1:]) == (0, [f"{start},{end}"])


def test_load_when_there_is_nothing_then_spark_is_not_started(
    load: Load, running_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylogctl.pipeline.spark.open_spark", None)
    publish(running_broker, "events", [b"x"])

    assert load("events", "--until", "start", dry=False, local=False)[0] == 0


@pytest.mark.parametrize(
    ("words", "master", "is_on_spark"),
    [
        ((), None, True),
        (("--master", "local[2]"), None, True),
        (("--local",), None, False),
        (("--local",), "local[2]", False),
    ],
)
def test_load_when_not_told_to_be_local_then_runs_on_spark(
    load: Load,
    running_broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    master: str | None,
    is_on_spark: bool,
) -> None:
    opened = []

    @contextmanager
    def open_spark(_: object, choice: SparkChoice) -> Iterator[LocalProcesses]:
        opened.append(choice)
        yield LocalProcesses(1)

    monkeypatch.setattr("pylogctl.pipeline.spark.open_spark", open_spark)
    if master is not None:
        monkeypatch.setenv("PYLOGCTL_MASTER", master)
    publish(running_broker, "events", [b"x"])

    assert load("events", *words, dry=False, local=False)[0] == 0
    assert len(opened) == is_on_spark


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--master", "local[2]"), "--master"),
        (("--spark-conf", "spark.driver.memory=2g"), "--spark-conf"),
    ],
)
def test_load_when_local_and_spark_is_named_then_is_refused(
    load: Load, words: tuple[str, ...], named: str
) -> None:
    status, _, stderr = load("events", *words)

    assert status == ExitStatus.USAGE
    assert named in stderr
    assert "cannot be used with --local" in stderr


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        ((), ExitStatus.USAGE, "name topics, or give --include"),
        (("a", "--include", "b"), ExitStatus.USAGE, "either name topics or give --include"),
        (("nothing",), ExitStatus.NOT_FOUND, "topic 'nothing' not found"),
        (("events", "--path", "x"), ExitStatus.USAGE, "--path reads files"),
        (("events", "--from", "5"), ExitStatus.USAGE, "5 is not a message boundary"),
        (("events", "--from", "0:14"), ExitStatus.USAGE, "names no single position"),
        (("events", "--from", "stored"), ExitStatus.USAGE, "needs a consumer group"),
        (("events", "--date-regex", "("), ExitStatus.CONFIG, "is no regular expression"),
        (("events", "--avro-schemas", "none"), ExitStatus.CONFIG, "is not a directory of schemas"),
    ],
)
def test_load_when_something_is_wrong_then_says_so_in_a_line(
    load: Load, running_broker: Broker, args: tuple[str, ...], status: ExitStatus, words: str
) -> None:
    publish(running_broker, "events", [b"0000"] * 5)

    found, _, stderr = load(*args, dry=False)

    assert found == status
    assert words in stderr.splitlines()[0]


def test_load_when_the_directory_has_something_else_then_is_a_conflict(
    load: Load, running_broker: Broker, tmp_path: Path
) -> None:
    publish(running_broker, "events", [b"x"])
    (tmp_path / "lake" / "loads" / "load=0000000001").mkdir(parents=True)

    status, _, stderr = load("events")

    assert status == ExitStatus.CONFLICT
    assert "load=0000000001 has no _offsets.json: it is not a load" in stderr


@pytest.mark.parametrize(
    ("local", "package", "name"),
    [(False, "pyspark", "PySpark"), (False, "pyarrow", "PyArrow"), (True, "pyarrow", "PyArrow")],
)
def test_load_when_a_package_is_missing_then_says_how_to_install_it_and_what_needs_less(
    load: Load, monkeypatch: pytest.MonkeyPatch, local: bool, package: str, name: str
) -> None:
    def find(wanted: str) -> object:
        return None if wanted == package else importlib.util.find_spec(wanted)

    monkeypatch.setattr("broker.spark.runtime.requirements.find_spec", find)

    status, _, stderr = load("events", local=local)

    assert status == ExitStatus.CONFIG
    first, *others = stderr.splitlines()
    assert first == f"error: {name} is not installed; try: pip install 'pylogctl[spark]'"
    assert others == ([] if local else ["  --local needs only PyArrow, no PySpark and no Java"])


def test_files_when_given_by_path_then_are_planned(
    invoke: Invoke, tmp_path: Path, running_broker: Broker
) -> None:
    publish(running_broker, "events", [b"0000"] * 50)
    data = str(running_broker.config.data_dir)
    to = ("--to", str(tmp_path / "lake"), "--dry-run", "--local")

    result = invoke("pipeline", "load", "--path", data, *to, "--output", "csv")
    refused = invoke("pipeline", "load", "--path", data, *to, "--from", "-5")

    assert "events,0-0,0,700" in result.text
    assert refused.status == ExitStatus.USAGE


def damage(running_broker: Broker) -> None:
    """Have a message with a wrong CRC in the middle of a topic."""
    publish(running_broker, "events", [b"0000"] * 50)
    (path,) = Path(running_broker.config.data_dir).glob("events_0/*.pylog")
    with path.open("r+b") as file:
        file.seek(14 * 20 + 13)
        file.write(b"1")


def test_damage_when_loaded_then_is_a_line_or_is_counted(
    load: Load, running_broker: Broker
) -> None:
    damage(running_broker)

    failed = load("events", dry=False)
    skipped = load("events", "--corrupt", "skip", "--output", "jsonl", dry=False)

    assert failed[0] == ExitStatus.CORRUPT
    assert failed[2].splitlines() == [
        "error: events[0-0]: the message at 280 is invalid: its payload does not match its CRC",
        "  --corrupt skip leaves it out",
    ]
    assert skipped[0] == ExitStatus.OK
    record = json.loads(skipped[1].splitlines()[0])
    assert (record["messages"], record["left_out_bytes"]) == (49, 14)
    assert "corrupt, 14 bytes from 280" in skipped[2]


def test_load_when_from_a_point_then_loads_are_taken_back(
    load: Load, running_broker: Broker
) -> None:
    for _ in range(3):
        publish(running_broker, "events", [b"0000"] * 10)
        assert load("events", dry=False)[0] == ExitStatus.OK

    status, text, stderr = load("events", "--from", "280", "--output", "csv", dry=False)

    assert status == ExitStatus.OK
    assert text.splitlines()[1].startswith("3,events,0-0,280,420,10,")
    assert "load 3: retired, and loaded again" in stderr


def test_compact_when_loads_are_small_then_joins_them(
    load: Load, running_broker: Broker, invoke: Invoke, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    for _ in range(3):
        publish(running_broker, "events", [b"0000"] * 10)
        assert load("events", dry=False)[0] == ExitStatus.OK

    plan = invoke("pipeline", "compact", lake, "--local", "--dry-run", "--output", "jsonl")
    done = invoke("pipeline", "compact", lake, "--local", "--output", "csv")
    again = invoke("pipeline", "compact", lake)
    missing = invoke("pipeline", "compact", str(tmp_path / "none"), "--local")

    (group,) = [json.loads(line) for line in plan.text.splitlines()]
    assert (group["files"], group["messages"]) == (3, 30)
    assert done.text.splitlines()[1].startswith("3,events,0-0,0,420,30,")
    assert "load 3: 3 loads with 3 files in one with 1" in done.stderr
    assert (again.status, again.stderr) == (ExitStatus.OK, "nothing to join\n")
    assert missing.status == ExitStatus.NOT_FOUND


@pytest.mark.parametrize("file_format", ["parquet", "json"])
def test_load_when_messages_have_envelopes_then_a_column_has_them_on_request(
    load: Load, running_broker: Broker, tmp_path: Path, file_format: str
) -> None:
    wrapped = Envelope(1_763_625_600_250_001, "web1", 15, 7).wrap(b"wrapped")
    publish(running_broker, "events", [b"plain", wrapped])

    status, _, err = load("events", "--envelope", "--format", file_format, dry=False)

    assert status == ExitStatus.OK, err
    (path,) = (tmp_path / "lake").glob(f"loads/*/*/*/*.{file_format}")
    if file_format == "json":
        plain, found = map(json.loads, path.read_text().splitlines())
        assert (plain["value"], found["value"]) == ("plain", "wrapped")
        assert found["envelope"]["timestamp"] == "2025-11-20T08:00:00.250001+00:00"
    else:
        plain, found = pq.ParquetFile(path).read().to_pylist()
        assert (plain["value"], found["value"]) == (b"plain", b"wrapped")
        assert found["envelope"]["timestamp"] == datetime(2025, 11, 20, 8, 0, 0, 250_001, UTC)
    assert plain["envelope"] is None
    named = {name: found["envelope"][name] for name in ("host", "producer", "sequence")}
    assert named == {"host": "web1", "producer": "0000000f", "sequence": 7}
    status, _, err = load("events", "--format", file_format, dry=False)
    assert status == ExitStatus.CONFLICT, err

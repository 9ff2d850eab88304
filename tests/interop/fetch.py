"""Fetches the peers of the interop tests: `python -m tests.interop.fetch DIRECTORY`.

Each comes at a pinned version from its language's registry, through that language's own client.
What cannot be had is said, and its tests are skipped; the exit status is 0 all the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

_SOURCES = Path(__file__).parent / "peers"
_QUIET_NPM = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]


def fetch_jars(home: Path) -> None:
    """Fetch jars with Maven."""
    _run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], home)


def compile_jafka(home: Path) -> None:
    """Compile the program that drives Jafka."""
    _run(["javac", "-nowarn", "-cp", "lib/*", "Peer.java"], home)


def fetch_python2(home: Path) -> None:
    """Fetch samsa, pykafka and brod with the pip of Python 2.7."""
    python = os.environ.get("PYTHON2", "python2.7")
    where = subprocess.check_output([python, "-c", "import sys; print(sys.executable)"], text=True)
    (home / "python").symlink_to(where.strip())
    pip = ["./python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    # brod needs ZooKeeper's client library in C, which compilers of today warn of and stop
    _run([*pip, "--target", "lib", "-r", "requirements.txt"], home, {"CFLAGS": "-w -fcommon"})


def fetch_node(home: Path) -> None:
    """Fetch prozess, node-kafka and franz-kafka with npm."""
    _run(["npm", "install", *_QUIET_NPM], home)


def fetch_tables(home: Path) -> None:
    """Fetch a package of tables with Maven, and the PySpark that it is made for with pip."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([*pip, "--target", "lib", "-r", "requirements.txt"], home)
    copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"]
    _run(["mvn", "-q", "-B", *copy], home)


def _nothing(home: Path) -> None:
    pass


class _Source(NamedTuple):
    """How peers of one language come about: by lists of packages, then from our program."""

    packages: tuple[str, ...]
    fetch: Callable[[Path], None]
    build: Callable[[Path], None] = _nothing


_PEERS = {
    "jafka": _Source(("pom.xml",), fetch_jars, compile_jafka),
    "kafka": _Source(("pom.xml",), fetch_jars),
    "python2": _Source(("requirements.txt",), fetch_python2),
    "node": _Source(("package.json",), fetch_node),
    "delta": _Source(("pom.xml", "requirements.txt"), fetch_tables),
    "iceberg": _Source(("pom.xml", "requirements.txt"), fetch_tables),
}


def _run(command: list[str], folder: Path, variables: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, cwd=folder, env={**os.environ, **(variables or {})}, check=True)


def fetch(name: str, source: _Source, home: Path) -> None:
    """Fetch what is not there at the wanted versions, and put our program beside it."""
    wanted = "".join((_SOURCES / name / one).read_text() for one in source.packages)
    stamp = home / "fetched"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(_SOURCES / name, home)
        source.fetch(home)
        stamp.write_text(wanted)
    shutil.copytree(_SOURCES / name, home, dirs_exist_ok=True)
    source.build(home)


def main() -> None:
    """Fetch all peers into a directory."""
    for name, source in _PEERS.items():
        try:
            fetch(name, source, Path(sys.argv[1]) / name)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"peers of {name} cannot be had: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()

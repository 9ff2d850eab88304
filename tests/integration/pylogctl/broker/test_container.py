"""What the Containerfile runs and installs; no image is built here."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from pylogctl.testing.zookeeper import MemoryZooKeeper
from tests.support.command_line import REPOSITORY, Invoke, Spawn
from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import invoke as invoke
from tests.support.command_line import spawn as spawn

TEXT = (REPOSITORY / "packaging/Containerfile").read_text(encoding="utf-8")


def words(instruction: str) -> list[str]:
    """Return the words behind `pylogctl` of an instruction's JSON list."""
    found = re.search(rf"^{instruction}\b(?:.*\\\n)*.*?(\[.*\])$", TEXT, flags=re.MULTILINE)
    assert found is not None
    arguments: list[str] = json.loads(found[1])
    program = arguments.pop(0)
    assert program == "pylogctl"
    return arguments


def test_container_when_its_broker_runs_then_the_health_check_passes_until_the_stop_signal(
    spawn: Spawn, invoke: Invoke, tmp_path: Path
) -> None:
    arguments = [
        str(tmp_path / "data") if one == "/var/lib/pylogctl" else one for one in words("ENTRYPOINT")
    ]
    with MemoryZooKeeper() as zookeeper:
        broker = spawn(*arguments, "--port", "0", "-Z", zookeeper.connect, stderr=subprocess.STDOUT)
        assert broker.stdout is not None
        ready = next(line for line in broker.stdout if line.startswith(b"READY"))
        port = re.search(rb" port=(\d+)", ready)
        assert port is not None
        check = [one.replace("9092", port[1].decode()) for one in words("HEALTHCHECK")]
        assert invoke(*check).status == 0
        stop = re.search(r"^STOPSIGNAL (\w+)$", TEXT, flags=re.MULTILINE)
        assert stop is not None
        broker.send_signal(signal.Signals[stop[1]])
        assert broker.wait(30) == 0
        assert invoke(*check).status != 0


def test_container_when_built_then_all_that_it_downloads_is_pinned() -> None:
    images = re.findall(r"^FROM (\S+)", TEXT, flags=re.MULTILINE)
    assert images and all(re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", one) for one in images)
    lock = (REPOSITORY / "packaging/requirements.txt").read_text(encoding="utf-8")
    entries = re.findall(
        r"^([a-z0-9-]+)==(\S+).*\\\n((?: +--hash=sha256:.*\n?)+)", lock, re.MULTILINE
    )
    assert len(entries) == len(re.findall(r"^[a-z]", lock, re.MULTILINE))
    pinned = {name: version for name, version, _ in entries}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    for text in project["project"]["dependencies"] + project["build-system"]["requires"]:
        wanted = Requirement(text)
        assert pinned[wanted.name] in wanted.specifier


def test_container_when_run_as_its_example_says_then_only_this_machine_reaches_the_broker() -> None:
    assert re.findall(r"--publish (\S+)", TEXT) == ["127.0.0.1:9092:9092"]

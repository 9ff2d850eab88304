"""What the Containerfile runs; no image is built here."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

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

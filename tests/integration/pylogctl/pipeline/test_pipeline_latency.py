"""`pipeline latency`: how long messages take to each stage, without Spark."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

import pylogctl
from broker import Broker
from broker.protocol.envelope import Envelope
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Spawn, first_note

pytest.importorskip("pyarrow")

LIMIT_S = 120
FOR = ("--for", f"{LIMIT_S}s", "--output", "json")


def started(process: subprocess.Popen[bytes]) -> str:
    """Return where its metrics are, once it reads the ends of the topics."""
    line = first_note(process)
    assert "metrics at" in line, line
    return line.rpartition(" ")[2].strip()


def test_latency_when_messages_come_to_all_stages_then_has_their_times(
    start_broker: Callable[..., Broker], invoke: Invoke, spawn: Spawn, tmp_path: Path
) -> None:
    source, mirror = start_broker(), start_broker(data_dir=tmp_path / "mirror")
    at, mirrored_at = (f"127.0.0.1:{one.port}" for one in (source, mirror))
    lake = str(tmp_path / "lake")
    with pylogctl.connect(at) as client, pylogctl.connect(mirrored_at) as target:
        client.create_topic("t")
        target.create_topic("t")
        process = spawn(
            *("pipeline", "latency", "t", "-b", at, "--mirror", f"brokers={mirrored_at}"),
            *("--load", lake, "-n", "3", "--metrics-port", "0", "--fail-above", "1h", *FOR),
        )
        url = started(process)
        now_us = time.time_ns() // 1000
        times_us = [now_us - 60_000_000, now_us, now_us + 1_800_000_000]
        payloads = [
            Envelope(time_us, "web1", 1, number).wrap(b"x")
            for number, time_us in enumerate(times_us)
        ]
        client.send_many("t", ["no envelope", *payloads])
        target.send_many("t", payloads)
        assert b"pylogctl_pipeline_latency_seconds" in urlopen(url, timeout=60).read()
        loaded = invoke("pipeline", "load", "t", "-b", at, "--to", lake, "--local")
        out, err = process.communicate(timeout=LIMIT_S)

    assert loaded.status == ExitStatus.OK, loaded.stderr
    assert process.returncode == ExitStatus.OK, err
    rows = json.loads(out)["data"]
    assert [row["stage"] for row in rows] == ["broker", "mirror", "load"]
    for row in rows:
        assert (row["messages"], row["early"], row["waiting"]) == (3, 1, 0)
        assert row["min"] < -1000 < 0 <= row["p50"] < 60 <= row["max"]
    assert b"messages of host 'web1' came up to" in err


def test_latency_when_a_group_stays_behind_then_fails_by_what_waits(
    start_broker: Callable[..., Broker], zookeeper: str, spawn: Spawn
) -> None:
    start_broker(zookeeper=zookeeper)
    with pylogctl.connect(zookeeper=zookeeper) as client:
        client.create_topic("t")
        client.send("t", "first")
        with client.group("g", "t", start="earliest") as group:
            next(iter(group))
        process = spawn(
            *("pipeline", "latency", "t", "-Z", zookeeper, "--group", "g", "--for", "6s"),
            *("--fail-above", "10s", "--metrics-port", "0", "--output", "json"),
        )
        started(process)
        made_us = time.time_ns() // 1000 - 3_600_000_000
        client.send("t", Envelope(made_us, "web1", 1, 0).wrap(b"x"))
        out, err = process.communicate(timeout=LIMIT_S)

    assert process.returncode == ExitStatus.THRESHOLD, err
    rows = {row["stage"]: row for row in json.loads(out)["data"]}
    assert rows["broker"]["messages"] == 1
    assert (rows["consumer"]["messages"], rows["consumer"]["waiting"]) == (0, 1)
    assert rows["consumer"]["oldest"] >= 3600


def test_latency_when_no_message_comes_then_ends_by_the_time_limit(
    running_broker: Broker, invoke: Invoke
) -> None:
    at = f"127.0.0.1:{running_broker.port}"
    with pylogctl.connect(at) as client:
        client.send("t", "before")

    result = invoke("pipeline", "latency", "t", "-b", at, "--for", "1s")

    assert result.status == ExitStatus.TIMEOUT
    assert "0 messages with an envelope came in 1s" in result.stderr
    missing = invoke("pipeline", "latency", "nope", "-b", at, "--for", "1s")
    assert missing.status == ExitStatus.NOT_FOUND

"""Readers of a topic some of whose partitions have no leader, and of partitions that come later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pylogctl
from pylogctl import Client
from pylogctl.cli.environment import ExitStatus
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.integration.cluster.away import (
    DEAD,
    filled,
    one_dead,
    options_of,
)
from tests.support.command_line import Invoke
from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import invoke as invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

LED = {"0-0", "0-1", "1-0", "1-1"}
AWAY = f"broker {DEAD} is away: 2 of 6 partitions of topic '{{}}' (2-0 .. 2-1) cannot be read"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(3) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with pylogctl.connect(cluster.broker(0).address, retries=0) as connected:
        yield connected


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> Iterator[str]:
    """A topic whose partitions on one broker cannot be read."""
    with cluster.connect() as connected:
        name = filled(connected, replicas=1)
    with one_dead(cluster), cluster.broker(0).connect() as connected:
        wait_until(
            lambda: sum(one.leader is None for one in connected.describe(name)) == 2,
            "the decision that it does not lead",
        )
        yield name


@pytest.mark.parametrize("flag", ["-b", "-Z"])
@pytest.mark.parametrize(
    "command",
    [
        ("consume", "{}", "-o", "start", "-e"),
        ("topic", "count", "{}"),
        ("topic", "offsets", "{}"),
        ("topic", "sample", "{}"),
        ("copy", "{}", "copied"),
    ],
    ids=" ".join,
)
def test_command_when_a_broker_is_dead_then_one_line_says_which_partitions_lack_and_status_is_6(
    cluster: Cluster, topic: str, invoke: Invoke, flag: str, command: tuple[str, ...]
) -> None:
    given = [one.format(topic) for one in command]

    result = invoke(*given, *options_of(cluster, flag))

    assert result.status == ExitStatus.PARTIAL
    assert [one for one in result.stderr.splitlines() if "error" in one or "warning" in one] == [
        f"error: {AWAY.format(topic)}"
    ]


@pytest.mark.parametrize("command", ["list", "describe"])
def test_topic_when_a_broker_is_dead_then_shows_all_partitions_and_one_line_for_the_broker(
    cluster: Cluster, topic: str, invoke: Invoke, command: str
) -> None:
    names = [topic] if command == "describe" else []

    result = invoke("topic", command, *names, *options_of(cluster, "-b"), "--output", "jsonl")

    assert result.status == ExitStatus.PARTIAL
    assert result.stderr.count(f"no leader until broker {DEAD} is back") == 1
    assert '"partitions":6' in result.text if command == "list" else result.text.count("\n") == 6
    assert '"size_bytes":null' in result.text


def test_count_when_a_broker_is_dead_then_shows_no_total(
    cluster: Cluster, topic: str, invoke: Invoke
) -> None:
    result = invoke("topic", "count", topic, *options_of(cluster, "-b"))

    rows = [line.split() for line in result.text.splitlines()[1:]]
    assert {row[1]: row[-1] for row in rows if row[-1] != "?"} == dict.fromkeys(LED, "1")
    assert rows[-1] == ["total", "-", "-", "-", "?", "?"]


@pytest.mark.parametrize("flag", ["-b", "-Z"])
def test_command_when_partitions_may_be_missing_then_warns_and_reads_the_others(
    cluster: Cluster, topic: str, invoke: Invoke, flag: str
) -> None:
    where = (*options_of(cluster, flag), "--allow-missing")

    read = invoke("consume", topic, "-o", "start", "-e", *where)
    copied = invoke("copy", topic, f"copy{flag}", "--dry-run", *where, "--output", "jsonl")

    assert (read.status, set(read.text.split())) == (ExitStatus.OK, LED)
    assert f"warning: {AWAY.format(topic)}" in read.stderr
    # to the same places as a copy of all partitions
    assert (copied.status, copied.text.count("\n")) == (ExitStatus.OK, 4)


def test_member_of_a_group_when_it_reads_to_the_end_then_names_partitions_that_are_away(
    cluster: Cluster, topic: str, invoke: Invoke
) -> None:
    where = options_of(cluster, "-Z")

    result = invoke("consume", topic, "--group", f"g-{topic}", "-o", "start", "-e", *where)

    assert (result.status, set(result.text.split())) == (ExitStatus.PARTIAL, LED)
    assert f"error: {AWAY.format(topic)}" in result.stderr


def test_consume_when_its_only_partition_is_away_then_says_so_and_status_is_6(
    cluster: Cluster, topic: str, invoke: Invoke
) -> None:
    result = invoke("consume", topic, "-p", "2-0", "-o", "start", "-e", *options_of(cluster, "-b"))

    assert result.status == ExitStatus.PARTIAL
    assert f"broker {DEAD} is away: 1 of 6 partitions of topic '{topic}' (2-0)" in result.stderr


def test_mirror_verify_when_partitions_cannot_be_read_then_compares_no_part_of_a_topic(
    cluster: Cluster, topic: str, invoke: Invoke
) -> None:
    result = invoke(
        "mirror", "verify", "--from", cluster.zookeeper, "--to", cluster.zookeeper,
        "--include", topic,
    )  # fmt: skip

    assert (result.status, result.text) == (ExitStatus.PARTIAL, "")
    assert f"error: {AWAY.format(topic)}" in result.stderr


@pytest.mark.parametrize("flag", ["-b", "-Z"])
def test_load_when_partitions_cannot_be_read_then_loads_the_others_and_status_is_6(
    cluster: Cluster, topic: str, invoke: Invoke, tmp_path: Path, flag: str
) -> None:
    command = ("pipeline", "load", topic, *options_of(cluster, flag), "--local", "--to")

    loaded = invoke(*command, str(tmp_path / "loaded"))
    allowed = invoke(*command, str(tmp_path / "allowed"), "--allow-data-loss")

    assert (loaded.status, allowed.status) == (ExitStatus.PARTIAL, ExitStatus.OK)
    assert f"error: {AWAY.format(topic)}; read: brokers 0, 1" in loaded.stderr
    assert f"warning: {AWAY.format(topic)}; read: brokers 0, 1" in allowed.stderr
    assert "load 1: 4 messages" in loaded.stderr


@pytest.mark.parametrize("flag", ["-b", "-Z"])
def test_sql_when_partitions_cannot_be_read_then_fails_with_status_6(
    cluster: Cluster, topic: str, invoke: Invoke, flag: str
) -> None:
    result = invoke("pipeline", "sql", "SELECT 1", "-t", topic, *options_of(cluster, flag))

    assert (result.status, result.text) == (ExitStatus.PARTIAL, "")
    assert AWAY.format(topic) in result.stderr


def test_client_when_a_broker_is_dead_then_reads_a_part_only_if_it_is_allowed(
    client: Client, topic: str
) -> None:
    calls: dict[str, Callable[..., Any]] = {
        "read": lambda **allowed: list(client.read(topic, **allowed)),
        "count": lambda **allowed: client.count(topic, **allowed),
        "offsets": lambda **allowed: client.offsets(topic, "end", **allowed),
        "copy": lambda **allowed: client.copy(topic, "c", plan=True, **allowed),
    }
    for call in calls.values():
        with pytest.raises(pylogctl.Unreachable, match=f"broker {DEAD} is away: 2 of 6 partitions"):
            call()

    assert {one.text() for one in calls["read"](allow_missing=True)} == LED
    assert calls["count"](allow_missing=True) == 4
    assert {one.name for one in calls["offsets"](allow_missing=True)} == LED
    found = calls["copy"](allow_missing=True)
    assert {one.source.name for one in found.partitions} == LED
    assert [one.text() for one in client.read(topic, partition=["0-0"])] == ["0-0"]


def test_aconnect_when_a_broker_is_dead_then_reads_a_part_only_if_it_is_allowed(
    cluster: Cluster, topic: str
) -> None:
    async def read(*, allow_missing: bool) -> set[str]:
        async with pylogctl.aconnect(cluster.broker(0).address, retries=0) as client:
            reader = client.read(topic, allow_missing=allow_missing)
            return {one.text() async for one in reader}

    with pytest.raises(pylogctl.Unreachable, match=f"broker {DEAD} is away: 2 of 6 partitions"):
        asyncio.run(read(allow_missing=False))
    assert asyncio.run(read(allow_missing=True)) == LED

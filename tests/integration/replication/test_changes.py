"""`pylogctl cluster changes`: the state-change logs of all brokers in one order."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.state_changes import ChangeKind, LoggedChange
from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke, Result, Spawn
from tests.support.command_line import spawn as spawn
from tests.support.waiting import wait_until

StartCluster = Callable[..., ReplicatedCluster]


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.text.splitlines()]


@pytest.mark.zookeeper
def test_changes_when_a_leader_is_killed_then_tell_why_another_leads(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    first, second = cluster.create_topic("t", 2, 3)
    cluster.await_full_isr([first, second])
    lost = cluster.kill_leader(first)
    leader = cluster.await_leader(first, other_than=lost)

    def changes(*options: str) -> Result:
        where = ("-Z", cluster.zookeeper, "--output", "jsonl")
        return invoke("cluster", "changes", "--topic", "t", *options, *where)

    def new_terms() -> list[dict[str, Any]]:
        found = rows(changes("-p", first.name))
        return [one for one in found if one["leader"] == leader and one["kind"] != "isr"]

    def has_begun() -> bool:
        return {"decided", "leads", "follows"} <= {one["kind"] for one in new_terms()}

    wait_until(has_begun, "the new term on all brokers", deadline_s=60)
    terms = new_terms()
    assert terms[0]["kind"] == "decided"
    assert {one["broker"] for one in terms if one["kind"] == "leads"} == {leader}
    epochs = [(one["controller_epoch"], one["leader_epoch"]) for one in terms]
    assert epochs == sorted(epochs)

    result = changes()
    assert result.status == ExitStatus.PARTIAL
    assert f"broker {lost} is not there: its changes are missing" in result.stderr
    names = {one["name"] for one in rows(result) if one["name"] is not None}
    assert names == {first.name, second.name}
    assert "elected" in {one["kind"] for one in rows(result)}

    directories = [str(disk) for id in range(3) for disk in cluster.disks_of(id)]
    offline = invoke("cluster", "changes", *directories, "--topic", "t", "--output", "jsonl")
    assert offline.status == ExitStatus.OK
    assert lost in {one["broker"] for one in rows(offline)}


@pytest.mark.zookeeper
def test_changes_when_followed_then_come_also_of_a_broker_that_was_away(
    start_cluster: StartCluster, spawn: Spawn, tmp_path: Path
) -> None:
    cluster = start_cluster()
    output, notes = tmp_path / "changes.jsonl", tmp_path / "notes"
    with output.open("wb") as stdout, notes.open("wb") as stderr:
        where = ("-Z", cluster.zookeeper, "--output", "jsonl")
        process = spawn("cluster", "changes", "--follow", *where, stdout=stdout, stderr=stderr)

    def shown() -> list[dict[str, Any]]:
        return [
            json.loads(one) for one in output.read_bytes().splitlines(keepends=True) if b"\n" in one
        ]

    wait_until(lambda: shown(), "the election of the controller", deadline_s=120)
    (partition,) = cluster.create_topic("t", 1, 3)
    cluster.await_full_isr([partition])

    def roles(epoch: int) -> set[tuple[str, int]]:
        return {(one["kind"], one["broker"]) for one in shown() if one["leader_epoch"] == epoch}

    def all_know() -> bool:
        return {id for kind, id in roles(0) if kind in ("leads", "follows")} == {0, 1, 2}

    wait_until(all_know, "the first term", deadline_s=120)
    gone = next(id for id in range(3) if id != cluster.controller())
    before = len(shown())
    cluster.kill(gone)

    def decided() -> list[dict[str, Any]]:
        return [one for one in shown()[before:] if one["kind"] == "decided"]

    wait_until(decided, "a decision without the broker", deadline_s=120)
    assert gone not in decided()[0]["isr"]
    away = "its changes are shown when it is back"
    wait_until(lambda: away in notes.read_text(), "the note that it is away", deadline_s=120)
    cluster.start(gone)
    wait_until(
        lambda: [one for one in shown()[before:] if one["broker"] == gone],
        "what the broker has written since it is back",
        deadline_s=120,
    )
    # what it had written before it was killed can be shown late
    wait_until(lambda: f"broker {gone} is back" in notes.read_text(), "the note that it is back")

    process.send_signal(signal.SIGINT)
    assert process.wait(120) == ExitStatus.SIGINT
    everything = shown()
    assert len({json.dumps(one) for one in everything}) == len(everything), "none is shown twice"


def test_changes_when_followed_as_one_document_or_of_files_then_refused(
    invoke: Invoke, tmp_path: Path
) -> None:
    file = write(tmp_path / "one.jsonl", LoggedChange(ChangeKind.ELECTED, 0, 1, 1))

    for options in ((file,), ("--output", "json"), ("--sort", "time")):
        result = invoke("cluster", "changes", "--follow", *options)
        assert result.status == ExitStatus.USAGE
        assert "--follow" in result.stderr


@pytest.mark.zookeeper
def test_changes_when_a_disk_fails_then_name_it(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2, disk_count=2, log_checkpoint_interval_ms="200")
    partitions = cluster.create_topic("t", 2, 2)
    cluster.await_full_isr(partitions)
    wait_until(lambda: all(cluster.directory_of(0, one).exists() for one in partitions), "the logs")
    kept = cluster.disks_of(0)[0]
    inside = [one for one in partitions if kept not in cluster.directory_of(0, one).parents]
    disk = cluster.directory_of(0, inside[0]).parents[1]
    while disk not in cluster.disks_of(0):
        disk = disk.parent
    cluster.lose_disk(0, inside[0])

    def failed() -> list[dict[str, Any]]:
        result = invoke("cluster", "changes", "-Z", cluster.zookeeper, "--output", "jsonl")
        return [one for one in rows(result) if one["kind"] == "directory-failed"]

    wait_until(failed, "the failure of the disk", deadline_s=60)
    (one,) = failed()
    assert one["broker"] == 0
    assert str(disk) in one["text"]


def write(path: Path, *changes: LoggedChange) -> str:
    path.write_bytes(b"".join(one.encode() for one in changes))
    return str(path)


def test_changes_when_of_files_then_are_selected_and_damaged_lines_are_told_of(
    invoke: Invoke, tmp_path: Path
) -> None:
    partition = TopicPartition("t", 0, 1)
    elected = LoggedChange(ChangeKind.ELECTED, 0, 1, 1)
    leads = LoggedChange(ChangeKind.LEADS, 1_000, 0, 1, partition, 3, 0, (0, 1), 7, 500)
    other = leads._replace(partition=TopicPartition("u", 0, 0))
    file = write(tmp_path / "state-changes-00000000000000000000.jsonl", leads, other, elected)
    with Path(file).open("ab") as stream:
        stream.write(b"{torn\n")

    result = invoke("cluster", "changes", str(tmp_path), "--topic", "t", "--output", "csv")
    assert result.status == ExitStatus.OK
    assert result.text.splitlines()[1:] == [
        "01-01 00:00:00.000,1,1,,is the controller",
        '01-01 00:00:01.000,0,1/3,t[0-1],"leads at offset 500, in sync 0,1"',
    ]
    assert f"{file}: 1 lines are no state changes" in result.stderr
    assert invoke("cluster", "changes", file, "-p", "0-5").text.count("\n") == 2
    assert invoke("cluster", "changes", file, "--since", "1h").text == ""


def test_changes_when_a_file_is_not_there_then_do_the_rest(invoke: Invoke, tmp_path: Path) -> None:
    file = write(tmp_path / "one.jsonl", LoggedChange(ChangeKind.ELECTED, 0, 1, 1))

    result = invoke("cluster", "changes", file, str(tmp_path / "gone"))
    assert result.status == ExitStatus.PARTIAL
    assert f"no file '{tmp_path / 'gone'}'" in result.stderr
    assert "is the controller" in result.text
    alone = invoke("cluster", "changes", str(tmp_path / "gone"))
    assert alone.status == ExitStatus.NOT_FOUND

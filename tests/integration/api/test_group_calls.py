"""Calls on consumer groups of the Python API, at brokers with a ZooKeeper."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import pylogctl
from broker.admin.group_changes import delete_group
from broker.admin.lag import GroupObserver
from broker.consumer.offset_store import SqliteOffsets
from broker.zk import paths
from broker.zk.session import Session
from pylogctl import LagStatus, TopicPartition
from pylogctl.testing import Broker, Cluster, ephemeral_cluster
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

_numbers = itertools.count()
SIZE = 11
"""Bytes of a message of one byte in the log."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(2) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[pylogctl.Client]:
    with cluster.connect() as connected:
        yield connected


@pytest.fixture
def session(cluster: Cluster) -> Iterator[Session]:
    opened = Session(cluster.zookeeper)
    opened.start()
    yield opened
    opened.stop()


@pytest.fixture
def group() -> str:
    return f"billing-{next(_numbers)}"


@pytest.fixture
def topic(client: pylogctl.Client) -> str:
    """A topic with ten messages in each of its two partitions, which ZooKeeper knows."""
    name = f"orders-{next(_numbers)}"
    for home in range(2):
        client.send_many(name, [str(number) for number in range(10)], partition=f"{home}-0")
    with pylogctl.connect(zookeeper=_zookeeper_of(client)) as other:
        wait_until(lambda: len(list(other.read(name))) == 20, "the topic in ZooKeeper")
    return name


def _zookeeper_of(client: pylogctl.Client) -> str:
    return client.cluster_id


def at(topic: str, home: int = 0) -> TopicPartition:
    return TopicPartition(topic, home, 0)


def put(client: pylogctl.Client, group: str, topic: str, *offsets: int) -> None:
    """Make a group with these offsets, by home broker."""
    client.import_offsets(group, {at(topic, home): one for home, one in enumerate(offsets)})


def moves(changes: list[pylogctl.OffsetChange]) -> list[tuple[int | None, int | None]]:
    return [(one.before, one.after) for one in changes]


# reads


def test_groups_when_there_are_some_then_are_told_with_their_offsets(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=60)
    put(client, group, topic, 11, 22)
    (found,) = [one for one in client.groups() if one.name == group]
    assert (found.state, found.members, found.topics) == ("empty", (), (topic,))
    assert [one.offset for one in found.offsets.values()] == [11, 22]
    assert before < found.offsets[at(topic)].committed < before + timedelta(seconds=120)
    assert client.describe_group(group) == found
    assert client.offsets_of(group) == {at(topic): 11, at(topic, 1): 22}


def test_describe_group_when_it_has_a_member_then_tells_what_is_assigned_to_it(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    with client.group(group, topic) as joined:
        wait_until(lambda: len(joined.assigned) == 2, "both partitions")
        found = client.describe_group(group)
        assert client.verify_group(group) == []
    (member,) = found.members
    assert found.state == "active"
    assert (member.topics, member.thread_count) == ((topic,), 1)
    assert member.partitions == (at(topic), at(topic, 1)) == tuple(found.owners)
    assert set(found.owners.values()) == {f"{member.id}-0"}
    assert abs(member.joined - datetime.now(UTC)) < timedelta(seconds=120)


def test_offsets_of_when_one_is_no_number_then_leaves_it_out(
    client: pylogctl.Client, session: Session, topic: str, group: str
) -> None:
    put(client, group, topic, 11, 22)
    session.set(paths.offset(group, at(topic)), b"abc")
    assert client.offsets_of(group) == {at(topic, 1): 22}
    stored = client.describe_group(group).offsets[at(topic)]
    assert (stored.offset, stored.problem) == (None, "is no number: 'abc'")


def test_lag_when_behind_then_is_counted_in_bytes(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 10 * SIZE, 7 * SIZE)
    lag = client.lag(group)
    assert (lag.group, lag.total_bytes, lag.status) == (group, 3 * SIZE, LagStatus.LAG)
    first, second = lag.partitions
    assert (first.partition, first.lag_bytes, first.status) == (at(topic), 0, "OK")
    assert (second.offset, second.end, second.owner) == (7 * SIZE, 10 * SIZE, None)
    assert second.bytes_per_s is None


def test_lag_when_observed_for_a_window_then_knows_rates(
    client: pylogctl.Client,
    session: Session,
    topic: str,
    group: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    observe = GroupObserver.lag
    numbers = itertools.count(1)

    def observe_and_move(observer: GroupObserver, *args: Any, **how: Any) -> Any:
        found = observe(observer, *args, **how)
        offset = min(next(numbers), 9) * SIZE
        session.set(paths.offset(group, at(topic)), b"%d" % offset)
        return found

    put(client, group, topic, 0, 10 * SIZE)
    monkeypatch.setattr(GroupObserver, "lag", observe_and_move)
    lag = client.lag(group, window=1.0)
    first, second = lag.partitions
    assert first.bytes_per_s is not None and first.bytes_per_s > 0
    assert first.offset is not None
    assert first.eta_s == pytest.approx((10 * SIZE - first.offset) / first.bytes_per_s)
    assert (first.status, second.status, second.bytes_per_s) == ("OK", "OK", 0)


def test_lag_when_there_is_no_offset_then_says_so(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 10 * SIZE)
    lag = client.lag(group)
    assert [one.status for one in lag.partitions] == ["OK", "NO-OFFSET"]
    assert (lag.total_bytes, lag.partitions[1].lag_bytes) == (0, None)


def test_lag_when_offsets_are_kept_elsewhere_then_is_unknown(
    client: pylogctl.Client, topic: str, group: str, tmp_path: Path
) -> None:
    with (
        SqliteOffsets(tmp_path / "offsets.db", group) as offsets,
        client.group(group, topic, start="earliest", commit="manual", offsets=offsets) as reading,
    ):
        next(reading)
        wait_until(lambda: len(reading.assigned) == 2, "both partitions")
        lag = client.lag(group)
        assert (lag.status, lag.total_bytes) == (LagStatus.UNKNOWN, None)
        assert [one.status for one in lag.partitions] == ["UNKNOWN", "UNKNOWN"]

    lag = client.lag(group)
    assert (lag.status, lag.total_bytes) == (LagStatus.UNKNOWN, None)


def test_message_when_stored_twice_then_is_two_by_offset_and_one_by_id(
    client: pylogctl.Client, topic: str, group: str, tmp_path: Path
) -> None:
    name = f"ids-{topic}"
    client.send_many(name, ["id-1", "id-1", "id-2"], key="k")  # as after a lost response
    counts = []
    for _ in range(2):  # the second time from the offsets beside the results
        with (
            SqliteOffsets(tmp_path / "results.db", group) as offsets,
            client.group(
                group, name, start="earliest", commit="manual", offsets=offsets, idle=2
            ) as reading,
        ):
            for message in reading:
                with offsets.transaction() as database:
                    assert offsets.finish(message)
                    database.execute("CREATE TABLE IF NOT EXISTS ids (id TEXT PRIMARY KEY)")
                    added = "INSERT OR IGNORE INTO ids VALUES (?)"
                    counts.append(database.execute(added, (message.text(),)).rowcount)
    assert counts == [1, 0, 1]


def test_verify_group_when_nobody_reads_then_names_the_partitions(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 0)
    found = client.verify_group(group)
    assert [(one.kind, one.partition) for one in found] == [
        ("no-owner", at(topic)),
        ("no-owner", at(topic, 1)),
    ]


# changes


@pytest.mark.parametrize(
    ("how", "first", "second"),
    [
        ({"to": "start"}, 0, 0),
        ({"to": "end"}, 110, 110),
        ({"to": 44}, 44, 44),
        ({"to": "-3"}, 77, 77),
        ({"to": "@-1h"}, 0, 0),
        ({"to": datetime(2020, 1, 1, tzinfo=UTC)}, 0, 0),
        ({"to": {"0-0": 11, 0: "end"}}, 11, 110),
        ({"to": {"0-0": "end"}}, 110, 55),
        ({"to": {"0-0": 22}}, 22, 55),
        ({"shift": 1}, 44, 66),
        ({"shift": -1}, 22, 44),
        ({"shift": 0}, 33, 55),
        ({"shift": "+12B"}, 55, 77),
        ({"shift": timedelta(hours=-1)}, 0, 0),
        ({"shift": timedelta(hours=1)}, 110, 110),
    ],
    ids=str,
)
def test_reset_when_given_a_target_then_moves_there_and_can_be_taken_back(
    client: pylogctl.Client, topic: str, group: str, how: dict[str, object], first: int, second: int
) -> None:
    put(client, group, topic, 33, 55)
    planned = client.reset(group, plan=True, **how)  # type: ignore[arg-type]  # each is one of `reset`'s
    assert moves(planned) == [(33, first), (55, second)]
    assert client.offsets_of(group) == {at(topic): 33, at(topic, 1): 55}
    assert client.reset(group, topic, **how) == planned  # type: ignore[arg-type]  # as above
    assert client.offsets_of(group) == {at(topic): first, at(topic, 1): second}
    client.import_offsets(group, {one.partition: one.before for one in planned})
    assert client.offsets_of(group) == {at(topic): 33, at(topic, 1): 55}


def test_reset_when_the_offset_is_inside_a_message_then_goes_back_and_notes_it(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 33)
    (change,) = client.reset(group, topic, to=45, partition="0-0")
    assert change == (at(topic), 33, 44, "45 is inside the message at 44")
    assert client.offsets_of(group) == {at(topic): 44}


def test_reset_when_given_the_offsets_of_another_group_then_goes_there(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 33, 55)
    put(client, f"{group}-other", topic, 22, 99)
    client.reset(group, to=client.offsets_of(f"{group}-other"))
    assert client.offsets_of(group) == {at(topic): 22, at(topic, 1): 99}


def test_group_when_reset_then_goes_on_there(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    client.import_offsets(group, {at(topic): 0, at(topic, 1): 0})
    client.reset(group, topic, to="-1")
    with client.group(group, topic, idle=60) as joined:
        assert [next(joined).text() for _ in range(2)] == ["9", "9"]


def test_reset_when_a_member_lives_then_is_refused_unless_forced(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 33, 55)
    with client.group(group, topic) as joined:
        wait_until(lambda: len(joined.assigned) == 2, "both partitions")
        with pytest.raises(pylogctl.GroupActive, match="has 1 active member"):
            client.reset(group, to="end", plan=True)
        with pytest.raises(pylogctl.GroupActive, match="has 1 active member") as caught:
            client.reset(group, to="end")
        with pytest.raises(pylogctl.GroupActive, match=r"still has 1 active member after 0\.2s"):
            client.reset(group, to="end", wait_inactive=0.2)
        with pytest.raises(pylogctl.GroupActive, match="stop them first"):
            client.delete_group(group)
        (member,) = client.describe_group(group).members
        assert caught.value.members == (member.id,)
        assert client.offsets_of(group) == {at(topic): 33, at(topic, 1): 55}
        assert moves(client.reset(group, to="end", force=True)) == [(33, 110), (55, 110)]


def test_reset_when_told_to_wait_then_waits_for_members_to_leave(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    joined = client.group(group, topic)
    wait_until(lambda: len(joined.assigned) == 2, "both partitions")
    leaving = threading.Timer(0.3, joined.close)
    leaving.start()
    client.reset(group, topic, to=33, wait_inactive=60)
    leaving.join()
    assert client.offsets_of(group) == {at(topic): 33, at(topic, 1): 33}


def test_reset_when_some_partitions_are_gone_then_the_others_are_done(
    client: pylogctl.Client, session: Session, topic: str, group: str
) -> None:
    put(client, group, topic, 33, 55)
    session.create(paths.offset(group, at(topic, 7)), b"5")
    with pytest.raises(pylogctl.Partial, match="the partition is on no live broker") as caught:
        client.reset(group, to="start")
    assert list(caught.value.failed) == [f"{topic}[7-0]"]
    assert caught.value.done == ((at(topic), 33, 0, ""), (at(topic, 1), 55, 0, ""))
    assert client.offsets_of(group) == {at(topic): 0, at(topic, 1): 0, at(topic, 7): 5}


def test_import_offsets_when_given_none_then_removes_it(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 33, 55)
    assert moves(client.import_offsets(group, {at(topic): None}, plan=True)) == [(33, None)]
    assert moves(client.import_offsets(group, {at(topic): None})) == [(33, None)]
    assert client.offsets_of(group) == {at(topic, 1): 55}


def test_import_offsets_when_they_are_of_another_group_then_has_the_same(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 33, 55)
    client.import_offsets(f"{group}-new", client.offsets_of(group))
    assert client.offsets_of(f"{group}-new") == client.offsets_of(group)


def test_delete_group_when_it_is_there_then_is_gone_and_its_offsets_are_returned(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 33, 55)
    assert moves(client.delete_group(group, plan=True)) == [(33, None), (55, None)]
    assert group in {one.name for one in client.groups()}
    assert moves(client.delete_group(group)) == [(33, None), (55, None)]
    assert group not in {one.name for one in client.groups()}
    with pytest.raises(pylogctl.UnknownGroup):
        client.delete_group(group)
    assert client.delete_group(group, missing_ok=True) == []


def test_delete_group_when_another_client_has_just_deleted_it_then_leaves_nothing_to_do(
    session: Session, group: str
) -> None:
    delete_group(session, group)  # as it is once a group has been found there, and then not
    assert not session.exists(paths.group(group))


def test_rebalance_when_there_are_members_then_divides_the_partitions(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    with client.group(group, topic) as one, client.group(group, topic) as other:
        wait_until(lambda: len(one.assigned) == len(other.assigned) == 1, "one partition each")
        planned = client.rebalance(group, plan=True)
        found = client.rebalance(group)
    assert [one.partition for one in found] == [at(topic), at(topic, 1)]
    assert len({one.after for one in found}) == 2
    assert planned == found


def test_rebalance_when_a_member_takes_nothing_then_times_out(
    client: pylogctl.Client, session: Session, topic: str, group: str
) -> None:
    idle = paths.consumer(group, f"{group}_idle")
    session.create(idle, f'{{ "{topic}": 1 }}'.encode(), ephemeral=True)
    with pytest.raises(pylogctl.TimedOut, match=r"within 0\.1s: 2 problems; .*it has no owner"):
        client.rebalance(group, wait=0.1)


def test_rebalance_when_there_is_no_member_then_is_a_conflict(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 0)
    with pytest.raises(pylogctl.Conflict, match="has no members that could rebalance"):
        client.rebalance(group)


# bad input, and what is not there

Call = Callable[[pylogctl.Client], object]

UNKNOWN: list[Call] = [
    lambda c: c.describe_group("nope"),
    lambda c: c.offsets_of("nope"),
    lambda c: c.lag("nope"),
    lambda c: c.verify_group("nope"),
    lambda c: c.reset("nope", to="end"),
    lambda c: c.delete_group("nope"),
    lambda c: c.rebalance("nope"),
]


@pytest.mark.parametrize("call", UNKNOWN)
def test_call_when_there_is_no_such_group_then_is_a_lookup_error(
    client: pylogctl.Client, call: Call
) -> None:
    with pytest.raises(LookupError, match="group 'nope' not found") as caught:
        call(client)
    assert isinstance(caught.value, pylogctl.UnknownGroup)


BAD: list[tuple[Call, type[Exception], str]] = [
    (lambda c: c.describe_group(5), TypeError, "the group as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.lag(None), TypeError, "the group as str, not NoneType"),  # type: ignore[arg-type]
    (lambda c: c.lag("g", window=-1), ValueError, "window is at least 0"),
    (lambda c: c.lag("g", timeout=-1), ValueError, "timeout is at least 0"),
    (lambda c: c.reset("g"), ValueError, "give either `to`, where the group goes, or `shift`"),
    (lambda c: c.reset("g", to=1, shift=1), ValueError, "give either `to`"),
    (lambda c: c.reset("g", to=1.5), TypeError, "a place as an offset, text or datetime"),  # type: ignore[arg-type]
    (lambda c: c.reset("g", to="file:x"), ValueError, "not an offset: 'file'"),
    (lambda c: c.reset("g", to="0:11"), ValueError, "not one place: '0:11'"),
    (lambda c: c.reset("g", shift=1.5), TypeError, "the shift as int, str or timedelta"),  # type: ignore[arg-type]
    (lambda c: c.reset("g", shift="3"), ValueError, "not a shift: '3'"),
    (lambda c: c.reset("g", 5, to=1), TypeError, "the topic as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.reset("g", [5], to=1), TypeError, "the topic as str, not int"),  # type: ignore[list-item]
    (lambda c: c.reset("g", to=1, partition=0), ValueError, "the topics that `partition` is of"),
    (lambda c: c.reset("g", "t", to=1, partition="x"), ValueError, "not a partition: 'x'"),
    (lambda c: c.reset("g", to=1, wait_inactive=-1), ValueError, "wait_inactive is at least 0"),
    (lambda c: c.import_offsets("g", [1]), TypeError, "the offsets as a mapping, not list"),  # type: ignore[arg-type]
    (lambda c: c.import_offsets("g", {"0-0": 1}), TypeError, "as a TopicPartition, not str"),  # type: ignore[dict-item]
    (lambda c: c.import_offsets("g", {at("t"): "1"}), TypeError, "as int or None, not str"),  # type: ignore[dict-item]
    (lambda c: c.import_offsets("a/b", {}), ValueError, "invalid group name 'a/b'"),
    (lambda c: c.delete_group(""), ValueError, "invalid group name '': it is empty"),
    (lambda c: c.rebalance("g", wait="1"), TypeError, "wait as a number, not str"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD, ids=[text for _, _, text in BAD])
def test_call_when_given_bad_input_then_says_what_is_wrong(
    client: pylogctl.Client, call: Call, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        call(client)


def test_reset_when_topic_or_partition_is_unknown_then_changes_nothing(
    client: pylogctl.Client, topic: str, group: str
) -> None:
    put(client, group, topic, 33)
    with pytest.raises(pylogctl.UnknownTopic, match="topic 'nope' not found"):
        client.reset(group, [topic, "nope"], to="end")
    with pytest.raises(ValueError, match="the topics have no partition 7"):
        client.reset(group, topic, to="end", partition=7)
    assert client.offsets_of(group) == {at(topic): 33}


def test_groups_when_the_client_is_closed_then_says_so(cluster: Cluster) -> None:
    closed = cluster.connect()
    closed.close()
    with pytest.raises(pylogctl.Closed):
        closed.groups()
    with pytest.raises(pylogctl.Closed):
        closed.reset("g", to="end")


def test_groups_when_the_brokers_have_no_zookeeper_then_says_so(pylog_broker: Broker) -> None:
    with pylog_broker.connect() as client, pytest.raises(pylogctl.NoZooKeeper):
        client.groups()


def test_reset_and_lag_when_a_broker_does_not_respond_then_say_so(
    client: pylogctl.Client, session: Session, topic: str, group: str
) -> None:
    put(client, group, topic, 33)
    session.create(paths.broker(9), b"gone-1:127.0.0.1:1", ephemeral=True)
    node = paths.topic_broker(topic, 9)
    session.create(node, b"1")
    session.create(paths.offset(group, at(topic, 9)), b"5")
    try:
        lag = client.lag(group)
        with pytest.raises(pylogctl.Unreachable, match="broker 9"):
            client.reset(group, to="start")
    finally:
        session.delete(node)
        session.delete(paths.broker(9))
    assert (lag.status, lag.total_bytes) == ("UNKNOWN", None)
    assert client.offsets_of(group)[at(topic)] == 33

"""Groups of the Python API that are steered: starts, pauses, callbacks, commits by hand, `run`."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import pylogctl
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

_numbers = itertools.count()
ALL = [f"{letter}{n}" for letter in "ab" for n in range(4)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(2) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[pylogctl.Client]:
    with cluster.connect() as connected:
        yield connected


@pytest.fixture(scope="module")
def registered(cluster: Cluster) -> Iterator[pylogctl.Client]:
    """A client that knows what is in ZooKeeper, as groups do."""
    with pylogctl.connect(zookeeper=cluster.zookeeper) as connected:
        yield connected


@pytest.fixture
def topic(client: pylogctl.Client, registered: pylogctl.Client) -> str:
    """A topic of a partition on each broker, with messages `a0`, `a1`, .. and `b0`, `b1`, ..."""
    name = f"steered-{next(_numbers)}"
    for home, letter in enumerate("ab"):
        client.send_many(name, [f"{letter}{n}" for n in range(4)], partition=f"{home}-0")
    known = registered._cluster  # a partition that a group finds later starts at its beginning
    wait_until(lambda: len(known.partitions(name)) == 2, "both partitions in ZooKeeper")
    return name


def join(client: pylogctl.Client, topic: str, **how: object) -> pylogctl.Group:
    return client.group("billing", topic, **{"start": "earliest", "idle": 60, **how})  # type: ignore[arg-type]  # each is one of `group`'s


def take(group: pylogctl.Group, count: int) -> list[str]:
    return [next(group).text() for _ in range(count)]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("-1", ["a3", "b3"]),
        ("+3", ["a3", "b3"]),
        (datetime.now(UTC) - timedelta(hours=1), ALL),
        ({"0-0": "-2", 1: "end"}, ["a2", "a3"]),
        ({"0-0": 12}, ["a1", "a2", "a3"]),
        ({"0-0": 5}, ["a1", "a2", "a3"]),
    ],
)  # fmt: skip
def test_group_when_told_where_to_start_then_new_partitions_start_there(
    client: pylogctl.Client, topic: str, start: object, expected: list[str]
) -> None:
    # a partition that a mapping does not name starts at its end
    with join(client, topic, start=start) as group:
        assert sorted(take(group, len(expected))) == expected
        wait_until(lambda: len(group.assigned) == 2, "both partitions")
        client.send(topic, "late", partition="0-0")
        assert next(group).text() == "late"
    with join(client, topic, start="earliest", idle=1.5) as group:  # it has stored positions now
        assert "a0" not in [one.text() for one in group]


def test_group_when_a_start_is_malformed_then_says_so(client: pylogctl.Client, topic: str) -> None:
    with pytest.raises(ValueError, match="not an offset: 'soon'"):
        join(client, topic, start={"0-0": "soon"})
    with pytest.raises(TypeError, match="not float"):
        join(client, topic, start=1.5)


@pytest.mark.parametrize("commit", ["after", "before"])
def test_group_when_a_partition_is_paused_then_it_gives_the_others_until_it_is_resumed(
    client: pylogctl.Client, topic: str, commit: str
) -> None:
    with join(client, topic, commit=commit) as group:
        wait_until(lambda: len(group.assigned) == 2, "both partitions")
        first = next(group)
        group.pause(first.partition)
        letter = first.text()[0]
        others = take(group, 4)
        assert {one[0] for one in others} == {"a", "b"} - {letter}
        client.send(topic, "late", partition=first.partition.name)
        group.resume(first.partition)
        assert take(group, 4) == [f"{letter}1", f"{letter}2", f"{letter}3", "late"]
        with pytest.raises(ValueError, match="is no assigned partition"):
            group.pause("7-7")
        group.pause()
        group.resume()
        client.send(topic, "last", partition="0-0")
        assert next(group).text() == "last"


def test_group_when_partitions_come_and_go_then_the_iterating_thread_is_told(
    client: pylogctl.Client, topic: str
) -> None:
    told: list[tuple[str, frozenset[pylogctl.TopicPartition], int]] = []

    def note(kind: str, group: pylogctl.Group, changed: frozenset[pylogctl.TopicPartition]) -> None:
        told.append((kind, changed, threading.get_ident()))
        if kind == "assigned":
            for one in changed:
                group.seek(one, "-1")

    def start() -> pylogctl.Group:
        return join(
            client,
            topic,
            on_assigned=lambda group, some: note("assigned", group, some),
            on_revoked=lambda group, some: note("revoked", group, some),
        )

    with start() as group:
        assert sorted(take(group, 2)) == ["a3", "b3"]
        both = frozenset(one for _, some, _ in told for one in some)
        assert len(both) == 2
        told.clear()
        with join(client, topic) as second:
            wait_until(lambda: len(second.assigned) == 1, "a partition of the second member")
            (gone,) = second.assigned
            (kept,) = both - {gone}
            client.send(topic, "more", partition=kept.name)
            assert next(group).text() == "more"
        assert ("revoked", frozenset({gone}), threading.get_ident()) in told


def test_group_when_a_partition_is_lost_then_a_commit_by_hand_is_a_conflict(
    client: pylogctl.Client, topic: str
) -> None:
    with join(client, topic, commit="manual") as group:
        wait_until(lambda: len(group.assigned) == 2, "both partitions")
        messages = [next(group) for _ in range(8)]
        with join(client, topic, commit="manual") as second:
            wait_until(lambda: len(second.assigned) == 1, "a partition of the second member")
            wait_until(lambda: len(group.assigned) == 1, "a partition left")
            lost = next(one for one in messages if one.partition in second.assigned)
            kept = [one for one in messages if one.partition in group.assigned]
            with pytest.raises(pylogctl.Conflict, match="not assigned to this member") as caught:
                group.commit(lost)
            assert caught.value.reason == "PARTITION_LOST"
            group.commit(kept[1])
            with pytest.raises(TypeError, match="a message of this group, not str"):
                group.commit("x")  # type: ignore[arg-type]
        with pytest.raises(pylogctl.Closed):
            second.commit()
    with join(client, topic, commit="manual") as again:
        rest = sorted(take(again, 6))
    assert rest == sorted(one.text() for one in messages if one not in kept[:2])


def test_group_when_all_is_committed_by_hand_after_a_loss_then_the_others_are_committed(
    client: pylogctl.Client, topic: str
) -> None:
    with join(client, topic, commit="manual") as group:
        wait_until(lambda: len(group.assigned) == 2, "both partitions")
        take(group, 8)
        with join(client, topic, commit="manual") as second:
            wait_until(lambda: len(second.assigned) == 1, "a partition of the second member")
            wait_until(lambda: len(group.assigned) == 1, "a partition left")
            (lost,) = second.assigned
            with pytest.raises(pylogctl.Conflict, match=lost.name):
                group.commit()
            group.commit()  # what is lost was said
    with join(client, topic, commit="manual") as again:
        assert {next(again).partition for _ in range(4)} == {lost}


@pytest.mark.parametrize("one_by_one", [False, True])
def test_group_when_it_commits_in_on_revoked_then_the_next_owner_goes_on_behind(
    client: pylogctl.Client, topic: str, one_by_one: bool
) -> None:
    last: dict[pylogctl.TopicPartition, pylogctl.Message] = {}
    committed: list[pylogctl.TopicPartition] = []

    def commit(group: pylogctl.Group, revoked: frozenset[pylogctl.TopicPartition]) -> None:
        if one_by_one:
            for one in revoked:
                group.commit(last[one])
        else:
            group.commit()
        committed.extend(revoked)

    with join(client, topic, commit="manual", idle=1, on_revoked=commit) as group:
        read: list[pylogctl.Message] = []

        def has_all() -> bool:  # its idle time can be over before a message comes
            read.extend(group)
            return len(read) == 8

        wait_until(has_all, "all messages")
        last = {one.partition: one for one in read}
        with join(client, topic, commit="manual", idle=60) as second:
            wait_until(lambda: list(group) or len(second.assigned) == 1, "a partition to go")
            assert committed == list(second.assigned)
            client.send(topic, "late", partition=committed[0].name)
            assert next(second).text() == "late"
        group.commit()


def test_group_when_on_revoked_does_not_return_then_partitions_go_and_its_commit_is_a_conflict(
    client: pylogctl.Client, topic: str
) -> None:
    may_go = threading.Event()
    errors: list[pylogctl.Error] = []

    def hang(group: pylogctl.Group, _: frozenset[pylogctl.TopicPartition]) -> None:
        may_go.wait(60)
        try:
            group.commit()
        except pylogctl.Conflict as error:
            errors.append(error)

    with join(client, topic, commit="manual", on_revoked=hang) as group:
        take(group, 8)
        worker = threading.Thread(target=lambda: next(group))
        worker.start()
        with join(client, topic, commit="manual") as second:
            wait_until(lambda: len(second.assigned) == 1, "a partition to go", deadline_s=50)
            (gone,) = second.assigned
            may_go.set()
            wait_until(lambda: errors, "a conflict")
            assert gone.name in str(errors[0])
            client.send(topic, "late", partition=next(iter(group.assigned)).name)
            worker.join(60)


def test_run_when_a_partition_is_revoked_then_its_message_in_hand_is_handled_first_and_committed(
    client: pylogctl.Client, topic: str
) -> None:
    begun, ended, told = [], [], []
    may_go = threading.Event()

    def handle(message: pylogctl.Message) -> None:
        begun.append(message)
        if message.offset == 0:
            may_go.wait(60)
        ended.append(message)

    def note(_: pylogctl.Group, revoked: frozenset[pylogctl.TopicPartition]) -> None:
        mine = [one for one in begun if one.partition in revoked]
        told.append(all(one in ended for one in mine))

    group = join(client, topic, on_revoked=note)
    running = threading.Thread(target=group.run, args=(handle,), kwargs={"parallel": 2})
    running.start()
    wait_until(lambda: begun, "a message in hand")
    with join(client, topic) as second:
        wait_until(lambda: len(group.assigned) == 1, "a partition to be revoked")
        may_go.set()
        wait_until(lambda: second.assigned, "a partition to go")
        assert told == [True]
        (gone,) = second.assigned
        handled = {one.text() for one in ended if one.partition == gone}
        rest = [] if len(handled) == 4 else take(second, 4 - len(handled))
        assert handled.isdisjoint(rest)
        group.close()
    running.join(60)


@pytest.mark.parametrize("commits_in_on_revoked", [False, True])
def test_group_when_workers_connect_again_after_errors_then_all_partitions_have_an_owner_soon(
    cluster: Cluster, client: pylogctl.Client, commits_in_on_revoked: bool
) -> None:
    topic = f"steered-{next(_numbers)}"
    client.create_topic(topic, partitions=6)
    group_name = f"workers-{topic}"
    partitions = [one.partition for one in client.describe(topic)]
    ends = [threading.Event() for _ in range(5)]
    errors: list[pylogctl.Error] = []
    handled = dict.fromkeys(partitions, 0)

    def feed() -> None:
        while not ends[-1].is_set():
            for one in partitions:
                client.send_many(topic, ["x"] * 5, partition=one)
            ends[-1].wait(0.02)

    def commit(group: pylogctl.Group, _: frozenset[pylogctl.TopicPartition]) -> None:
        group.commit()

    def work(end: threading.Event) -> None:
        while not end.is_set():
            try:
                with (
                    cluster.connect() as connected,
                    connected.group(
                        group_name,
                        topic,
                        start="earliest",
                        commit="manual",
                        idle=0.2,
                        on_revoked=commit if commits_in_on_revoked else None,
                    ) as group,
                ):
                    numbers = itertools.count(1)
                    while not end.is_set():
                        for message in group:
                            handled[message.partition] += 1
                            if next(numbers) % 500 == 0:
                                group.commit()
                            if end.wait(0.001):
                                break
            except pylogctl.Error as error:
                errors.append(error)
                end.wait(0.2)

    def await_settled(count: int) -> None:
        wait_until(
            lambda: (
                len(client.describe_group(group_name).members) == count
                and not client.verify_group(group_name)
            ),
            f"an owner of each partition, {count} members, after {errors}",
            deadline_s=30,
        )
        before = handled.copy()
        wait_until(
            lambda: all(handled[one] > before[one] + 20 for one in partitions),
            f"messages of each partition, after {errors}",
            deadline_s=30,
        )

    threads = [threading.Thread(target=work, args=(end,)) for end in ends[:4]]
    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        for thread in threads[:3]:
            thread.start()
        await_members(client, group_name, 3)
        await_settled(3)
        ends[0].set()
        await_settled(2)
        threads[3].start()
        await_settled(3)
        ends[1].set()
        ends[2].set()
        await_settled(1)
    finally:
        for end in ends:
            end.set()
        for thread in filter(threading.Thread.is_alive, [*threads, feeder]):
            thread.join(60)
    assert not errors  # each made a worker leave, and the others divide the partitions again


def await_members(client: pylogctl.Client, group: str, count: int) -> None:
    def have_joined() -> bool:
        return any(one.name == group and len(one.members) == count for one in client.groups())

    wait_until(have_joined, f"{count} members")


def test_group_when_sought_into_a_compressed_set_then_it_goes_on_at_that_message(
    client: pylogctl.Client, topic: str
) -> None:
    with client.producer(codec="gzip") as producer:
        producer.send_many(topic, ["w", "x", "y", "z"], partition="0-0")
    with join(client, topic, start="end", commit="manual") as group:
        wait_until(lambda: len(group.assigned) == 2, "both partitions")
        group.seek("0-0", "-2")
        message = next(group)
        assert (message.text(), message.inner) == ("y", 2)
        group.commit(message)
        assert next(group).text() == "z"


def test_group_when_iterated_by_two_threads_then_the_second_one_is_refused(
    client: pylogctl.Client, topic: str
) -> None:
    with join(client, topic, start="latest") as group:
        thread = threading.Thread(target=lambda: list(group))
        thread.start()
        wait_until(lambda: group._is_inside, "a thread that waits for messages")
        for call in (lambda: next(group), lambda: next(iter(group)), lambda: group.run(print)):
            with pytest.raises(RuntimeError, match="iterated at this moment"):
                call()
    thread.join(60)
    assert not thread.is_alive()


def test_group_when_closed_by_another_thread_then_it_waits_for_the_message_in_hand(
    client: pylogctl.Client, topic: str
) -> None:
    group = join(client, topic)
    got: list[str] = []
    has_one, may_go = threading.Event(), threading.Event()

    def work() -> None:
        for message in group:
            got.append(message.text())
            has_one.set()
            may_go.wait(60)

    worker = threading.Thread(target=work)
    worker.start()
    assert has_one.wait(60)
    closer = threading.Thread(target=group.close)
    closer.start()
    time.sleep(0.3)
    assert closer.is_alive()
    may_go.set()
    closer.join(60)
    worker.join(60)
    assert len(got) == 1
    with join(client, topic) as again:
        assert got[0] not in take(again, 7)  # it was handled, and committed


def test_group_when_its_reader_never_comes_back_then_close_ends_in_time(
    client: pylogctl.Client, topic: str
) -> None:
    group = join(client, topic)
    has_one, may_go = threading.Event(), threading.Event()

    def work() -> None:
        next(group)
        has_one.set()
        may_go.wait(60)

    worker = threading.Thread(target=work)
    worker.start()
    assert has_one.wait(60)
    started_s = time.monotonic()
    group.close(timeout=2)
    assert 1 < time.monotonic() - started_s < 20
    may_go.set()
    worker.join(60)


@pytest.mark.parametrize(("parallel", "commit"), [(1, "after"), (3, "after"), (3, "before")])
def test_run_when_it_ends_then_all_are_handled_in_order_and_committed(
    client: pylogctl.Client, topic: str, parallel: int, commit: str
) -> None:
    got: list[tuple[str, int]] = []

    def handle(message: pylogctl.Message) -> None:
        time.sleep(0.01)
        got.append((message.text(), threading.get_ident()))

    with join(client, topic, idle=5, commit=commit) as group:
        group.run(handle, parallel=parallel)
    for letter in "ab":
        assert [text for text, _ in got if text[0] == letter] == [f"{letter}{n}" for n in range(4)]
    threads = {ident for _, ident in got}
    assert (threads == {threading.get_ident()}) is (parallel == 1)
    with join(client, topic, idle=1.5) as again:
        assert list(again) == []


@pytest.mark.parametrize("parallel", [1, 3])
def test_run_when_the_handler_fails_then_its_error_is_raised_and_the_message_not_done(
    client: pylogctl.Client, topic: str, parallel: int
) -> None:
    done: list[str] = []

    def handle(message: pylogctl.Message) -> None:
        if message.text() == "a2":
            raise KeyError("of the program")
        done.append(message.text())

    with join(client, topic) as group, pytest.raises(KeyError, match="of the program"):
        group.run(handle, parallel=parallel)
    with join(client, topic) as again:
        rest = take(again, 8 - len(done))
    assert sorted(done + rest) == ALL
    assert "a2" in rest


@pytest.mark.parametrize("parallel", [1, 2])
def test_run_when_it_may_retry_then_a_failed_message_is_handled_later_and_holds_up_none(
    client: pylogctl.Client, topic: str, tmp_path: Path, parallel: int
) -> None:
    got: list[str] = []
    failures = iter(range(3))

    def handle(message: pylogctl.Message) -> None:
        if message.text() == "a0" and next(failures, None) is not None:
            raise ValueError("not yet")
        got.append(message.text())
        if len(got) == 8:
            threading.Thread(target=group.close).start()

    retry = pylogctl.RetryPolicy(tmp_path / "retries", retries=1, backoff=0.2)
    with join(client, topic) as group:
        group.run(handle, parallel=parallel, retry=retry)
    assert sorted(got) == ALL
    assert got.index("a0") > got.index("a1")
    with join(client, topic, idle=1.5) as again:
        assert list(again) == []


def test_run_when_closed_by_the_handler_then_it_ends_behind_that_message(
    client: pylogctl.Client, topic: str
) -> None:
    got: list[str] = []
    group = join(client, topic)

    def handle(message: pylogctl.Message) -> None:
        got.append(message.text())
        group.close()

    group.run(handle)
    assert len(got) == 1
    with pytest.raises(pylogctl.Closed):
        group.run(handle)


def test_run_when_given_bad_input_then_says_what_is_wrong(
    client: pylogctl.Client, topic: str, tmp_path: Path
) -> None:
    with join(client, topic) as group:
        with pytest.raises(TypeError, match="a function of a message, not str"):
            group.run("x")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="parallel is at least 1"):
            group.run(print, parallel=0)
    with pytest.raises(ValueError, match="retries is at least 0"):
        pylogctl.RetryPolicy(tmp_path, retries=-1)
    with (
        join(client, topic, commit="manual") as group,
        pytest.raises(ValueError, match="`run` commits by itself"),
    ):
        group.run(print)

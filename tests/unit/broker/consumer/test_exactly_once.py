"""Results and offsets in one transaction: once each, however partitions go to and fro."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.consumer.chunk import Chunk, GroupMessage
from broker.consumer.committer import AssignedPartition
from broker.consumer.membership import Lease
from broker.consumer.offset_store import RESULTS_NAME, FileOffsets, SqliteOffsets
from broker.consumer.stream import ConsumerStream
from broker.errors import ConsumerTimeoutError
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.topic import MessagePosition, TopicPartition

PARTITION = TopicPartition("t", 0, 0)
LOG = b"".join(
    (
        encode([b"0", b"1"]),
        build_set([b"2", b"3", b"4", b"5"], Codec.GZIP),
        build_set([b"6"], Codec.GZIP),
        encode([b"7"]),
        build_set([b"8", b"9"], Codec.GZIP),
    )
)
ALL = [b"%d" % number for number in range(10)]


class Member:
    """A member of a group: what it owns, and the messages it was given and has not finished."""

    def __init__(self, store: SqliteOffsets | FileOffsets) -> None:
        self.store = store
        self.pending: list[GroupMessage] = []
        lease = Lease()
        lease.renew(time.monotonic() + 1000)
        self.stream = ConsumerStream(
            "t-0",
            lease,
            max_chunks=10,
            timeout_s=0,
            on_room=lambda: None,
            on_restart=store.restart,
            next_good_message=lambda _partition, _offset: None,
        )
        self._owned: AssignedPartition | None = None

    def claim(self) -> None:
        """Own the partition, and have what follows the stored position fetched."""
        position = self.store.load([PARTITION]).get(PARTITION, MessagePosition(0))
        self._owned = AssignedPartition(PARTITION, position, thread_id="g_c-0", committed=position)
        self.stream.assign(self._owned)
        self.stream.put(self._owned, Chunk(PARTITION, position.offset, LOG[position.offset :]))

    def release(self) -> None:
        if self._owned is not None:
            self.stream.revoke(self._owned)
            self._owned = None

    def take(self, count: int) -> None:
        """Ask for messages, to be finished later."""
        with suppress(ConsumerTimeoutError):
            for _ in range(count):
                self.pending.append(next(self.stream))

    def finish(self, count: int, *, fails: bool = False) -> None:
        """Store results of messages in one transaction, which may fail."""
        assert isinstance(self.store, SqliteOffsets)
        done, rest = self.pending[:count], self.pending[count:]
        with suppress(ZeroDivisionError), self.store.transaction() as database:
            for message in done:
                if self.store.finish(message):
                    database.execute("INSERT INTO results VALUES (?)", (message[4],))
            if fails:
                raise ZeroDivisionError
            self.pending = rest


@contextmanager
def two_members(directory: Path) -> Iterator[list[Member]]:
    """Two processes of a group, as far as a store can tell, on one database."""
    with ExitStack() as stack:
        stores = [stack.enter_context(SqliteOffsets(directory / "db", "g")) for _ in range(2)]
        with stores[0].transaction() as database:
            database.execute("CREATE TABLE results (payload)")
        yield [Member(store) for store in stores]


steps = st.one_of(
    st.tuples(st.just("take"), st.integers(1, 4)),
    st.tuples(st.just("finish"), st.integers(1, 5)),
    st.tuples(st.just("fail"), st.integers(1, 5)),
    st.tuples(st.just("move"), st.just(0)),
)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 1), steps), max_size=30))
def test_sqlite_when_a_partition_goes_to_and_fro_then_every_message_counts_once(
    script: list[tuple[int, tuple[str, int]]],
) -> None:
    with TemporaryDirectory() as directory, two_members(Path(directory)) as members:
        members[0].claim()
        for who, (step, count) in [*script, (0, ("move", 0))]:
            member = members[who]
            if step == "take":
                member.take(count)
            elif step == "move":
                for one in members:
                    one.release()
                member.claim()
            else:
                member.finish(count, fails=step == "fail")

        members[0].take(len(ALL))
        for member in members:  # the one that lost the partition as well
            member.finish(len(member.pending))

        with members[0].store.transaction() as database:  # type: ignore[union-attr]
            found = Counter(payload for (payload,) in database.execute("SELECT * FROM results"))
        assert found == Counter(ALL)


def test_file_when_a_set_is_lost_and_regained_with_one_in_hand_then_each_counts_once(
    tmp_path: Path,
) -> None:
    """As after an expired session: the same set comes again, from the messages done until then."""
    with FileOffsets(tmp_path) as store:
        member = Member(store)
        member.claim()
        member.take(4)
        in_hand = member.pending.pop()
        for message in member.pending:
            assert store.finish(message)
            store.results.write(message[4])
        member.release()
        member.claim()

        assert store.finish(in_hand)
        store.results.write(in_hand[4])
        member.pending.clear()
        member.take(len(ALL))
        for message in member.pending:
            if store.finish(message):
                store.results.write(message[4])
        store.checkpoint()

    assert (tmp_path / RESULTS_NAME).read_bytes() == b"".join(ALL)

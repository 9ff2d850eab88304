"""From chunks of input to sets, in blocks of text and message by message, without a broker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import BrokerError
from broker.producer.producer import Delivery, Producer
from broker.protocol.codec import decode
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition
from pylogctl.format.framing import Framing, Shape
from pylogctl.format.framing_reader import ChunkReader, Framed, Refuse, read_messages
from pylogctl.produce.batcher import Batcher, BatchLimits, Lines, Refusals, UnsentMessage
from pylogctl.produce.input_reader import STDIN, Idle, InputReader, InputStopped
from pylogctl.produce.sender import MessageBatch, Sender

T = TopicPartition("t", 0, 0)
LIMITS = BatchLimits(message_bytes=1 << 20, batch_messages=3, batch_bytes=1 << 20, linger_s=60)


class Collector(Producer):
    """A sink that keeps the payloads of each set."""

    def __init__(self) -> None:
        self.sets: list[list[bytes]] = []
        self.flush_count = 0
        self.limit = sys.maxsize

    @property
    def messages(self) -> list[bytes]:
        return [payload for one in self.sets for payload in one]

    def message_limit(self, partition: TopicPartition) -> int:
        return self.limit

    def send_set(
        self,
        partition: TopicPartition,
        message_set: Buffer,
        on_complete: Callable[[Delivery], None] | None = None,
        *,
        can_move: bool = False,
    ) -> Delivery:
        self.sets.append([payload for _, _, payload in decode(message_set, 0).messages])
        delivery = Delivery(partition, message_set, None, on_complete)
        delivery.complete(-1, None)
        return delivery

    def poll(self) -> None:
        raise AssertionError("reading asks for no acknowledgements")

    def flush(self, timeout_s: float | None = None) -> None:
        self.flush_count += 1

    def wait_until_readable(self) -> None:
        raise AssertionError("reading does not wait until consumers can read")


class Chunks(InputReader):
    """An input that comes in given chunks; before each it is idle, or more is there already."""

    def __init__(self, chunks: list[bytes], *, is_idle: bool = False, stops: bool = False) -> None:
        self.file_name = STDIN
        self._chunks = iter([chunk for chunk in chunks if chunk])
        self._is_idle = is_idle
        self._stops = stops
        self._idle = None
        self.due_s: list[float | None] = []

    def attend(self, idle: Idle) -> None:
        self._idle = idle

    def is_ready(self, timeout_s: float | None = 0.0) -> bool:
        return not self._is_idle

    def read1(self, size: int, /) -> bytes:
        if self._is_idle:
            assert self._idle is not None
            self.due_s.append(self._idle.due_s())
            self._idle.on_idle()
        chunk = next(self._chunks, b"")
        if not chunk and self._stops:
            raise InputStopped
        return chunk


def refused(batch: MessageBatch, error: BrokerError) -> None:
    raise AssertionError("no batch is refused")


def make_sender(sink: Collector) -> Sender:
    return Sender(sink, refused=refused)


class Framings:
    """A splitter whose messages all go to one partition."""

    def __init__(self, framing: Framing, message_bytes: int) -> None:
        self._framing = framing
        self._message_bytes = message_bytes

    def split(self, stream: ChunkReader, refuse: Refuse) -> Iterator[Framed]:
        limit = self._message_bytes
        return read_messages(stream, self._framing, max_message_bytes=limit, refuse=refuse)

    def message_of(self, framed: Framed, number: int) -> UnsentMessage | None:
        return UnsentMessage(T, framed.payload)


def text_batcher(
    sink: Collector,
    delimiter: bytes = b"\n",
    *,
    limits: BatchLimits = LIMITS,
    quota: int | None = None,
    refusals: Refusals | None = None,
    accepted: Callable[[bytes], None] | None = None,
) -> Batcher:
    return Batcher(
        make_sender(sink),
        Lines(T, delimiter),
        limits=limits,
        max_messages=quota,
        refusals=refusals or Refusals(skips=False, tell=print),
        accepted=accepted,
    )


def message_batcher(
    sink: Collector,
    framing: Framing,
    *,
    limits: BatchLimits = LIMITS,
    quota: int | None = None,
    refusals: Refusals | None = None,
) -> Batcher:
    return Batcher(
        make_sender(sink),
        Framings(framing, limits.message_bytes),
        limits=limits,
        max_messages=quota,
        refusals=refusals or Refusals(skips=False, tell=print),
    )


def cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    """Cut data into chunks of the given sizes, over and over."""
    place = turn = 0
    while place < len(data):
        size = sizes[turn % len(sizes)] if sizes else len(data)
        yield data[place : place + size]
        place, turn = place + size, turn + 1


def split(data: bytes, delimiter: bytes) -> list[bytes]:
    pieces = data.split(delimiter)
    return pieces if pieces[-1] else pieces[:-1]


delimited = st.tuples(
    st.sampled_from([b"\n", b"ab", b"aa", b"aba", b"\r\n"]),
    st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r", b"xyz"]), max_size=40).map(b"".join),
    st.lists(st.integers(1, 9), max_size=4),
    st.booleans(),
)


@given(delimited, st.integers(1, 4), st.integers(0, 30), st.none() | st.integers(0, 8))
def test_text_batcher_given_any_chunks_sends_the_pieces_in_order(
    given_input: tuple[bytes, bytes, list[int], bool],
    batch_messages: int,
    batch_bytes: int,
    quota: int | None,
) -> None:
    delimiter, data, sizes, is_idle = given_input
    limits = BatchLimits(1 << 20, batch_messages, batch_bytes, 0.0)
    sink = Collector()
    batcher = text_batcher(sink, delimiter, limits=limits, quota=quota)
    batcher.read(Chunks(list(cut(data, sizes)), is_idle=is_idle))
    assert sink.messages == split(data, delimiter)[:quota]
    assert all(len(one) <= batch_messages for one in sink.sets)


@given(delimited, st.integers(0, 6), st.none() | st.integers(0, 8), st.booleans())
def test_batcher_given_lines_above_the_limit_leaves_just_those_out(
    given_input: tuple[bytes, bytes, list[int], bool],
    limit: int,
    quota: int | None,
    by_message: bool,
) -> None:
    delimiter, data, sizes, is_idle = given_input
    told: list[str] = []
    sink = Collector()
    limits = BatchLimits(limit, 3, 1000, 0.0)
    refusals = Refusals(skips=True, tell=told.append)
    if by_message:
        framing = Framing(Shape.DELIMITED, delimiter)
        batcher = message_batcher(sink, framing, limits=limits, quota=quota, refusals=refusals)
    else:
        batcher = text_batcher(sink, delimiter, limits=limits, quota=quota, refusals=refusals)
    batcher.read(Chunks(list(cut(data, sizes)), is_idle=is_idle))
    pieces = split(data, delimiter)
    assert sink.messages == [piece for piece in pieces if len(piece) <= limit][:quota]
    for text in told:
        number, position, size = _numbers(text)
        assert len(pieces[number - 1]) == size > limit
        assert position == sum(len(piece) + len(delimiter) for piece in pieces[: number - 1])


@given(delimited, st.integers(0, 6), st.none() | st.integers(0, 8), st.booleans())
def test_batcher_given_lines_that_a_broker_may_refuse_sends_each_alone_and_all_in_order(
    given_input: tuple[bytes, bytes, list[int], bool],
    limit: int,
    quota: int | None,
    by_message: bool,
) -> None:
    delimiter, data, sizes, is_idle = given_input
    sink = Collector()
    sink.limit = limit
    if by_message:
        batcher = message_batcher(sink, Framing(Shape.DELIMITED, delimiter), quota=quota)
    else:
        batcher = text_batcher(sink, delimiter, quota=quota)
    batcher.read(Chunks(list(cut(data, sizes)), is_idle=is_idle))
    assert sink.messages == split(data, delimiter)[:quota]
    for one in sink.sets:
        assert len(one) == 1 or max(map(len, one)) <= limit


def test_batcher_when_a_broker_may_refuse_a_message_then_waits_for_its_answer() -> None:
    sink = Collector()
    sink.limit = 1
    waited: list[int] = []
    sender = Sender(sink, refused=refused)
    sender.flush = lambda: waited.append(len(sink.sets))  # type: ignore[method-assign]
    batcher = Batcher(
        sender,
        Lines(T, b"\n"),
        limits=LIMITS,
        max_messages=None,
        refusals=Refusals(skips=False, tell=print),
    )
    batcher.read(Chunks([b"1\n2\n33\n4\n"]))
    assert (sink.sets, waited) == ([[b"1", b"2"], [b"33"], [b"4"]], [2])


def _numbers(text: str) -> tuple[int, int, int]:
    words = text.split()
    return int(words[1]), int(words[4].rstrip(")")), int(words[6])


@given(delimited)
def test_text_batcher_gives_back_the_bytes_it_accepted(
    given_input: tuple[bytes, bytes, list[int], bool],
) -> None:
    delimiter, data, sizes, is_idle = given_input
    accepted: list[bytes] = []
    batcher = text_batcher(Collector(), delimiter, accepted=accepted.append)
    batcher.read(Chunks(list(cut(data, sizes)), is_idle=is_idle))
    assert b"".join(accepted) == data
    assert batcher.position == len(data)


def test_text_batcher_when_more_is_there_collects_before_it_sends() -> None:
    sink = Collector()
    text_batcher(sink).read(Chunks([b"1\n2\n3\n", b"4\n5\n"]))
    assert sink.sets == [[b"1", b"2", b"3"], [b"4", b"5"]]


def test_text_batcher_when_idle_sends_and_waits_for_the_acknowledgement() -> None:
    sink = Collector()
    chunks = Chunks([b"1\n", b"2"], is_idle=True)
    text_batcher(sink).read(chunks)
    assert sink.messages == [b"1", b"2"]
    assert [due is None for due in chunks.due_s] == [True, False, True]


@pytest.mark.parametrize("framing", [Framing(Shape.DELIMITED), Framing(Shape.HEX)])
def test_batcher_when_stopped_sends_whole_messages_only(framing: Framing) -> None:
    sink = Collector()
    chunks = Chunks([b"61\n62\n6"], stops=True)
    batcher = (
        text_batcher(sink) if framing.shape is Shape.DELIMITED else message_batcher(sink, framing)
    )
    with pytest.raises(InputStopped):
        batcher.read(chunks)
    expected = [b"61", b"62"] if framing.shape is Shape.DELIMITED else [b"a", b"b"]
    assert (sink.messages, batcher.position) == (expected, 6)


def test_text_batcher_numbers_messages_through_all_inputs() -> None:
    numbers: list[int] = []
    sink = Collector()
    sender = Sender(
        sink,
        refused=refused,
        observers=[lambda confirmed: numbers.extend(confirmed.batch.numbers)],
    )
    batcher = Batcher(
        sender,
        Lines(T, b"\n"),
        limits=LIMITS,
        max_messages=None,
        refusals=Refusals(skips=False, tell=print),
    )
    for text in (b"1\n2", b"3\n", b"", b"4\n5\n6\n7\n"):
        batcher.read(Chunks([text]))
    assert numbers == [1, 2, 3, 4, 5, 6, 7]


@given(delimited, st.integers(1, 4), st.integers(0, 30), st.none() | st.integers(0, 8))
def test_message_batcher_given_any_chunks_sends_the_pieces_in_order(
    given_input: tuple[bytes, bytes, list[int], bool],
    batch_messages: int,
    batch_bytes: int,
    quota: int | None,
) -> None:
    delimiter, data, sizes, is_idle = given_input
    limits = BatchLimits(1 << 20, batch_messages, batch_bytes, 0.0)
    sink = Collector()
    batcher = message_batcher(sink, Framing(Shape.DELIMITED, delimiter), limits=limits, quota=quota)
    batcher.read(Chunks(list(cut(data, sizes)), is_idle=is_idle))
    assert sink.messages == split(data, delimiter)[:quota]
    assert all(len(one) <= batch_messages for one in sink.sets)


def test_text_batcher_when_a_line_comes_in_many_chunks_looks_at_each_byte_once() -> None:
    # 64 MiB in one line of 4 KiB chunks takes minutes if every chunk copies what came before.
    sink = Collector()
    limits = LIMITS._replace(message_bytes=128 << 20)
    text_batcher(sink, limits=limits).read(Chunks([b"x" * 4096] * (64 << 8)))
    assert [len(message) for message in sink.messages] == [64 << 20]


def test_text_batcher_when_all_wanted_messages_are_there_then_reads_no_more() -> None:
    sink = Collector()
    chunks = Chunks([b"1\n2\n", b"3\n"], is_idle=True)
    text_batcher(sink, quota=2).read(chunks)
    assert (sink.messages, len(chunks.due_s)) == ([b"1", b"2"], 1)


@pytest.mark.parametrize("is_idle", [False, True])
def test_text_batcher_when_enough_messages_stand_before_a_line_too_long_then_it_does_not_matter(
    is_idle: bool,
) -> None:
    sink = Collector()
    batcher = text_batcher(sink, quota=2, limits=LIMITS._replace(message_bytes=3))
    batcher.read(Chunks([b"1\n2\nabcdef", b"ghi\n3\n"], is_idle=is_idle))
    assert sink.messages == [b"1", b"2"]

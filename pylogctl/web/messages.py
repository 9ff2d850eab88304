"""Pages of messages: the next ones, or those before, of one partition or of several.

Offsets are bytes, so where a page before starts is found by reading: from message boundaries ever
further back, up to the position that is known.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from broker.api.client import Client
from broker.api.errors import CorruptMessage
from broker.errors import ArgumentError, BrokerError, SchemaMismatchError
from broker.protocol.codec import Message
from broker.schemas.payloads import Decoder, remembering, split, to_json
from broker.topic import MessagePosition, TopicPartition
from broker.units import counted, format_time
from pylogctl.web.problems import ProblemError

MAX_ROWS = 500
_BUDGET_S = 10.0
_BUDGET_BYTES = 64 << 20
_FIRST_WINDOW_BYTES = 64 << 10  # that is read backwards; each next one is larger
_MAX_WINDOW_BYTES = 8 << 20
_DECODED_BYTES = 256 << 10  # a larger value is shown as it is

Positions = Mapping[TopicPartition, MessagePosition]


class ShownMessage(NamedTuple):
    """A message, or a place where there is none that can be read."""

    partition: TopicPartition
    offset: int
    inner: int  # the place in a compressed set
    value: bytes
    problem: str  # why it cannot be read; empty if it can
    next_offset: int
    note: str = ""  # by which schema the value is decoded, or why it is not
    sent: str = ""  # when, where and as which message it was made, by its envelope

    @classmethod
    def of(cls, one: Message) -> ShownMessage:
        """Return a message that a client has read."""
        sent = ""
        if one.envelope is not None:
            time_us, host, producer, number = one.envelope
            sent = f"{format_time(time_us // 1000)} by {host}, number {number} of {producer:08x}"
        place = one.partition, one.offset, one.inner
        return cls(*place, one.value, "", one.next_offset, sent=sent)


class MessagePage(NamedTuple):
    """Messages of partitions, between two positions of each."""

    rows: Sequence[ShownMessage]  # by partition and offset
    start: Positions
    end: Positions
    has_older: bool
    has_newer: bool
    scanned_bytes: int
    stopped: Literal["limit", "end", "bytes", "time"]


@dataclass(slots=True)
class PageBudget:
    """How much may be read for a page, and how long."""

    seconds: float = _BUDGET_S
    max_bytes: int = _BUDGET_BYTES
    used_bytes: int = 0
    _end_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._end_s = time.monotonic() + self.seconds

    @property
    def spent(self) -> Literal["", "bytes", "time"]:
        """What is used up; empty if there is some of both."""
        if self.used_bytes >= self.max_bytes:
            return "bytes"
        return "time" if time.monotonic() > self._end_s else ""


def cursor_of(positions: Positions) -> str:
    """Return positions as text, such as `0-0:8192,0-1:77.3`."""
    return ",".join(
        f"{one.name}:{at.offset}" + (f".{at.inner}" if at.inner else "")
        for one, at in positions.items()
    )


def parse_cursor(topic: str, text: str) -> dict[TopicPartition, MessagePosition]:
    """Return the positions of `cursor_of`."""
    found = {}
    for item in text.split(","):
        match = re.fullmatch(r"((?:\d+-)?\d+):(\d{1,19})(?:\.(\d{1,9}))?", item, re.ASCII)
        if match is None:
            raise ArgumentError(f"not a position: '{item}'", hints=["valid: 0-0:8192,0-1:77"])
        partition = TopicPartition.named(topic, match[1])
        found[partition] = MessagePosition(int(match[2]), int(match[3] or 0))
    return found


def read_page(
    client: Client,
    topic: str,
    positions: Positions,
    *,
    is_backward: bool,
    limit: int,
    contains: str = "",
    budget: PageBudget | None = None,
) -> MessagePage:
    """Return up to `limit` messages from positions on, or before them; blocks.

    Args:
        client: of the cluster.
        topic: its name.
        positions: where to read from, in each partition that is wanted.
        is_backward: whether the messages before the positions are wanted.
        limit: counts messages that are found, not those that are read.
        contains: only messages with this text, which brokers look for.
        budget: beyond it the page ends, wherever that is.
    """
    budget = budget or PageBudget()
    names = list(positions)
    first = client.offsets(topic, "earliest", partition=names)
    last = client.offsets(topic, "end", partition=names)
    pattern = re.escape(contains) if contains else None
    walks = []
    for partition, at in positions.items():
        if at.offset < first[partition]:  # retention has removed it
            at = MessagePosition(first[partition])
        elif at.offset > last[partition]:
            at = MessagePosition(last[partition])
        walks.append(
            _Walk(client, partition, first[partition], last[partition], pattern, budget, at, at)
        )
    left = limit
    for share in (max(1, limit // len(walks)), limit):  # a fair part of each, then the rest
        for walk in walks:
            count = min(share, left)
            if count and not budget.spent:
                left -= walk.read_older(count) if is_backward else walk.read_newer(count)
    ends = all(walk.is_at_start if is_backward else walk.is_at_end for walk in walks)
    return MessagePage(
        [row for walk in walks for row in walk.rows],
        {walk.partition: walk.start for walk in walks},
        {walk.partition: walk.end for walk in walks},
        not all(walk.is_at_start for walk in walks),
        not all(walk.is_at_end for walk in walks),
        budget.used_bytes,
        budget.spent or ("end" if ends else "limit"),
    )


@dataclass(slots=True)
class _Walk:
    """The rows of a partition between two positions, which are moved apart."""

    client: Client
    partition: TopicPartition
    first: int
    last: int
    pattern: str | None
    budget: PageBudget
    start: MessagePosition
    end: MessagePosition
    rows: list[ShownMessage] = field(default_factory=list)

    @property
    def is_at_start(self) -> bool:
        return self.start <= (self.first, 0)

    @property
    def is_at_end(self) -> bool:
        return self.end.offset >= self.last

    def read_newer(self, count: int) -> int:
        """Add up to `count` rows at the end; return how many."""
        added = 0
        while added < count and not self.is_at_end and not self.budget.spent:
            stop = min(self.end.offset + _MAX_WINDOW_BYTES, self.last)
            rows, self.end = self._read(self.end, stop, count - added)
            self.rows += rows
            added += len(rows)
        return added

    def read_older(self, count: int) -> int:
        """Add up to `count` rows at the start; return how many."""
        added, window = 0, _FIRST_WINDOW_BYTES
        while added < count and not self.is_at_start and not self.budget.spent:
            wanted = max(self.first, self.start.offset - window)
            lower = self._boundary_from(wanted) if wanted > self.first else wanted
            window *= 4
            if (lower, 0) >= self.start:  # the message before is larger than the window
                continue
            rows = self._read_up_to(MessagePosition(lower), self.start)
            rows = rows[-(count - added) :]
            self.rows[:0] = rows
            added += len(rows)
            is_enough = added == count
            self.start = MessagePosition(*rows[0][1:3]) if is_enough else MessagePosition(lower)
            window = min(window, _MAX_WINDOW_BYTES)
        return added

    def _boundary_from(self, offset: int) -> int:
        found = self.client.offsets(
            self.partition.topic, f"~{offset}", partition=self.partition.name
        )
        return found[self.partition]

    def _read_up_to(self, start: MessagePosition, end: MessagePosition) -> list[ShownMessage]:
        rows: list[ShownMessage] = []
        # an entry that `end` is inside is read as a whole
        stop = end.offset if end.inner == 0 else self.last
        while start < end and not self.budget.spent:
            found, start = self._read(start, stop, None, end)
            rows += found
        return [one for one in rows if one[1:3] < end]

    def _read(
        self,
        start: MessagePosition,
        stop: int,
        count: int | None,
        end: MessagePosition | None = None,
    ) -> tuple[list[ShownMessage], MessagePosition]:
        """Return up to `count` rows up to about `stop`, and the position after them."""
        rows: list[ShownMessage] = []
        partition, budget = self.partition, self.budget
        with self.client.read(
            partition.topic,
            partition=partition.name,
            start=start.offset,
            stop=stop if stop in (self.last, self.start.offset) else f"~{stop}",
            filter=self.pattern,
        ) as reader:
            try:
                for one in reader:
                    at = MessagePosition(one.offset, one.inner)
                    if at < start:
                        continue
                    if len(rows) == count or (end is not None and at >= end) or budget.spent:
                        budget.used_bytes += at.offset - start.offset
                        return rows, at
                    rows.append(ShownMessage.of(one))
            except CorruptMessage as error:
                at = MessagePosition(reader.positions[partition])
                following = MessagePosition(self._boundary_from(min(at.offset + 1, self.last)))
                if count is None or len(rows) < count:
                    rows.append(ShownMessage(partition, *at, b"", str(error), following.offset))
                    at = following
            else:
                at = MessagePosition(reader.positions[partition])
        budget.used_bytes += at.offset - start.offset
        return rows, at


class ValueDecoder:
    """Makes JSON of values that start with the id of a schema; for one request or stream."""

    def __init__(self, client: Client) -> None:
        self._decoder = Decoder(remembering(client.schema))
        self._is_off = False  # the brokers have no schemas, or do not show them

    def shown(self, row: ShownMessage) -> ShownMessage:
        """Return a message with its value decoded, or as it is with the reason."""
        if self._is_off or row.value[:1] != b"\0" or len(row.value) > _DECODED_BYTES:
            return row
        try:
            schema_id = split(row.value)[0]
            value = to_json(self._decoder.decode(row.value))
        except SchemaMismatchError as error:
            return row._replace(note=f"not decoded: {error}")
        except BrokerError as error:
            self._is_off = True
            return row._replace(note=f"not decoded: {error}")
        note = f"decoded by schema {schema_id}, of {counted(len(row.value), 'byte')}"
        return row._replace(value=value, note=note)


def chosen_of(
    topic: str, there: Iterable[TopicPartition], names: Collection[str]
) -> list[TopicPartition]:
    """Return the partitions of a topic that are named, or all of those that are there."""
    every = sorted(there)
    chosen = [one for one in every if not names or one.name in names]
    if len(chosen) < len(set(names)):
        has = ", ".join(one.name for one in every)
        raise ProblemError(
            404,
            f"'{topic}' has no partition {' or '.join(map(repr, names))}",
            hints=(f"it has {has}",),
        )
    return chosen


def text_of(data: bytes, *, is_cut: bool) -> str | None:
    """Return UTF-8 without control characters but tabs and line ends; None for anything else.

    A character that the cut has divided is left out.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not is_cut or error.start < len(data) - 3:
            return None
        text = data[: error.start].decode()
    is_text = all(one in "\t\r\n" or not (one < " " or "\x7f" <= one <= "\x9f") for one in text)
    return text if is_text else None


def start_positions(
    client: Client, topic: str, partitions: Iterable[TopicPartition], place: str
) -> dict[TopicPartition, MessagePosition]:
    """Return the position of a place such as `@-1h` or `4096` in each partition."""
    found = client.offsets(topic, place, partition=list(partitions))
    return {one: MessagePosition(offset) for one, offset in found.items()}

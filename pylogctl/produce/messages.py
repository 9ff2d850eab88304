"""Turns an input into records, and each record into a message and its partition.

A record is cut out by the framing, or is a field of CSV. Envelopes are opened, keys split off and
placeholders replaced. Bytes that are not UTF-8 are sent as they came in.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from broker.clock import Clock
from broker.errors import PluginError, SchemaMismatchError, did_you_mean
from broker.partition_patterns import PartitionPattern
from broker.producer.encoder import bytes_encoder
from broker.producer.producer import Producer
from broker.producer.stamper import Stamper
from broker.protocol.codec import Record
from broker.topic import NO_HOME, TopicPartition
from broker.units import format_time
from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.format import framing_reader
from pylogctl.format.framing import Framing, Shape, escape
from pylogctl.format.framing_reader import ChunkReader, Framed, Refuse, refuse_all
from pylogctl.produce.batcher import UnsentMessage
from pylogctl.produce.plan import ProducePlan

_MORE_COLUMNS_BYTES = 1 << 20
_BYTE_ORDER_MARK = "\ufeff"
_TOKEN = re.compile(rb"\{(?:(i|now|uuid)|rand:(\d{1,9}))\}")
_LETTERS = (string.ascii_letters + string.digits).encode()


class Outgoing(NamedTuple):
    """A payload to send, and the key or pattern that chooses its partition."""

    payload: bytes
    key: bytes | None = None
    partition: PartitionPattern | None = None
    record: Record | None = None  # what else a topic of format `kafka` stores

    @property
    def is_null(self) -> bool:
        """Return whether it is a record without a value, which deletes its key."""
        return self.record is not None and self.record.value is None


# by the number in the input and in the run; None for what no topic stores
_Step = Callable[[Outgoing, int, int], Outgoing | None]


@dataclass(eq=False)
class MessageSplitter:
    """Splits inputs into messages as the plan says; see `Splitter`.

    Attributes:
        fixed: the partition of all messages; None if each has its own.
        encode: makes payloads of JSON; None to send messages as they are.
    """

    plan: ProducePlan
    producer: Producer
    fixed: TopicPartition | None
    clock: Clock
    encode: Callable[[bytes], bytes] | None = None
    stamper: Stamper | None = None

    def __post_init__(self) -> None:
        plan = self.plan
        self._partitions: dict[PartitionPattern, TopicPartition] = {}  # that patterns have named
        key = plan.options.target.key  # of all messages
        self._key = None if key is None else key.encode("utf-8", "surrogateescape")
        self._headers = headers_of(plan.options.target.header or ())
        self._record = Record(0, -1, None, b"", self._headers) if self._headers else None
        self._steps: list[_Step] = []
        if plan.framing.shape is Shape.JSONL:
            self._steps.append(self._open_envelope)
        if plan.key_delimiter is not None:
            self._steps.append(_split_key(plan.key_delimiter, plan.framing))
        if plan.options.input.template:
            self._steps.append(self._expand_template)
        if self.encode is not None:
            self._steps.append(self._with_schema)
        if plan.encode is not bytes_encoder:
            self._steps.append(self._encode)

    def split(self, stream: ChunkReader, refuse: Refuse) -> Iterator[Framed]:
        """See `Splitter`."""
        plan, limit = self.plan, self.plan.limits.message_bytes
        if plan.options.input.csv_column is not None:
            column = plan.options.input.csv_column
            return read_column(stream, column, max_message_bytes=limit, refuse=refuse)
        # a key is cut off a message before its size is validated
        if plan.key_delimiter is not None:
            limit += limit
        return framing_reader.read_messages(
            stream, plan.framing, max_message_bytes=limit, refuse=refuse
        )

    def message_of(self, framed: Framed, number: int) -> UnsentMessage | None:
        """See `Splitter`."""
        try:
            return self._message_of(framed, number)
        except PluginError as error:
            text = f"message {framed.number}: {error}"
            raise CliError(ExitStatus.FAILED, text, *error.hints, code="PLUGIN") from error

    def _message_of(self, framed: Framed, number: int) -> UnsentMessage | None:
        outgoing = Outgoing(framed.payload, self._key, record=self._record)
        for step in self._steps:
            found = step(outgoing, framed.number, number)
            if found is None:
                return None
            outgoing = found
            if outgoing.is_null:
                break
        payload, limit = outgoing.payload, self.plan.limits.message_bytes
        if not payload and self.plan.options.input.skip_empty:
            return None
        target = self.fixed or self._partition_of(outgoing, framed.number)
        if self.stamper is not None and not target.has_records:
            (payload,) = self.stamper.stamp(self.plan.topic, [payload])
        if len(payload) > limit:
            raise framing_reader.too_large(framed.number, framed.position, len(payload), limit)
        record = outgoing.record
        if record is not None:
            time_ms = self.clock.time_ms() if record.timestamp < 0 else record.timestamp
            record = record._replace(timestamp=time_ms, key=outgoing.key)
        return UnsentMessage(target, payload, outgoing.key, record)

    def _partition_of(self, outgoing: Outgoing, line_number: int) -> TopicPartition:
        pattern, topic = outgoing.partition, self.plan.topic
        if pattern is None or not self.plan.options.target.keep_partition:
            return self.producer.choose_partition(topic, outgoing.key)
        if pattern not in self._partitions:
            home = "" if pattern.home in (None, NO_HOME) else f"{pattern.home}-"
            try:
                found = partition_for(self.producer, topic, f"{home}{pattern.first}", pattern)
            except CliError as error:
                message = f"line {line_number}: {error.message}"
                raise CliError(error.status, message, *error.hints, code=error.code) from error
            self._partitions[pattern] = found
        return self._partitions[pattern]

    def _open_envelope(self, outgoing: Outgoing, line_number: int, number: int) -> Outgoing | None:
        from pylogctl.format.envelope import read_envelope

        is_strict = self.plan.options.input.strict
        has_records = self.producer.partitions(self.plan.topic)[0].has_records
        found = read_envelope(
            outgoing.payload, line_number, strict=is_strict, has_record=has_records
        )
        payload, partition, record = found
        if payload is None and not has_records:
            return None
        if self.plan.options.target.keep_partition and partition is None:
            raise UsageError(f"line {line_number}: no partition, which --keep-partition needs")
        if record is None:
            return Outgoing(payload or b"", None, partition)
        record = record._replace(headers=(*record.headers, *self._headers))
        return Outgoing(payload or b"", record.key or self._key, partition, record)

    def _expand_template(self, outgoing: Outgoing, line_number: int, number: int) -> Outgoing:
        return outgoing._replace(payload=expand(outgoing.payload, number, self.clock))

    def _with_schema(self, outgoing: Outgoing, line_number: int, number: int) -> Outgoing:
        assert self.encode is not None
        if self.plan.options.input.skip_empty and not outgoing.payload.strip():
            return outgoing._replace(
                payload=b""
            )  # blanks are no JSON: an empty line that ends \r\n
        try:
            return outgoing._replace(payload=self.encode(outgoing.payload))
        except SchemaMismatchError as error:
            raise UsageError(
                f"{_unit(self.plan.framing)} {line_number}: {error}",
                "correct it, or --on-error skip leaves it out; schemas: pylogctl schema list",
            ) from error

    def _encode(self, outgoing: Outgoing, line_number: int, number: int) -> Outgoing:
        return outgoing._replace(payload=self.plan.encode(outgoing.payload))


def headers_of(given: Iterable[str]) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers that options give as NAME=VALUE."""
    found: list[tuple[str, bytes | None]] = []
    for text in given:
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise UsageError(f"--header takes NAME=VALUE, not '{text}'")
        found.append((name, value.encode("utf-8", "surrogateescape")))
    return tuple(found)


def _unit(framing: Framing) -> str:
    """Return what a message of the input is called."""
    by_line = (Shape.DELIMITED, Shape.HEX, Shape.BASE64, Shape.JSONL)
    is_by_line = framing.shape in by_line and framing.delimiter == b"\n"
    return "line" if is_by_line else "message"


def _split_key(delimiter: bytes, framing: Framing) -> _Step:
    shown, what = escape(delimiter), _unit(framing)

    def step(outgoing: Outgoing, line_number: int, number: int) -> Outgoing:
        key, found, payload = outgoing.payload.partition(delimiter)
        if not found:
            raise UsageError(f"{what} {line_number}: no key delimiter '{shown}' in it")
        return outgoing._replace(payload=payload, key=key)

    return step


def read_column(
    stream: ChunkReader, column: str, *, max_message_bytes: int, refuse: Refuse = refuse_all
) -> Iterator[Framed]:
    """Yield the fields of one column, record by record.

    Args:
        stream: RFC 4180 text; line ends may be LF or CRLF.
        column: its name in the first line.
        max_message_bytes: limit of a field.
        refuse: called for a record that is malformed or too short; the error names its first
            line.
    """
    import csv  # late: few inputs are CSV

    limit = 2 * max_message_bytes + _MORE_COLUMNS_BYTES
    csv.field_size_limit(limit)
    taken: list[Framed] = []  # the lines of a record
    lines = framing_reader.read_delimited(stream, b"\n", limit, refuse)
    rows = csv.reader(_recorded(lines, taken), strict=True)
    header = next(rows, None)
    if header is None:
        return
    place = _place_of(column, header)
    number = 0
    while True:
        taken.clear()
        try:
            row = next(rows, None)
        except csv.Error as error:
            number += 1
            refuse(number, UsageError(f"line {taken[0].number}: {error}"))
            continue
        if row is None:
            return
        if not row:
            continue
        number += 1
        if place >= len(row):
            text = f"line {taken[0].number}: {len(row)} fields, none for column '{column}'"
            refuse(number, UsageError(text))
            continue
        raw = b"".join([line.raw for line in taken])
        payload = row[place].encode("utf-8", "surrogateescape")
        yield Framed(number, taken[0].position, raw, payload)


def _recorded(lines: Iterable[Framed], taken: list[Framed]) -> Iterator[str]:
    """Yield lines for the csv module, which are added to `taken`."""
    for line in lines:
        taken.append(line)
        yield line.raw.decode("utf-8", "surrogateescape")


def _place_of(column: str, header: list[str]) -> int:
    names = [header[0].removeprefix(_BYTE_ORDER_MARK), *header[1:]] if header else []
    if column not in names:
        raise UsageError(
            f"no column '{column}' in line 1{did_you_mean(column, names)}",
            f"columns: {', '.join(names)}",
        )
    return names.index(column)


def expand(text: bytes, number: int, clock: Clock) -> bytes:
    """Return a message with its placeholders replaced.

    `{i}` is replaced by the number, `{now}` by the time in UTC, `{uuid}` by a random UUID,
    `{rand:N}` by N random letters and digits, N below 10^9.
    """

    def value(match: re.Match[bytes]) -> bytes:
        name, length = match.groups()
        if name == b"i":
            return b"%d" % number
        if name == b"now":
            return format_time(clock.time_ms()).encode()
        if name == b"uuid":
            import uuid  # late: few runs make ids

            return str(uuid.uuid4()).encode()
        return bytes(random.choices(_LETTERS, k=int(length)))

    return _TOKEN.sub(value, text)


def partition_for(
    producer: Producer, topic: str, text: str, pattern: PartitionPattern
) -> TopicPartition:
    """Return the one partition that a pattern matches; several, or none, are an error.

    Args:
        producer: knows the cluster; a topic that does not exist yet will get its partition.
        topic: the topic.
        text: the pattern as the user gave it.
        pattern: must match one partition.
    """
    known = producer.partitions(topic)
    fitting = [one for one in known if pattern.matches(one)]
    is_of_topic = pattern.topic in (None, topic)
    if not fitting and producer.is_new(topic) and is_of_topic and pattern.first == pattern.last:
        homes = [one.home for one in known if pattern.home in (None, one.home)]
        fitting = [TopicPartition(topic, home, pattern.first) for home in homes]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(one.name for one in (fitting or known))
    if fitting:
        raise UsageError(
            f"'{text}' fits {len(fitting)} partitions of topic '{topic}'", f"choose one: {names}"
        )
    raise CliError(
        ExitStatus.NOT_FOUND,
        f"topic '{topic}' has no partition '{text}'",
        f"partitions: {names}",
        code="PARTITION_NOT_FOUND",
    )

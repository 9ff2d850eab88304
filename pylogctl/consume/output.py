"""Writes the messages of partitions to standard output, or hands them to a command.

Plain text takes a fast path: the codec turns all messages of a chunk into delimited text at once.
Everything else is handled message by message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from broker.consumer.partition_reader import PartitionReader
from broker.errors import InvalidMessageError, PluginError
from broker.protocol import record_batch
from broker.protocol.codec import (
    DecodedText,
    Fault,
    Record,
    count_delimiters,
    decode,
    decode_delimited,
    scan,
    scan_batches,
)
from broker.protocol.envelope import MAGIC, open_envelope
from broker.protocol.message_set import Entry, iter_entries, messages_of
from broker.protocol.primitives import Buffer
from broker.topic import MessagePosition, TopicPartition
from pylogctl.cli.decoding import Decoding
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.failures import CorruptMessages, OnCorrupt
from pylogctl.cli.process import StopRequest
from pylogctl.consume.plan import ConsumePlan
from pylogctl.consume.watch import Watch, watched
from pylogctl.format.envelope import MessageFacts, facts_of
from pylogctl.format.message_format import Received

if TYPE_CHECKING:
    from pylogctl.consume.exec import Executor

_BUFFER_BYTES = 1 << 16


class Source(Protocol):
    """Reads partitions: all that were selected, or those that a group assigns to this member."""

    @property
    def partition_count(self) -> int:
        """Return how many partitions are read."""

    @property
    def left_bytes(self) -> int | None:
        """Return the bytes up to the ends of what is read; None without ends."""

    def polls(self) -> Iterator[Sequence[PartitionReader]]:
        """Give the partitions with new data until all are read; none after an empty poll."""

    def next_good_message(self, partition: TopicPartition, offset: int) -> int | None:
        """Return the offset of the next good message behind a corrupt one; None if unknown."""

    def seek(self, partition: TopicPartition, offset: int) -> object:
        """Continue in a partition at another offset; all messages before it are processed."""


@dataclass(eq=False)
class Consumption:
    """Writes the messages of a source to standard output, or hands them to an executor.

    `message_count` messages were written or handed over; the executor failed for `failed_count`.
    `may_handle` commits and finishes the first of some entries; None to finish entries afterwards.
    `decoding` is set once the cluster is open, if `--decode` is given.
    """

    env: Environment
    plan: ConsumePlan
    stop: StopRequest
    message_count: int = field(default=0, init=False)
    failed_count: int = field(default=0, init=False)
    end_reason: str = field(default="", init=False)
    may_handle: Callable[[PartitionReader, Iterator[Entry | MessageFacts]], bool] | None = None
    decoding: Decoding | None = None
    _parts: list[bytes] = field(default_factory=list, init=False)
    _buffered_bytes: int = field(default=0, init=False)
    _has_warned: bool = field(default=False, init=False)
    _readers: Sequence[PartitionReader] = field(default=(), init=False)  # of the last poll
    _started_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._corrupt = CorruptMessages(self.env, OnCorrupt(self.plan.chosen.on_corrupt or "stop"))

    def run(self, source: Source) -> ExitStatus:
        """Write messages until a limit, the end of the source, or a signal; return the exit status.

        Positions are marked as finished only after all messages before them are written and
        flushed.
        """
        with watched(self.env, source, has_no_start=self.plan.has_no_start) as watch:
            try:
                status = self._run(source, watch)
            except PluginError:  # the messages before it are whole
                self._write_out()
                self.env.flush()
                raise
            self._finish_all()
        left_count = self.corrupt_count + self.failed_count + self.undecoded_count
        if status is ExitStatus.OK and left_count:
            return ExitStatus.PARTIAL
        return status

    def _finish_all(self) -> None:
        """Write and flush all messages, then mark them as finished in each partition."""
        self._write_out()
        self.env.flush()
        for reader in self._readers:
            reader.finish(reader.offset)

    def _run(self, source: Source, watch: Watch) -> ExitStatus:
        plan = self.plan
        started_s = last_s = self._started_s = time.monotonic()
        if self.has_enough():
            self.end_reason = "no message was asked for"
            return ExitStatus.OK
        for readers in source.polls():
            self._readers = readers
            for reader in readers:
                self._handle(reader, source)
                if self.has_enough():
                    self.end_reason = "as many as asked for"
                    return ExitStatus.OK
                if self._is_cut_short():
                    break
            self._finish_all()
            watch.look(self.message_count)
            if plan.executor is None:
                if not readers:
                    self.env.check_reader()
            elif not self._is_cut_short():
                plan.executor.work()
            if self.stop.is_set:
                self.end_reason = "interrupted"
                return self.stop.status
            now_s = time.monotonic()
            last_s = now_s if readers else last_s
            if (status := self._time_is_up(now_s - started_s, now_s - last_s)) is not None:
                return status
        count = source.partition_count
        self.end_reason = f"end of {count} partition{'s' * (count != 1)} reached"
        return ExitStatus.OK

    def _time_is_up(self, elapsed_s: float, idle_s: float) -> ExitStatus | None:
        plan = self.plan
        if plan.timeout_s is not None and elapsed_s >= plan.timeout_s:
            self.end_reason = f"time limit of {plan.timeout_s:g}s"
            return ExitStatus.TIMEOUT
        if plan.chosen.idle_timeout is not None and idle_s >= plan.chosen.idle_timeout:
            self.end_reason = f"nothing came for {plan.chosen.idle_timeout:g}s"
            return ExitStatus.OK if plan.chosen.max_messages is None else ExitStatus.TIMEOUT
        return None

    @property
    def corrupt_count(self) -> int:
        """Return how many corrupt messages were left out or written raw."""
        return self._corrupt.count

    @property
    def undecoded_count(self) -> int:
        """Return how many messages `--decode` could not read."""
        return 0 if self.decoding is None else self.decoding.count

    def has_enough(self) -> bool:
        """Return whether `max_messages` is reached."""
        limit = self.plan.chosen.max_messages
        return limit is not None and self.message_count >= limit

    @property
    def remark(self) -> str:
        """Return the executor's text for the summary, empty for none."""
        return "" if self.plan.executor is None else self.plan.executor.remark

    def _is_cut_short(self) -> bool:
        """Return whether to stop inside a chunk, as an executor may need long for each message."""
        plan = self.plan
        if plan.executor is None:
            return False  # writing a chunk is quick
        elapsed_s = time.monotonic() - self._started_s
        return self.stop.is_set or (plan.timeout_s is not None and elapsed_s >= plan.timeout_s)

    def _handle(self, reader: PartitionReader, source: Source) -> None:
        if reader.partition.has_records:
            self._handle_records(reader, source)
            return
        plan, data, end = self.plan, reader.data, reader.end
        if not len(data):
            return  # a filter skipped all messages
        is_each_handled = not plan.is_plain or reader.inner or self.may_handle is not None
        is_each_handled = is_each_handled or self.decoding is not None
        if plan.delimiter is None or is_each_handled or (end and end.inner):
            self._handle_each(reader, source)
            return
        wanted = plan.chosen.max_messages
        limit = -1 if wanted is None else wanted - self.message_count
        found = decode_delimited(data, plan.delimiter, limit)
        if not plan.form.raw and MAGIC in found.text:
            found = _without_envelopes(data, plan.delimiter, limit)
        if plan.delimiter and count_delimiters(found.text, plan.delimiter) != found.message_count:
            self._warn_of_first_delimiter(data[: found.valid_bytes], reader.offset, plan.delimiter)
        self._write_text(found.text, plan.delimiter)
        self.message_count += found.message_count
        reader.take(found.valid_bytes, found.message_count)
        is_partial = found.fault is Fault.PARTIAL and not reader.ends_beyond_log()
        if found.fault and not is_partial and not self.has_enough():
            self._handle_each(reader, source)

    def _handle_records(self, reader: PartitionReader, source: Source) -> None:
        """Write or hand over the records of the batches that have come."""
        plan = self.plan
        is_text = plan.delimiter is not None and plan.is_plain and self.decoding is None
        while reader.has_batches:
            data, offset = reader.batches, reader.offset
            try:
                records = reader.take_records()
            except InvalidMessageError as error:
                behind = reader.after_damage()
                next_offset = self._pass_over(reader, source, offset, str(error), behind)
                self._seek(reader, source, offset, next_offset)
                return
            if is_text and plan.delimiter is not None and self.may_handle is None:
                self._write_records(reader, records, plan.delimiter)
            else:
                self._hand_records(reader, _facts_of_records(reader.partition, records, data))
            if self.has_enough() or self._is_cut_short() or reader.is_leaving:
                return

    def _write_records(
        self, reader: PartitionReader, records: Sequence[Record], delimiter: bytes
    ) -> None:
        """Write values as delimited text."""
        wanted = self.plan.chosen.max_messages
        if wanted is not None and self.message_count + len(records) > wanted:
            records = records[: wanted - self.message_count]
            reader.give_back(records[-1].offset + 1)
        text = delimiter.join([*(one.value or b"" for one in records), b""])
        if delimiter and count_delimiters(text, delimiter) != len(records):
            self._warn_of_delimiter(
                next(one.offset for one in records if delimiter in (one.value or b""))
            )
        self._write_text(text, delimiter)
        self.message_count += len(records)

    def _hand_records(self, reader: PartitionReader, messages: Sequence[MessageFacts]) -> None:
        """Write or hand over messages one by one; those that are not are given back."""
        for place, message in enumerate(messages):
            if self.may_handle is not None:
                rest = (messages[at] for at in range(place, len(messages)))
                if not self.may_handle(reader, rest):
                    reader.give_back(message.offset)
                    return
            if (decoded := self._decoded(reader, message)) is not None:
                self._write_message(decoded)
            if self.has_enough() or self._is_cut_short():
                reader.give_back(message.next_offset)
                return
            if self.plan.executor is not None:
                if not reader.finish(message.next_offset) or reader.is_leaving:
                    reader.give_back(message.next_offset)
                    return  # another member of the group continues
                self.plan.executor.work()

    def _write_text(self, text: bytes, delimiter: bytes) -> None:
        if not text or not self.plan.form.no_final_delimiter or not delimiter:
            self.env.write(text)
            return
        if self.message_count:
            self.env.write(delimiter)
        self.env.write(text[: -len(delimiter)])

    def _handle_each(self, reader: PartitionReader, source: Source) -> None:
        start, first_skip = reader.offset, reader.inner
        done = start
        for entry in iter_entries(reader.data, start):
            skip = first_skip if entry.offset == start else 0
            if self.may_handle is not None:
                rest = iter_entries(reader.data[entry.offset - reader.offset :], entry.offset)
                if not self.may_handle(reader, rest):
                    reader.take(done - reader.offset)
                    return
            next_offset = entry.next_offset
            messages: Iterable[MessageFacts]
            try:
                messages = (facts_of(reader.partition, one) for one in messages_of(entry))
            except InvalidMessageError as error:
                next_offset = self._pass_over(reader, source, entry.offset, str(error), next_offset)
                is_skipped = next_offset != entry.offset
                messages = self._raw(entry, reader.partition) if is_skipped else []
            for message in messages:
                if message.inner >= skip and _is_before(message, reader.end):
                    reader.counts.messages += 1
                    if (decoded := self._decoded(reader, message)) is not None:
                        self._write_message(decoded)
                if self.has_enough() or self._is_cut_short():
                    is_last = message.next_offset == entry.next_offset
                    is_last = is_last or self.may_handle is not None
                    done = entry.next_offset if is_last else entry.offset
                    reader.take(done - reader.offset)
                    return
            if next_offset != entry.next_offset:
                self._seek(reader, source, entry.offset, next_offset)
                return
            done = entry.next_offset
            if self.plan.executor is not None:
                reader.take(done - reader.offset)
                if not reader.finish(done) or reader.is_leaving:
                    return  # another member of the group continues
                self.plan.executor.work()
        reader.take(done - reader.offset)
        fault = scan(reader.data).fault
        if fault and (fault is not Fault.PARTIAL or reader.ends_beyond_log()):
            problem = f"the message at {done} has an impossible length or magic byte"
            next_offset = self._pass_over(reader, source, done, problem, None)
            self._seek(reader, source, done, next_offset)

    def _pass_over(
        self, reader: PartitionReader, source: Source, offset: int, problem: str, end: int | None
    ) -> int:
        """Handle a corrupt message as `--on-corrupt` says, and return the offset to continue at.

        All messages before it are written. `end` is that of the message according to its length,
        None if that is corrupt.
        """
        try:
            return self._corrupt.pass_over(
                reader.partition, offset, problem, source.next_good_message, end
            )
        except CliError:
            reader.take(offset - reader.offset)
            self._finish_all()
            raise

    def _seek(self, reader: PartitionReader, source: Source, offset: int, next_offset: int) -> None:
        """Finish everything before an offset, and continue at another one."""
        reader.take(offset - reader.offset)
        self._finish_all()
        source.seek(reader.partition, next_offset)

    def _raw(self, entry: Entry, partition: TopicPartition) -> list[MessageFacts]:
        """Return a corrupt message as stored, if `--on-corrupt raw` asks for it."""
        if not self._corrupt.are_written:
            return []
        codec = entry.codec.name.lower() if entry.codec is not None else "unknown"
        place = (partition, entry.offset, entry.next_offset, 0)
        return [MessageFacts(*place, entry.crc, codec, entry.magic, bytes(entry.payload))]

    def _decoded(self, reader: PartitionReader, message: MessageFacts) -> MessageFacts | None:
        """Return a message as `--decode` shows it, None if it is left out.

        If the run ends there, all messages before it are written.
        """
        if self.decoding is None:
            return message
        try:
            payload = self.decoding.payload(*message[:2], message.payload)
        except CliError:
            if message.record is not None:
                reader.give_back(message.offset)
            else:
                reader.take(message.offset - reader.offset)
            self._finish_all()
            raise
        return None if payload is None else message._replace(payload=payload)

    def _write_message(self, message: MessageFacts) -> None:
        if not all(passes(message) for passes in self.plan.filters):
            return
        if self.plan.executor is not None:
            self._execute(message, self.plan.executor)
            return
        delimiter = self.plan.delimiter
        if delimiter and delimiter in message.payload:
            self._warn_of_delimiter(message.offset)
        number = self.message_count + 1
        now_ms = self.env.clock.time_ms()
        data = self.plan.render(Received(message, number, now_ms, group=self.plan.group))
        if delimiter and self.plan.form.no_final_delimiter:
            data = (delimiter if self.message_count else b"") + data.removesuffix(delimiter)
        self.message_count = number
        self._parts.append(data)
        self._buffered_bytes += len(data)
        if self.plan.unbuffered:
            self._write_out()
            self.env.flush()
        elif self._buffered_bytes >= _BUFFER_BYTES:
            self._write_out()

    def _execute(self, message: MessageFacts, executor: Executor) -> None:
        self.message_count += 1
        if executor.take(message):
            return
        self.failed_count += 1
        if self.plan.group and self.may_handle is None:
            raise CliError(
                ExitStatus.PARTIAL,
                f"{message.partition}: the group stays at the message at {message.offset}, "
                "which could not be handled",
                "--retry-dir DIR keeps such messages for later and goes on",
                details={"partition": message.partition.name, "offset": message.offset},
            )

    def _write_out(self) -> None:
        if self._parts:
            parts, self._parts, self._buffered_bytes = self._parts, [], 0
            self.env.write(b"".join(parts))

    def _warn_of_first_delimiter(self, data: memoryview, offset: int, delimiter: bytes) -> None:
        if self._has_warned:
            return
        for entry in iter_entries(data, offset):
            if any(delimiter in message.payload for message in messages_of(entry)):
                self._warn_of_delimiter(entry.offset)
                return

    def _warn_of_delimiter(self, offset: int) -> None:
        problem = f"payload at offset {offset} contains the delimiter"
        if self.plan.form.strict_framing:
            raise CliError(ExitStatus.CORRUPT, problem, "use -L, --base64 or --jsonl")
        if not self._has_warned:
            self._has_warned = True
            self.env.warn(f"{problem}; use -L, --base64 or --jsonl")


def _facts_of_records(
    partition: TopicPartition, records: Sequence[Record], batches: Buffer
) -> list[MessageFacts]:
    """Return the facts of records of a topic of format `kafka`, in these batches."""
    heads = iter(scan_batches(batches).batches)
    end, crc, codec = -1, 0, "none"
    found = []
    for one in records:
        while one.offset >= end:
            head = next(heads)
            end, crc = head.next_offset, head.crc
            codec = "unknown" if head.codec is None else head.codec.name.lower()
        payload = one.value or b""
        place = (partition, one.offset, one.offset + 1, 0)
        found.append(MessageFacts(*place, crc, codec, record_batch.MAGIC, payload, None, one))
    return found


def _without_envelopes(data: memoryview, delimiter: bytes, limit: int) -> DecodedText:
    """Return what `decode_delimited` does, without the envelopes of messages."""
    found = decode_delimited(data, b"", limit)
    messages, _, _ = decode(data, 0)
    text = delimiter.join(
        [*(open_envelope(one[2])[1] for one in messages[: found.message_count]), b""]
    )
    return found._replace(text=text)


def _is_before(message: MessageFacts, end: MessagePosition | None) -> bool:
    return end is None or (message.offset, message.inner) < end


def summary(consumption: Consumption) -> str:
    """Return the summary for standard error: why reading ended, and how much was written."""
    count = consumption.message_count
    text = f"stopped: {consumption.end_reason}, {count} message{'s' * (count != 1)}"
    if consumption.corrupt_count:
        text += f", {consumption.corrupt_count} corrupt"
    if consumption.undecoded_count:
        text += f", {consumption.undecoded_count} not decoded"
    if consumption.failed_count:
        text += f", {consumption.failed_count} failed"
    if consumption.remark:
        text += f", {consumption.remark}"
    return text

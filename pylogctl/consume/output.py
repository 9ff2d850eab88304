"""From stretches of a log to bytes on standard output, and when that ends.

Plain text takes a short way: whole stretches become delimited text in one step of the codec.
Everything else is looked at message by message.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from broker.errors import InvalidMessageError
from broker.protocol.codec import Fault, count_delimiters, decode_delimited, scan
from broker.protocol.message_set import Entry, iter_entries, messages_of
from broker.topic import TopicPartition
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.failures import CorruptMessages
from pylogctl.cli.process import StopRequest
from pylogctl.consume.plan import Plan
from pylogctl.consume.reading import Place, Source, Stretch
from pylogctl.format.envelope import MessageFacts, facts_of
from pylogctl.format.message_format import Received

if TYPE_CHECKING:
    from pylogctl.consume.exec import Executor

_BUFFER_BYTES = 1 << 16


class Consumption:
    """Writes what a reading gives to standard output.

    Args:
        env: where to.
        plan: what, and until when.
        stop: set by a signal.
    """

    def __init__(self, env: Environment, plan: Plan, stop: StopRequest) -> None:
        self._env = env
        self._plan = plan
        self._stop = stop
        self._parts: list[bytes] = []
        self._buffered_bytes = 0
        self._has_warned = False
        self._source: Source | None = None
        self._started_s = 0.0
        self.message_count = 0
        """Messages written, or given to the executor, so far."""
        self.failed_count = 0
        """Messages that the executor could not deal with."""
        self._corrupt = CorruptMessages(env, plan.on_corrupt)
        self.end_reason = ""

    def run(self, reading: Source) -> ExitStatus:
        """Write messages until the plan, the reading or a signal says to end.

        What the reading gave is settled only when it is written and flushed.

        Returns:
            How the command ends.

        Raises:
            CliError: a corrupt message, unless those are to be skipped.
            BrokerError: a broker is gone for good.
            OSError: standard output cannot be written.
        """
        self._source = reading
        status = self._run(reading)
        self._settle()
        if status is ExitStatus.OK and (self.corrupt_count or self.failed_count):
            return ExitStatus.PARTIAL
        return status

    def _settle(self) -> None:
        """Write out and flush all there is, then tell the source that it is done with."""
        self._write_out()
        self._env.flush()
        if self._source is not None:
            self._source.settle()

    def _run(self, reading: Source) -> ExitStatus:
        started_s = last_s = self._started_s = time.monotonic()
        if self.has_enough():
            self.end_reason = "no message was asked for"
            return ExitStatus.OK
        for stretches in reading.polls():
            for stretch in stretches:
                self._handle(stretch)
                if self.has_enough():
                    self.end_reason = "as many as asked for"
                    return ExitStatus.OK
                if self._is_cut_short():
                    break
            self._settle()
            self._use_pause(is_idle=not stretches)
            if self._stop.is_set:
                self.end_reason = "interrupted"
                return self._stop.status
            now_s = time.monotonic()
            last_s = now_s if stretches else last_s
            if (status := self._time_is_up(now_s - started_s, now_s - last_s)) is not None:
                return status
        count = reading.partition_count
        self.end_reason = f"end of {count} partition{'s' * (count != 1)} reached"
        return ExitStatus.OK

    def _use_pause(self, *, is_idle: bool) -> None:
        """Do what is due between two polls."""
        if self._plan.executor is None:
            if is_idle:
                self._env.check_reader()
        elif not self._is_cut_short():
            self._plan.executor.work()

    def _time_is_up(self, elapsed_s: float, idle_s: float) -> ExitStatus | None:
        plan = self._plan
        if plan.timeout_s is not None and elapsed_s >= plan.timeout_s:
            self.end_reason = f"time limit of {plan.timeout_s:g}s"
            return ExitStatus.TIMEOUT
        if plan.idle_timeout_s is not None and idle_s >= plan.idle_timeout_s:
            self.end_reason = f"nothing came for {plan.idle_timeout_s:g}s"
            return ExitStatus.OK if plan.max_messages is None else ExitStatus.TIMEOUT
        return None

    @property
    def corrupt_count(self) -> int:
        """Return how many corrupt messages were left out or written raw."""
        return self._corrupt.count

    def has_enough(self) -> bool:
        """Return whether as many messages are written as were asked for."""
        return self._plan.max_messages is not None and self.message_count >= self._plan.max_messages

    @property
    def remark(self) -> str:
        """Return what the executor has to say at the end, empty for nothing."""
        return "" if self._plan.executor is None else self._plan.executor.remark

    def _is_cut_short(self) -> bool:
        """Say whether to leave a stretch in its middle: an executor may need long for each message.

        What is written to standard output is quick, so that is looked at between polls only.
        """
        plan = self._plan
        if plan.executor is None:
            return False
        elapsed_s = time.monotonic() - self._started_s
        return self._stop.is_set or (plan.timeout_s is not None and elapsed_s >= plan.timeout_s)

    def _handle(self, stretch: Stretch) -> None:
        if not len(stretch.view):
            return  # a filter has left out everything
        plan = self._plan
        end = stretch.cursor.end
        if plan.delimiter is None or not plan.is_plain or stretch.skip or (end and end.inner):
            self._handle_each(stretch)
            return
        limit = -1 if plan.max_messages is None else plan.max_messages - self.message_count
        found = decode_delimited(stretch.view, plan.delimiter, limit)
        if plan.delimiter and count_delimiters(found.text, plan.delimiter) != found.message_count:
            good = stretch._replace(view=stretch.view[: found.valid_bytes])
            self._tell_delimiter_inside(good, plan.delimiter)
        self._write_text(found.text, plan.delimiter)
        self.message_count += found.message_count
        stretch.cursor.take(found.valid_bytes)
        if found.fault is not Fault.NONE and not self.has_enough():
            offset = stretch.offset + found.valid_bytes
            rest = stretch.view[found.valid_bytes :]
            self._handle_each(stretch._replace(offset=offset, view=rest))

    def _write_text(self, text: bytes, delimiter: bytes) -> None:
        if not text or self._plan.final_delimiter or not delimiter:
            self._env.write(text)
            return
        if self.message_count:
            self._env.write(delimiter)
        self._env.write(text[: -len(delimiter)])

    def _handle_each(self, stretch: Stretch) -> None:
        """Write the messages of a stretch one by one, and deal with what is corrupt in it."""
        place = stretch.cursor
        consumed = 0
        for entry in iter_entries(stretch.view, stretch.offset):
            skip = stretch.skip if entry.offset == stretch.offset else 0
            next_offset = entry.next_offset
            try:
                messages = [facts_of(place.partition, one) for one in messages_of(entry)]
            except InvalidMessageError as error:
                next_offset = self._pass_over(place, entry.offset, str(error), next_offset)
                messages = self._raw(entry, place.partition)
            for message in messages:
                if message.inner >= skip and self._is_before_end(message, stretch):
                    self._write_message(message)
                if self.has_enough() or self._is_cut_short():
                    is_last = message.next_offset == entry.next_offset
                    done = entry.next_offset if is_last else entry.offset
                    place.take(done - stretch.offset)
                    return
            if next_offset != entry.next_offset:
                self._skip_to(place, entry.offset, next_offset)
                return
            consumed = entry.next_offset - stretch.offset
            if self._plan.executor is not None and not self._finish(entry, self._plan.executor):
                place.take(consumed)
                return
        place.take(consumed)
        fault = scan(stretch.view[consumed:]).fault
        if fault and (fault is not Fault.PARTIAL or place.is_cut_for_good()):
            problem = f"the message at {place.offset} has an impossible length or magic byte"
            next_offset = self._pass_over(place, place.offset, problem, None)
            self._skip_to(place, place.offset, next_offset)

    def _pass_over(self, place: Place, offset: int, problem: str, next_offset: int | None) -> int:
        """Decide about a corrupt message, and return where to go on.

        Args:
            place: how far the messages before it are dealt with.
            offset: where it starts.
            problem: what is wrong with it.
            next_offset: where it ends by its own length, None if it has none.

        Raises:
            CliError: it is not to be skipped, or nobody knows where the next good one is.
        """
        assert self._source is not None
        try:
            return self._corrupt.pass_over(
                place.partition, offset, problem, self._source.find_behind, next_offset
            )
        except CliError:
            place.take(offset - place.offset)
            self._settle()
            raise

    def _skip_to(self, place: Place, offset: int, next_offset: int) -> None:
        """Go on at an offset that is not where the message at another one ends."""
        place.take(offset - place.offset)
        self._settle()
        if self._source is not None:
            self._source.skip_to(place.partition, next_offset)

    def _raw(self, entry: Entry, partition: TopicPartition) -> list[MessageFacts]:
        """Return what is to be written of a corrupt message."""
        if not self._corrupt.are_written:
            return []
        codec = entry.codec.name.lower() if entry.codec is not None else "unknown"
        raw = MessageFacts(
            partition,
            entry.offset,
            entry.next_offset,
            0,
            entry.crc,
            codec,
            entry.magic,
            bytes(entry.payload),
        )
        return [raw]

    def _finish(self, entry: Entry, executor: Executor) -> bool:
        """Note that an entry is dealt with; return False if what follows it is for others."""
        if self._source is not None and not self._source.finish(entry.next_offset):
            return False
        executor.work()
        return True

    def _is_before_end(self, message: MessageFacts, stretch: Stretch) -> bool:
        end = stretch.cursor.end
        return end is None or (message.offset, message.inner) < (end.offset, end.inner)

    def _write_message(self, message: MessageFacts) -> None:
        if not all(passes(message) for passes in self._plan.filters):
            return
        if self._plan.executor is not None:
            self._execute(message, self._plan.executor)
            return
        delimiter = self._plan.delimiter
        if delimiter and delimiter in message.payload:
            self._tell_delimiter(message.offset)
        number = self.message_count + 1
        now_ms = self._env.clock.time_ms()
        data = self._plan.render(Received(message, number, now_ms, group=self._plan.group))
        if delimiter and not self._plan.final_delimiter:
            data = (delimiter if self.message_count else b"") + data.removesuffix(delimiter)
        self.message_count = number
        self._parts.append(data)
        self._buffered_bytes += len(data)
        if self._plan.unbuffered:
            self._write_out()
            self._env.flush()
        elif self._buffered_bytes >= _BUFFER_BYTES:
            self._write_out()

    def _execute(self, message: MessageFacts, executor: Executor) -> None:
        self.message_count += 1
        if executor.take(message):
            return
        self.failed_count += 1
        if self._plan.group:
            raise CliError(
                ExitStatus.PARTIAL,
                f"{message.partition}: the group stays at the message at {message.offset}, "
                "which could not be handled",
                hints=["--retry-dir DIR keeps such messages for later and goes on"],
                details={"partition": message.partition.name, "offset": message.offset},
            )

    def _write_out(self) -> None:
        if self._parts:
            parts, self._parts, self._buffered_bytes = self._parts, [], 0
            self._env.write(b"".join(parts))

    def _tell_delimiter_inside(self, stretch: Stretch, delimiter: bytes) -> None:
        """Find the first payload that holds the delimiter and tell of it, once."""
        if self._has_warned:
            return
        for entry in iter_entries(stretch.view, stretch.offset):
            if any(delimiter in message.payload for message in messages_of(entry)):
                self._tell_delimiter(entry.offset)
                return

    def _tell_delimiter(self, offset: int) -> None:
        problem = f"payload at offset {offset} contains the delimiter"
        if self._plan.strict_framing:
            raise CliError(ExitStatus.CORRUPT, problem, hints=["use -L, --base64 or --jsonl"])
        if not self._has_warned:
            self._has_warned = True
            self._env.warn(f"{problem}; use -L, --base64 or --jsonl")


def summary(consumption: Consumption) -> str:
    """Return why reading ended and how much was written, as the note on standard error."""
    count = consumption.message_count
    text = f"stopped: {consumption.end_reason}, {count} message{'s' * (count != 1)}"
    if consumption.corrupt_count:
        text += f", {consumption.corrupt_count} corrupt"
    if consumption.failed_count:
        text += f", {consumption.failed_count} failed"
    if consumption.remark:
        text += f", {consumption.remark}"
    return text

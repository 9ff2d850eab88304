"""Counts messages by topic and time window, publishes the counts, and compares them.

Each tier of a pipeline (producers, a mirror, consumers) publishes its own counts to an audit topic;
`compare` compares tiers. A count is an event, a JSON object in UTF-8:

    | field    | type   | meaning                                                            |
    | v        | int    | version of this format: 1                                          |
    | id       | string | the counter, unique to one counter in one process                  |
    | seq      | int    | number of the event of this counter, from 0                        |
    | host     | string | name of the machine                                                |
    | tier     | string | name of the tier, such as `producer`                               |
    | topic    | string | the counted topic                                                  |
    | start_ms | int    | start of the window, in milliseconds since 1970; windows are       |
    | end_ms   | int    | aligned to that epoch; the end is exclusive                        |
    | count    | int    | messages in the window that no earlier event of `id` has counted   |
    | bytes    | int    | their payloads                                                     |

Counts add up; an event with an `id` and `seq` that were seen before is a duplicate. Readers ignore
fields they do not know.

Source: J. Kreps, N. Narkhede, J. Rao, "Kafka: a Distributed Messaging System for Log Processing",
NetDB'11, section 4.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, astuple, dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

from broker.clock import Clock, SystemClock
from broker.errors import InvalidMessageError
from broker.json_fields import field_path, read_json, value_at
from broker.producer.producer import Delivery
from broker.protocol.envelope import open_envelope
from broker.protocol.primitives import Buffer
from broker.times import epoch_ms, moment_of

VERSION = 1
ENVELOPE_TIME = "envelope"
"""In the place of a field: the time that the envelope of a message has."""
DEFAULT_WINDOW_MS = 600_000
_SEND_COUNT = 1000
"""Events in one message set; counts by the messages' own time can have any number of windows."""

logger = logging.getLogger(__name__)

TimeOf = Callable[[Buffer], int | None]
"""Returns a message's own time in milliseconds since 1970; None to count it at the present time."""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """A count as it is published; see the table above."""

    source_id: str
    sequence: int
    host: str
    tier: str
    topic: str
    start_ms: int
    end_ms: int
    message_count: int
    payload_bytes: int

    def encode(self) -> bytes:
        """Return the event as a message."""
        fields = {"v": VERSION, **dict(zip(_FIELDS, astuple(self), strict=True))}
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, payload: Buffer) -> AuditEvent:
        """Return the event in a message.

        Raises:
            InvalidMessageError: it is not an audit event, or has an unknown version.
        """
        try:
            fields = json.loads(bytes(payload))
        except (ValueError, RecursionError) as error:
            raise InvalidMessageError("not an audit event: it is not JSON") from error
        if not isinstance(fields, dict):
            raise InvalidMessageError("not an audit event: it is not a JSON object")
        try:
            if fields["v"] != VERSION:
                raise InvalidMessageError(f"audit event of unknown version {fields['v']!r}")
            event = cls(*(validate(fields[name]) for name, validate in _FIELDS.items()))
        except KeyError as error:
            raise InvalidMessageError(f"not an audit event: it has no field {error}") from error
        except TypeError as error:
            raise InvalidMessageError(f"not an audit event: {error}") from error
        if event.end_ms <= event.start_ms:
            raise InvalidMessageError("not an audit event: its window is empty")
        return event


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise TypeError(f"{value!r} is not a number from 0 to 2**63-1")
    return value


# of an event, in the order of the attributes
_FIELDS: dict[str, Callable[[Any], Any]] = {
    "id": _text,
    "seq": _number,
    "host": _text,
    "tier": _text,
    "topic": _text,
    **dict.fromkeys(("start_ms", "end_ms", "count", "bytes"), _number),
}


@dataclass(eq=False)
class AuditCounter:
    """Counts messages per topic and window. Safe for several threads.

    Args:
        window_ms: length of a window, at least 1.
        host: name of the machine; default: its host name.
    """

    tier: str
    _: KW_ONLY
    window_ms: int = DEFAULT_WINDOW_MS
    host: str = ""
    clock: Clock = field(default_factory=SystemClock)
    timeless_count: int = field(default=0, init=False)
    """Messages without a time of their own, which are in no window."""

    def __post_init__(self) -> None:
        self.host = self.host or socket.gethostname()
        self.source_id: str = f"{self.host}-{uuid.uuid4().hex[:12]}"
        self._lock = threading.Lock()  # guards the counts
        self._counts: dict[tuple[int, str], list[int]] = {}
        self._sequence = 0

    def note(
        self, topic: str, message_count: int, payload_bytes: int, time_ms: int | None = None
    ) -> None:
        """Count messages.

        Args:
            payload_bytes: size of all their payloads.
            time_ms: their time in milliseconds since 1970; None for the present.
        """
        moment_ms = max(0, self.clock.time_ms() if time_ms is None else time_ms)
        start_ms = moment_ms - moment_ms % self.window_ms
        with self._lock:
            count = self._counts.setdefault((start_ms, topic), [0, 0])
            count[0] += message_count
            count[1] += payload_bytes

    def note_one(
        self, topic: str, payload_bytes: int, time_ms: int | None, *, is_timed: bool
    ) -> None:
        """Count a message; in no window if it `is_timed`, and yet has no time."""
        if is_timed and time_ms is None:
            with self._lock:
                self.timeless_count += 1
        else:
            self.note(topic, 1, payload_bytes, time_ms)

    def take(self, *, with_open: bool = False) -> list[AuditEvent]:
        """Remove and return the counts of windows that have ended.

        Args:
            with_open: include windows that have not ended, as at the end of a program; messages
                counted in them later make another event.
        """
        now_ms = self.clock.time_ms()
        with self._lock:
            due = sorted(
                window
                for window in self._counts
                if with_open or window[0] + self.window_ms <= now_ms
            )
            return [self._event(*window, *self._counts.pop(window)) for window in due]

    def _event(
        self, start_ms: int, topic: str, message_count: int, payload_bytes: int
    ) -> AuditEvent:
        """Make an event; caller holds `_lock`."""
        sequence, self._sequence = self._sequence, self._sequence + 1
        counter, span = (self.source_id, sequence), (start_ms, start_ms + self.window_ms)
        counts = message_count, payload_bytes
        return AuditEvent(*counter, self.host, self.tier, topic, *span, *counts)


class Sends(Protocol):
    """The methods of a producer that are used here."""

    def send(self, topic: str, messages: Iterable[Buffer], key: bytes | None = None) -> Delivery:
        """Send messages."""

    def flush(self) -> None:
        """Wait until every delivery is done."""


@dataclass(eq=False)
class Auditor:
    """Publishes the counts of a counter to the audit topic.

    Not safe for several threads at once. An event that could not be published is published with the
    next ones, under its own number, so that no message is lost or counted twice.

    Args:
        producer: sends the events; its messages to the audit topic are not counted.
    """

    counter: AuditCounter
    producer: Sends
    topic: str
    _waiting: list[AuditEvent] = field(default_factory=list, init=False)
    _told_count: int = field(default=0, init=False)  # of messages without a time

    def publish(self, *, with_open: bool = False) -> int:
        """Publish the windows that have ended, and return the number of events; call it regularly.

        Args:
            with_open: include windows that have not ended, as at the end of a program.

        Raises:
            BrokerError: events were not acknowledged; the next call publishes them again.
        """
        if (count := self.counter.timeless_count) > self._told_count:
            self._told_count = count
            logger.warning(
                "%d messages have no time of their own: not in %s", count, self.counter.tier
            )
        self._waiting += self.counter.take(with_open=with_open)
        if not self._waiting:
            return 0
        deliveries = [
            self.producer.send(
                self.topic, [one.encode() for one in self._waiting[start : start + _SEND_COUNT]]
            )
            for start in range(0, len(self._waiting), _SEND_COUNT)
        ]
        self.producer.flush()
        for delivery in deliveries:
            delivery.result()
        published, self._waiting = len(self._waiting), []
        return published


@dataclass(eq=False)
class AuditedProducer:
    """A producer that counts the acknowledged messages.

    Not safe for several threads at once. A window that has ended is published with the next
    message, or by `auditor.publish`; closing publishes all windows. Methods raise the errors of
    messages and of counts.

    Args:
        producer: sends the messages, and the counts. It is not closed.
        time_of: returns a message's own time; by default the time of sending counts.
    """

    producer: Sends
    auditor: Auditor
    time_of: TimeOf | None = field(default=None, kw_only=True)
    _pending: list[tuple[Delivery, str, list[tuple[int | None, int]]]] = field(
        default_factory=list, init=False
    )

    def __enter__(self) -> AuditedProducer:
        return self

    def __exit__(self, exc_type: object, *exc_info: object) -> None:
        if exc_type is None:
            self.close()

    def send(self, topic: str, messages: Iterable[Buffer], key: bytes | None = None) -> Delivery:
        """Send messages, and count them once they are acknowledged; see `Producer.send`."""
        payloads = list(messages)
        facts = [(self._time(payload), len(payload)) for payload in payloads]
        delivery = self.producer.send(topic, payloads, key)
        self._pending.append((delivery, topic, facts))
        self._count_delivered()
        self.auditor.publish()
        return delivery

    def _time(self, payload: Buffer) -> int | None:
        return None if self.time_of is None else self.time_of(payload)

    def flush(self) -> None:
        """Wait until every delivery is done, and publish windows that have ended."""
        self.producer.flush()
        self._count_delivered()
        self.auditor.publish()

    def close(self) -> None:
        """Wait until every delivery is done, and publish all counts."""
        self.producer.flush()
        self._count_delivered()
        self.auditor.publish(with_open=True)

    def _count_delivered(self) -> None:
        """Count the acknowledged deliveries."""
        counter = self.auditor.counter
        still = []
        for delivery, topic, facts in self._pending:
            if not delivery.is_done:
                still.append((delivery, topic, facts))
            elif not delivery.has_failed:
                for time_ms, size in facts:
                    counter.note_one(topic, size, time_ms, is_timed=self.time_of is not None)
        self._pending = still


def audited(
    messages: Iterable[tuple[str, Any, int, int, bytes]],
    auditor: Auditor,
    *,
    time_of: TimeOf | None = None,
) -> Iterator[tuple[str, Any, int, int, bytes]]:
    """Yield a consumer's messages, and count each when the next one is requested.

    Windows that have ended are published meanwhile; publish the others with `auditor.publish` when
    the consumer ends.

    Args:
        messages: a stream of a `ConsumerConnector`; its messages start with the topic and end
            with the payload.
        time_of: returns a message's own time; by default the time of consuming counts.

    Raises:
        BrokerError: consuming, or publishing the counts, failed.
    """
    counter = auditor.counter
    for message in messages:
        yield message
        payload = message[4]
        time_ms = None if time_of is None else time_of(payload)
        counter.note_one(message[0], len(payload), time_ms, is_timed=time_of is not None)
        auditor.publish()


def json_time(path: str) -> TimeOf:
    """Return a function that reads a message's time from a field of its JSON object.

    Args:
        path: names of nested fields, separated by dots, such as `.meta.ts`; for what the field may
            hold see `parse_moment` of `broker.times`. `envelope`: the time of the envelope.

    Returns:
        The function; it returns None for a message without such a field, or without a time there.
    """
    if path == ENVELOPE_TIME:
        return _envelope_time
    names = field_path(path)

    def time_of(stored: Buffer) -> int | None:
        _, payload = open_envelope(bytes(stored))
        moment = moment_of(value_at(read_json(payload), names))
        return None if moment is None else epoch_ms(moment)

    return time_of


def _envelope_time(stored: Buffer) -> int | None:
    envelope, _ = open_envelope(bytes(stored))
    return None if envelope is None else envelope.time_us // 1000


class AuditWindow(NamedTuple):
    """A topic in a time window; milliseconds since 1970, the end is exclusive."""

    topic: str
    start_ms: int
    end_ms: int


class Count(NamedTuple):
    """A number of messages and the bytes of their payloads."""

    message_count: int = 0
    payload_bytes: int = 0

    def plus(self, message_count: int, payload_bytes: int) -> Count:
        """Return the count with more messages."""
        return Count(self.message_count + message_count, self.payload_bytes + payload_bytes)


Tally = Mapping[AuditWindow, Mapping[str, Count]]
"""The counts of each tier in each window."""


class Judgement(Enum):
    """The result of comparing a window at one tier."""

    OK = "ok"
    MISSING = "missing"
    """Fewer messages than at the reference, and the tier has reported later windows."""
    LATE = "late"
    """Fewer messages than at the reference, and the tier has not reported a later window: the
    others may still arrive."""
    SURPLUS = "surplus"
    """More messages than at the reference: duplicates, or a producer without an audit."""
    OPEN = "open"
    """The window and the grace time after it have not ended."""


class AuditVerdict(NamedTuple):
    """A window at one tier, compared with the reference tier."""

    window: AuditWindow
    tier: str
    expected: Count
    found: Count
    judgement: Judgement

    @property
    def difference(self) -> int:
        """Return the count of the tier minus that of the reference."""
        return self.found.message_count - self.expected.message_count


def tally(events: Iterable[AuditEvent]) -> dict[AuditWindow, dict[str, Count]]:
    """Sum the events by window and tier; duplicates of an event count once."""
    seen: set[tuple[str, int]] = set()
    sums: dict[AuditWindow, dict[str, Count]] = {}
    for event in events:
        key = (event.source_id, event.sequence)
        if key in seen:
            continue
        seen.add(key)
        tiers = sums.setdefault(AuditWindow(event.topic, event.start_ms, event.end_ms), {})
        before = tiers.get(event.tier, Count())
        tiers[event.tier] = before.plus(event.message_count, event.payload_bytes)
    return sums


def compare(
    tallied: Tally,
    reference: str,
    tiers: Collection[str],
    *,
    now_ms: int,
    grace_ms: int,
    complete: Collection[str] = (),
) -> list[AuditVerdict]:
    """Compare tiers with the reference tier; return verdicts by window (topic and time) and tier.

    A window may still be reported for `grace_ms` after its end. Tiers in `complete` have counted
    all their messages: they are never late.
    """
    last_start = _last_start(tallied)
    verdicts = []
    for window in sorted(tallied):
        counts = tallied[window]
        expected = counts.get(reference, Count())
        for tier in sorted(set(tiers) - {reference}):
            found = counts.get(tier, Count())
            is_open = now_ms < window.end_ms + grace_ms
            is_last = last_start.get((window.topic, tier), -1) <= window.start_ms
            may_follow = is_last and tier not in complete
            judgement = _judge(expected, found, is_open=is_open, may_follow=may_follow)
            verdicts.append(AuditVerdict(window, tier, expected, found, judgement))
    return verdicts


def _last_start(tallied: Tally) -> dict[tuple[str, str], int]:
    """Return the start of the last window that each tier reported of each topic."""
    last: dict[tuple[str, str], int] = {}
    for window, counts in tallied.items():
        for tier in counts:
            key = (window.topic, tier)
            last[key] = max(last.get(key, -1), window.start_ms)
    return last


def _judge(expected: Count, found: Count, *, is_open: bool, may_follow: bool) -> Judgement:
    if is_open:
        return Judgement.OPEN
    if found.message_count == expected.message_count:
        return Judgement.OK
    if found.message_count > expected.message_count:
        return Judgement.SURPLUS
    return Judgement.LATE if may_follow else Judgement.MISSING


def difference_count(verdicts: Sequence[AuditVerdict]) -> int:
    """Return how many messages are missing, late or surplus in windows that are not open."""
    return sum(abs(one.difference) for one in verdicts if one.judgement is not Judgement.OPEN)


def merged(tallied: Tally) -> dict[AuditWindow, dict[str, Count]]:
    """Return the counts with all windows of a topic joined into one, from the first to the last.

    For tiers that do not know in which window other tiers have counted a message.
    """
    spans: dict[str, AuditWindow] = {}
    sums: dict[str, dict[str, Count]] = {}
    for window, counts in tallied.items():
        span = spans.get(window.topic, window)
        spans[window.topic] = AuditWindow(
            window.topic, min(span.start_ms, window.start_ms), max(span.end_ms, window.end_ms)
        )
        total = sums.setdefault(window.topic, {})
        for tier, count in counts.items():
            total[tier] = total.get(tier, Count()).plus(*count)
    return {spans[topic]: counts for topic, counts in sums.items()}

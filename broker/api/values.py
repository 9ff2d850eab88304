"""The values of the API: messages, batches, receipts, and the forms of arguments."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from broker.errors import ArgumentError
from broker.partition_patterns import PartitionPattern, parse_partition
from broker.positions import Absolute, ByTime, Mark, Position, parse_range
from broker.protocol.client_requests import Acks
from broker.protocol.codec import Message, Record, decode_messages, decode_records
from broker.protocol.message_set import raise_fault
from broker.protocol.read_message import messages_of_records
from broker.times import epoch_ms
from broker.topic import MessagePosition, TopicPartition

if TYPE_CHECKING:
    import pyarrow

Value = bytes | str | bytearray | memoryview
"""A message, or its key; text is sent as UTF-8."""

Addressed = tuple[str, Value] | tuple[str, Value, Value | None]
"""A message with its topic, and with a key, if it has one."""

Headers = Mapping[str, Value | None] | Iterable[tuple[str, Value | None]]
"""Headers of a message, by name; a name may stand several times in pairs."""

AcksLike = Acks | Literal["all", -1, 0, 1]
"""Acknowledgements, also by the words and numbers of Kafka: `"all"` is `Acks.COMMITTED`."""

TopicFormat = Literal["0.7", "kafka"]
"""What a topic has for life: message sets as in Kafka 0.7, or Kafka's record batches."""

PartitionLike = int | str | TopicPartition
"""A partition: `"2-0"` (home broker and index), a `TopicPartition`, its `str` (`"orders[2-0]"`),
or an index on every broker; in the format kafka its number."""

Place = int | str | datetime
"""A place in a partition: an offset, a word of `--offset` such as `"@-10m"`, or a time."""

# by partition; keys of a mapping are invariant, and checkers infer nothing from a union of mappings
Start = Place | Mapping[Any, Place]
Stop = Start | None


_MAX_TIMEOUT_S = 1e9  # sockets and locks refuse some ten times as much


class Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "..."


UNSET: Final = Unset()
"""An argument that was not given."""

Timeout = float | Unset | None
"""Seconds from the call until it returns or raises; None for no limit, absent for the client's."""


class Receipt(NamedTuple):
    """Where messages are in the log.

    `offset` is that of the first, `next_offset` the one after the last. Both are -1 without
    acknowledgements, and for brokers of 0.7, which send none. Messages that were compressed
    together share the offsets of their set, but in topics of format `kafka`.
    """

    topic: str
    partition: TopicPartition
    offset: int
    next_offset: int


Receipt.__module__ = "pylogctl"  # the body of a NamedTuple cannot say so


def cut_to(messages: list[Message], skip: int, end: MessagePosition | None) -> None:
    """Drop messages of wrappers: `skip` of the first, and those of the last from `end` on."""
    if end is not None and end.inner:
        while messages and (messages[-1].offset, messages[-1].inner) >= end:
            del messages[-1]
    del messages[:skip]


class Batch:
    """Messages of one partition as they are in the log: `data` is what starts at offset `start`.

    Of a topic of format `kafka` it is whole record batches, of which the first can start before.
    """

    __module__ = "pylogctl"
    __slots__ = ("_skip", "_stop", "data", "end", "partition", "start", "topic")

    def __init__(
        self,
        partition: TopicPartition,
        start: int,
        data: memoryview,
        skip: int = 0,  # messages of the first entry, a wrapper, that are before the start
        stop: MessagePosition | None = None,  # inside the last entry, a wrapper
        end: int | None = None,  # of record batches, whose bytes do not tell it
    ) -> None:
        self.topic: str = partition.topic
        self.partition: TopicPartition = partition
        self.start: int = start
        self.end: int = start + len(data) if end is None else end
        self.data: memoryview = data
        self._skip = skip
        self._stop = stop

    def __repr__(self) -> str:
        return f"Batch({self.topic}[{self.partition.name}] from {self.start} to {self.end})"

    def messages(self) -> list[Message]:
        """Return the messages."""
        if self.partition.has_records:
            return self._records()
        messages, _, _ = decode_messages(self.data, self.start, self.topic, self.partition)
        cut_to(messages, self._skip, self._stop)
        return messages

    def _records(self) -> list[Message]:
        """Return those of the range: the first batch can start before, the last one end behind."""
        found: list[Record] = []
        left = self.data
        while len(left):
            decoded = decode_records(left)
            if not decoded.valid_bytes:
                raise_fault(decoded.fault, self.start)
            found += decoded.records
            left = left[decoded.valid_bytes :]
        end = self.end if self._stop is None else self._stop.offset
        inside = [one for one in found if self.start <= one.offset < end]
        return messages_of_records(Message, self.partition, inside, self.end)

    def values(self) -> list[bytes]:
        """Return the values of the messages."""
        return [one.value for one in self.messages()]

    def to_arrow(self) -> pyarrow.RecordBatch:
        """Return the messages as columns `offset` (int64) and `value` (binary); needs pyarrow."""
        import pyarrow  # late: an extra

        messages = self.messages()
        return pyarrow.record_batch(
            {
                "offset": pyarrow.array([one.offset for one in messages], pyarrow.int64()),
                "value": pyarrow.array([one.value for one in messages], pyarrow.binary()),
            }
        )


def payload_of(value: object) -> bytes:
    """Return the bytes of one message; `TypeError` for anything but bytes and text."""
    if (found := _bytes_of(value)) is not None:
        return found
    hint = "; for several messages: send_many" if isinstance(value, list | tuple) else ""
    raise TypeError(f"give one message as bytes or str, not {type(value).__name__}{hint}")


def _bytes_of(value: object) -> bytes | None:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, bytearray | memoryview) else None


class Stored(NamedTuple):
    """What topics of format `kafka` store of a message besides its value and key."""

    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int | None  # None for the time at which it is sent
    is_null: bool  # it has no value, which deletes its key

    def record(self, key: bytes | None) -> Record:
        """Return the record of a message, with nothing for a value, and without a place."""
        time_ms = time.time_ns() // 1_000_000 if self.timestamp_ms is None else self.timestamp_ms
        return Record(0, time_ms, key, None if self.is_null else b"", self.headers)


NOTHING_STORED = Stored((), None, is_null=False)


def stored_of(
    value: object, headers: Headers | None, timestamp: datetime | int | None
) -> Stored | None:
    """Return what is stored of a message besides value and key; None if nothing was given."""
    if value is not None and headers is None and timestamp is None:
        return None
    time_ms: int | None = None
    if isinstance(timestamp, int) and not isinstance(timestamp, bool):
        time_ms = timestamp
        whole_of("timestamp", timestamp, 0)
    elif timestamp is not None:
        time_ms = ms_of("timestamp", timestamp)
    return Stored(_headers_of(headers), time_ms, value is None)


def _headers_of(given: Headers | None) -> tuple[tuple[str, bytes | None], ...]:
    pairs: Any = given.items() if isinstance(given, Mapping) else given or ()
    found = []
    for one in pairs:
        if not isinstance(one, tuple) or len(one) != 2:
            raise TypeError(f"give headers as a mapping, or as pairs (name, value), not {one!r}")
        name, value = one
        content = _bytes_of(value)
        if content is None and value is not None:
            raise TypeError(f"give header '{name}' as bytes or str, not {type(value).__name__}")
        found.append((text_of("the name of a header", name), content))
    return tuple(found)


def record_for(target: TopicPartition, key: bytes | None, stored: Stored | None) -> Record | None:
    """Return the record of a message to a partition; None in format 0.7, which has none.

    `ArgumentError` if something is given that the format does not store.
    """
    if target.has_records:
        return (stored or NOTHING_STORED).record(key)
    if stored is not None:
        raise ArgumentError(
            f"topic '{target.topic}' is of format 0.7, which stores no headers, timestamps and "
            "messages without a value; a key only chooses the partition there",
            hints=["topics of format kafka store them"],
        )
    return None


def payloads_of(values: Iterable[Value]) -> list[bytes]:
    """Return the bytes of messages; `TypeError` for a single one, which can be iterated as well."""
    if isinstance(values, str | bytes | bytearray | memoryview):
        raise TypeError(
            f"give several messages, such as a list, not {type(values).__name__}; for one: send"
        )
    if not isinstance(values, Iterable):
        raise TypeError(f"give several messages, such as a list, not {type(values).__name__}")
    return [payload_of(one) for one in values]


def addressed_of(messages: Iterable[object]) -> list[tuple[str, bytes, bytes | None]]:
    """Return the topic, bytes and key of each message; `TypeError` for one of another form."""
    found = []
    for place, one in enumerate(messages):
        if not isinstance(one, tuple) or len(one) not in (2, 3):
            raise TypeError(f"give message {place} as (topic, value) or (topic, value, key)")
        topic, value, *rest = one
        try:
            found.append((topic_of(topic), payload_of(value), key_of(*rest or [None])))
        except TypeError as error:
            raise TypeError(f"message {place}: {error}") from None
    return found


def number_of(name: str, value: object, least: float) -> None:
    """Raise unless an argument is a number, and not below the least."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"give {name} as a number, not {type(value).__name__}")
    if not value >= least:
        raise ArgumentError(f"{name} is at least {least:g}, not {value:g}")


def whole_of(name: str, value: object, least: int) -> None:
    """Raise unless an argument is a whole number, and not below the least."""
    number_of(name, value, least)
    if not isinstance(value, int):
        raise TypeError(f"give {name} as an int, not {type(value).__name__}")


def seconds_of(timeout: float | None) -> float | None:
    """Return a timeout, None if it has no end; raise if it is none."""
    if timeout is None:
        return None
    number_of("timeout", timeout, 0)
    return timeout if timeout <= _MAX_TIMEOUT_S else None


def callable_of(name: str, value: object) -> None:
    """Raise unless an argument can be called."""
    if not callable(value):
        raise TypeError(f"give {name} as a function, not {type(value).__name__}")


def key_of(key: object) -> bytes | None:
    """Return the bytes of a key."""
    found = _bytes_of(key)
    if found is not None or key is None:
        return found
    raise TypeError(f"give the key as bytes or str, not {type(key).__name__}")


def acks_of(given: object) -> Acks:
    """Return the acknowledgements that a value means."""
    try:
        return Acks.COMMITTED if given == "all" else Acks(given)  # type: ignore[arg-type]  # an error if it is none
    except ValueError:
        valid = ", ".join(f"Acks.{one.name}" for one in Acks)
        raise ArgumentError(f"acks is 'all' or one of {valid}, not {given!r}") from None


def text_of(what: str, value: object) -> str:
    """Return text, such as a name; `TypeError` for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"give {what} as str, not {type(value).__name__}")
    return value


topic_of = partial(text_of, "the topic")
group_of = partial(text_of, "the group")
setting_name_of = partial(text_of, "the name of a setting")


def broker_id_of(broker_id: object) -> int:
    """Return a broker's id; `TypeError` for anything but an int."""
    if not isinstance(broker_id, int) or isinstance(broker_id, bool):
        raise TypeError(f"give the broker as its id, an int, not {type(broker_id).__name__}")
    return broker_id


def ms_of(name: str, time: object) -> int:
    """Return a time as milliseconds since 1970; one without a zone is local."""
    if not isinstance(time, datetime):
        raise TypeError(f"give {name} as a datetime, not {type(time).__name__}")
    return epoch_ms(time.astimezone())


def broker_ids_of(brokers: object) -> tuple[int, ...]:
    """Return ids of brokers, none for None; `TypeError` for anything but several ints."""
    if brokers is None:
        return ()
    if isinstance(brokers, str) or not isinstance(brokers, Collection):
        raise TypeError(f"give brokers as several ids, such as a list, not {brokers!r}")
    if not brokers:
        raise ArgumentError("no broker is given; leave out `brokers` for all live ones")
    return tuple(map(broker_id_of, brokers))


def setting_texts_of(values: object) -> dict[str, str]:
    """Return settings as texts, by name; `TypeError` for a value of another type."""
    if not isinstance(values, Mapping):
        raise TypeError(f"give settings as a mapping by name, not {type(values).__name__}")
    return {setting_name_of(name): _setting_text(name, value) for name, value in values.items()}


def _setting_text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | str):
        return str(value)
    raise TypeError(f"give {name} as an int, a bool or str, not {type(value).__name__}")


def matcher_of(partition: PartitionLike) -> Callable[[TopicPartition], bool]:
    """Return a function that tells whether a value means a partition."""
    value: object = partition
    if isinstance(value, TopicPartition):
        return lambda one: one == value  # of this topic only
    if isinstance(value, str):
        return parse_partition(value).matches
    if isinstance(value, int) and not isinstance(value, bool):
        return PartitionPattern(None, value, value).matches
    raise TypeError(
        "give the partition as an index, as its name or as a TopicPartition, not "
        f"{type(value).__name__}"
    )


def positions_of(given: Start, now_ms: int) -> Callable[[TopicPartition], Position | None]:
    """Return the function of the position that is given for a partition; None where none is."""
    if not isinstance(given, Mapping):
        position = position_of(given, now_ms)
        return lambda _: position
    places = [(matcher_of(key), position_of(place, now_ms)) for key, place in given.items()]

    def find(partition: TopicPartition) -> Position | None:
        return next((place for matches, place in places if matches(partition)), None)

    return find


def position_of(place: Place, now_ms: int) -> Position:
    """Return the position that a value means; `now_ms` is since 1970."""
    if isinstance(place, int) and not isinstance(place, bool):
        return Absolute(place, nearest=False)
    if isinstance(place, datetime):
        return ByTime(epoch_ms(place.astimezone()))
    if not isinstance(place, str):
        raise TypeError(f"give a place as an offset, text or datetime, not {type(place).__name__}")
    found = parse_range(place, now_ms=now_ms)
    if found.end is not None or found.start is None or found.start is Mark.STORED:
        raise ArgumentError(
            f"not one place: '{place}'", hints=["valid: start, end, 4096, -100, @-10m"]
        )
    return found.start

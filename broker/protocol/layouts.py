"""Layouts: the wire form of a value, declared once for both ways.

Requests of the control plane and their responses are composed of them. Messages sent for each
message set (publishes, reads, responses to followers) and lists of all partitions of a cluster are
encoded by hand, as that is faster.
"""

from __future__ import annotations

import struct
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter, itemgetter
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Self, TypeVar, get_origin

from broker.errors import ProtocolError
from broker.protocol import requests
from broker.protocol.primitives import Reader, clip, encode_short_string
from broker.topic import FORMATS, TopicPartition

T = TypeVar("T")
E = TypeVar("E", bound=IntEnum)


class Layout(NamedTuple, Generic[T]):
    """The wire form of one kind of value; `decode` raises `ProtocolError` if it is invalid."""

    encode: Callable[[T], bytes]
    decode: Callable[[Reader], T]
    least_bytes: int  # the counts of arrays are validated with it
    numbers: str = ""  # `struct` format of a value that consists of numbers, read together
    make: Callable[[Any], T] | None = None  # makes such a value from the tuple of its numbers


def _number(number: str) -> Layout[Any]:
    layout = struct.Struct(f">{number}")
    first = itemgetter(0)
    return Layout(
        layout.pack, lambda reader: first(reader.fields(layout)), layout.size, number, first
    )


BOOL: Layout[bool] = _number("?")
INT8: Layout[int] = _number("b")
INT16: Layout[int] = _number("h")
INT32: Layout[int] = _number("i")
INT64: Layout[int] = _number("q")
STRING = Layout(encode_short_string, Reader.short_string, 2)
# validated, as it is used as a key
TOPIC = Layout(encode_short_string, requests.decode_valid_topic, 2)
PARTITION = Layout(requests.encode_partition, requests.decode_partition, 10)
# its topic is validated
VALID_PARTITION = Layout(requests.encode_partition, requests.decode_valid_partition, 10)
# a sentence for people, cut if it is too long
TEXT = Layout(lambda text: encode_short_string(clip(text)), Reader.short_string, 2)


def mapped(
    wire: Layout[Any], to_wire: Callable[[T], object], from_wire: Callable[[Any], T]
) -> Layout[T]:
    """Return the layout of values that have another form on the wire.

    `from_wire` raises `ValueError` for an invalid value.
    """

    def decode(reader: Reader) -> T:
        try:
            return from_wire(wire.decode(reader))
        except ValueError as error:
            raise ProtocolError(str(error)) from error

    return Layout(lambda value: wire.encode(to_wire(value)), decode, wire.least_bytes)


def enum(kind: type[E], wire: Layout[int], name: str) -> Layout[E]:
    """Return the layout of an enumeration; `name` is the noun for an invalid number in errors."""

    def from_wire(number: int) -> E:
        try:
            return kind(number)
        except ValueError:
            raise ValueError(f"{number} is no {name}") from None

    return mapped(wire, int, from_wire)


def _decode_data(reader: Reader) -> bytes:
    return bytes(reader.data(reader.int32()))


def _valid_format(name: str) -> str:
    if name not in ("", *FORMATS):
        raise ValueError(f"{name!r} is no format of a topic, which is {' or '.join(FORMATS)}")
    return name


# of a topic; empty where none is given, or the topic is unknown
TOPIC_FORMAT = mapped(STRING, _valid_format, _valid_format)
# bytes, preceded by their number
DATA: Layout[bytes] = Layout(lambda data: INT32.encode(len(data)) + data, _decode_data, 4)


def array(
    item: Layout[T], count: Callable[[Reader, int], int] = requests.read_item_count
) -> Layout[tuple[T, ...]]:
    """Return the layout of items, preceded by their number.

    `count` reads the number, given the least length of an item.
    """
    encode_item, decode_item, least_bytes, numbers, make = item

    def encode(items: Iterable[T]) -> bytes:
        parts = list(map(encode_item, items))
        return INT32.encode(len(parts)) + b"".join(parts)

    def decode(reader: Reader) -> tuple[T, ...]:
        return tuple([decode_item(reader) for _ in range(count(reader, least_bytes))])

    if make is None:
        return Layout(encode, decode, INT32.least_bytes)
    packed = struct.Struct(f">{numbers}")

    def decode_at_once(reader: Reader) -> tuple[T, ...]:
        items = reader.data(count(reader, least_bytes) * least_bytes)
        return tuple(map(make, packed.iter_unpack(items)))

    return Layout(encode, decode_at_once, INT32.least_bytes)


def any_count(reader: Reader, item_bytes: int) -> int:
    """Read the number of items in a response, not limited to `MAX_ITEMS` as in requests."""
    count = reader.int32()
    reader.check_count(count, item_bytes)
    return count


def response_list(item: Layout[T]) -> Layout[list[T]]:
    """Return the layout of a response that is a list of items."""
    items = array(item, any_count)
    return mapped(items, tuple, list)


def optional(item: Layout[T]) -> Layout[T | None]:
    """Return the layout of a value that may be missing: an int16 says whether it follows."""

    def encode(value: T | None) -> bytes:
        return INT16.encode(0) if value is None else INT16.encode(1) + item.encode(value)

    def decode(reader: Reader) -> T | None:
        return item.decode(reader) if reader.int16() else None

    return Layout(encode, decode, INT16.least_bytes)


BROKER_IDS: Layout[tuple[int, ...]] = array(INT32)

# annotations of fields, from which `record` and requests take their layouts
Int8 = Annotated[int, INT8]
Int16 = Annotated[int, INT16]
Int32 = Annotated[int, INT32]
Int64 = Annotated[int, INT64]
Topic = Annotated[str, TOPIC]
TopicFormat = Annotated[str, TOPIC_FORMAT]
Text = Annotated[str, TEXT]
ValidPartition = Annotated[TopicPartition, VALID_PARTITION]
_OF_TYPES: dict[object, Layout[Any]] = {
    bool: BOOL,
    str: STRING,
    bytes: DATA,
    TopicPartition: PARTITION,
}


def layout_of(hint: Any) -> Layout[Any]:
    """Return the layout of an annotation: the one it carries, or else that of its type."""
    if get_origin(hint) is Annotated:
        return next(one for one in typing.get_args(hint) if isinstance(one, Layout))
    if get_origin(hint) is tuple:
        return array(layout_of(typing.get_args(hint)[0]))
    return _OF_TYPES.get(hint) or record(hint)


def _layouts_of(kind: Any) -> dict[str, Layout[Any]]:
    """Return the layouts of the annotated fields of a class, in their order."""
    hints = typing.get_type_hints(kind, include_extras=True).items()
    return {name: layout_of(hint) for name, hint in hints if get_origin(hint) is not ClassVar}


def _encoder(get: Callable[[Any], Any], encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    return lambda value: encode(get(value))


class Fields:
    """Fields one after another; `fields` has the layout of each by the name of its attribute."""

    __slots__ = ("_encoders", "_steps", "least_bytes", "names")

    def __init__(self, **fields: Layout[Any]) -> None:
        self.least_bytes: int = sum(one.least_bytes for one in fields.values())
        self.names: tuple[str, ...] = tuple(fields)
        self._steps: list[struct.Struct | Layout[Any]] = []
        self._encoders: list[Callable[[object], bytes]] = []
        numbers: dict[str, str] = {}
        for name, layout in fields.items():
            if len(layout.numbers) == 1:
                numbers[name] = layout.numbers
            else:
                self._add_numbers(numbers)
                self._steps.append(layout)
                self._encoders.append(_encoder(attrgetter(name), layout.encode))
                numbers = {}
        self._add_numbers(numbers)

    def _add_numbers(self, numbers: dict[str, str]) -> None:
        if numbers:
            step = struct.Struct(">" + "".join(numbers.values()))
            pack = step.pack if len(numbers) == 1 else lambda values: step.pack(*values)
            self._steps.append(step)
            self._encoders.append(_encoder(attrgetter(*numbers), pack))

    def encode(self, value: object) -> bytes:
        """Return the wire form of the attributes of a value."""
        return b"".join([encode(value) for encode in self._encoders])

    def values(self, reader: Reader) -> list[Any]:
        """Read the values, in the order of the fields."""
        values: list[Any] = []
        for step in self._steps:
            if isinstance(step, struct.Struct):
                values += reader.fields(step)
            else:
                values.append(step.decode(reader))
        return values

    def decode(self, reader: Reader) -> dict[str, Any]:
        """Read the values, by name."""
        return dict(zip(self.names, self.values(reader), strict=True))


def record(kind: Callable[..., T], /, *layouts: Layout[Any], **fields: Layout[Any]) -> Layout[T]:
    """Return the layout of a value with fields, which `kind` makes from keyword arguments.

    `layouts` are those of the fields of a NamedTuple, in their order; `fields` have another order.
    Without any given, its fields are laid out as they are annotated.
    """
    named_tuple: Any = kind
    if layouts:
        fields = dict(zip(named_tuple._fields, layouts, strict=True))
    fields = fields or _layouts_of(kind)
    laid_out = Fields(**fields)
    if getattr(named_tuple, "_fields", ()) == laid_out.names:  # by position is faster
        are_numbers = all(len(one.numbers) == 1 for one in fields.values())
        return Layout(
            laid_out.encode,
            lambda reader: kind(*laid_out.values(reader)),
            laid_out.least_bytes,
            "".join(one.numbers for one in fields.values()) if are_numbers else "",
            named_tuple._make if are_numbers else None,
        )
    return Layout(
        laid_out.encode, lambda reader: kind(**laid_out.decode(reader)), laid_out.least_bytes
    )


@dataclass(frozen=True)
class ExtensionRequest:
    """A request of ours."""

    TYPE: ClassVar[requests.RequestType]
    VERSION: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "TYPE"):
            EXTENSION_REQUESTS[cls.TYPE, cls.VERSION] = cls

    def encode(self) -> bytes:
        """Return the body."""
        raise NotImplementedError

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        """Read the body."""
        raise NotImplementedError


EXTENSION_REQUESTS: dict[tuple[int, int], type[ExtensionRequest]] = {}
"""By type and version, of the modules that are imported; `server.requests.judge` imports all."""


@dataclass(frozen=True)
class ControlRequest(ExtensionRequest):
    """A request whose body is laid out field by field, as these are annotated."""

    BODY: ClassVar[Fields]
    RESPONSE: ClassVar[Layout[Any]]  # of the response's body

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.BODY = Fields(**_layouts_of(cls))

    def encode(self) -> bytes:
        """Return the body."""
        return self.BODY.encode(self)

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        """Read the body."""
        return cls(**cls.BODY.decode(reader))


class ControllerRequest(ControlRequest):
    """A request that the controller carries out."""


NOTHING: Layout[None] = Layout(lambda _: b"", lambda _: None, 0)  # success is all there is to say

"""0.7's five requests, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from broker.errors import ProtocolError
from broker.protocol.framing import encode_frame
from broker.protocol.primitives import INT16, INT32, INT64, Buffer, Reader, encode_short_string
from broker.protocol.request_fields import RequestType

LATEST_TIME = -1
EARLIEST_TIME = -2
ANY_PARTITION = -1
"""The partition index of a produce that lets the broker choose."""


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """Append one message set; never answered."""

    TYPE: ClassVar[RequestType] = RequestType.PRODUCE

    topic: str
    index: int
    message_set: Buffer

    def encode(self) -> bytes:
        """Return the body."""
        return b"".join(
            (
                encode_short_string(self.topic),
                INT32.pack(self.index),
                INT32.pack(len(self.message_set)),
                self.message_set,
            )
        )

    @classmethod
    def decode(cls, reader: Reader) -> ProduceRequest:
        """Read the body."""
        return cls(reader.short_string(), reader.int32(), reader.data(reader.int32()))


@dataclass(frozen=True, slots=True)
class MultiProduceRequest:
    """Append several message sets one after another; never answered, not atomic."""

    TYPE: ClassVar[RequestType] = RequestType.MULTIPRODUCE

    produces: tuple[ProduceRequest, ...]

    def encode(self) -> bytes:
        """Return the body."""
        return INT16.pack(len(self.produces)) + b"".join(p.encode() for p in self.produces)

    @classmethod
    def decode(cls, reader: Reader) -> MultiProduceRequest:
        """Read the body."""
        count = reader.count(INT16, 10)
        return cls(tuple(ProduceRequest.decode(reader) for _ in range(count)))


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Read at most `max_bytes` of a partition from a byte offset."""

    TYPE: ClassVar[RequestType] = RequestType.FETCH

    topic: str
    index: int
    offset: int
    max_bytes: int

    def encode(self) -> bytes:
        """Return the body."""
        return b"".join(
            (
                encode_short_string(self.topic),
                INT32.pack(self.index),
                INT64.pack(self.offset),
                INT32.pack(self.max_bytes),
            )
        )

    @classmethod
    def decode(cls, reader: Reader) -> FetchRequest:
        """Read the body."""
        return cls(reader.short_string(), reader.int32(), reader.int64(), reader.int32())


@dataclass(frozen=True, slots=True)
class MultiFetchRequest:
    """Several fetches answered together."""

    TYPE: ClassVar[RequestType] = RequestType.MULTIFETCH

    fetches: tuple[FetchRequest, ...]

    def encode(self) -> bytes:
        """Return the body."""
        return INT16.pack(len(self.fetches)) + b"".join(f.encode() for f in self.fetches)

    @classmethod
    def decode(cls, reader: Reader) -> MultiFetchRequest:
        """Read the body."""
        count = reader.count(INT16, 18)
        return cls(tuple(FetchRequest.decode(reader) for _ in range(count)))


@dataclass(frozen=True, slots=True)
class OffsetsRequest:
    """Ask for segment starts before a time (milliseconds, or `LATEST_TIME`, `EARLIEST_TIME`)."""

    TYPE: ClassVar[RequestType] = RequestType.OFFSETS

    topic: str
    index: int
    time_ms: int
    max_offsets: int

    def encode(self) -> bytes:
        """Return the body."""
        return b"".join(
            (
                encode_short_string(self.topic),
                INT32.pack(self.index),
                INT64.pack(self.time_ms),
                INT32.pack(self.max_offsets),
            )
        )

    @classmethod
    def decode(cls, reader: Reader) -> OffsetsRequest:
        """Read the body."""
        return cls(reader.short_string(), reader.int32(), reader.int64(), reader.int32())


BaseRequest = (
    ProduceRequest | MultiProduceRequest | FetchRequest | MultiFetchRequest | OffsetsRequest
)

BASE_REQUESTS: dict[int, type[BaseRequest]] = {
    RequestType.PRODUCE: ProduceRequest,
    RequestType.FETCH: FetchRequest,
    RequestType.MULTIFETCH: MultiFetchRequest,
    RequestType.MULTIPRODUCE: MultiProduceRequest,
    RequestType.OFFSETS: OffsetsRequest,
}


def encode_request(request: BaseRequest) -> bytes:
    """Return the frame of one of 0.7's requests."""
    return encode_frame(INT16.pack(request.TYPE), request.encode())


def decode_request(frame: Buffer) -> BaseRequest:
    """Read one of 0.7's requests.

    Args:
        frame: without its size field; bytes behind the last field are ignored, as 0.7 does.

    Raises:
        ProtocolError: the type is none of the five, or the body is too short for its fields.
    """
    reader = Reader(frame)
    request_type = reader.int16()
    if request_type not in BASE_REQUESTS:
        raise ProtocolError(f"request type {request_type} is unknown")
    return BASE_REQUESTS[request_type].decode(reader)

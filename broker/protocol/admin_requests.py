"""Our requests about a broker and its topics (field tables: REQUESTS.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from broker.protocol.primitives import INT8, INT32, Reader, encode_short_string
from broker.protocol.request_fields import RequestType, check_item_count


@dataclass(frozen=True, slots=True)
class HelloRequest:
    """Ask a broker who it is and what it understands."""

    TYPE: ClassVar[RequestType] = RequestType.HELLO
    VERSION: ClassVar[int] = 0

    def encode(self) -> bytes:
        """Return the body."""
        return b""

    @classmethod
    def decode(cls, reader: Reader) -> HelloRequest:
        """Read the body, which is empty."""
        return cls()


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """Ask for a broker's topics: those named, or all where `topics` is None."""

    TYPE: ClassVar[RequestType] = RequestType.METADATA
    VERSION: ClassVar[int] = 0

    topics: tuple[str, ...] | None

    def encode(self) -> bytes:
        """Return the body."""
        if self.topics is None:
            return INT32.pack(-1)
        return INT32.pack(len(self.topics)) + b"".join(map(encode_short_string, self.topics))

    @classmethod
    def decode(cls, reader: Reader) -> MetadataRequest:
        """Read the body."""
        count = reader.int32()
        if count == -1:
            return cls(None)
        check_item_count(count, reader, 2)
        return cls(tuple(reader.short_string() for _ in range(count)))


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Ask for a broker's state and counters."""

    TYPE: ClassVar[RequestType] = RequestType.STATUS
    VERSION: ClassVar[int] = 0

    def encode(self) -> bytes:
        """Return the body."""
        return b""

    @classmethod
    def decode(cls, reader: Reader) -> StatusRequest:
        """Read the body, which is empty."""
        return cls()


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """Ask a broker to shut down; `force` skips the wait for clients to move on."""

    TYPE: ClassVar[RequestType] = RequestType.SHUTDOWN
    VERSION: ClassVar[int] = 0

    force: bool

    def encode(self) -> bytes:
        """Return the body."""
        return INT8.pack(self.force)

    @classmethod
    def decode(cls, reader: Reader) -> ShutdownRequest:
        """Read the body."""
        return cls(bool(reader.int8()))


@dataclass(frozen=True, slots=True)
class CreateTopicRequest:
    """Create a topic with a number of partitions on the broker asked."""

    TYPE: ClassVar[RequestType] = RequestType.CREATE_TOPIC
    VERSION: ClassVar[int] = 0

    topic: str
    partition_count: int

    def encode(self) -> bytes:
        """Return the body."""
        return encode_short_string(self.topic) + INT32.pack(self.partition_count)

    @classmethod
    def decode(cls, reader: Reader) -> CreateTopicRequest:
        """Read the body."""
        return cls(reader.short_string(), reader.int32())


@dataclass(frozen=True, slots=True)
class DeleteTopicRequest:
    """Delete a topic with all its logs on the broker asked."""

    TYPE: ClassVar[RequestType] = RequestType.DELETE_TOPIC
    VERSION: ClassVar[int] = 0

    topic: str

    def encode(self) -> bytes:
        """Return the body."""
        return encode_short_string(self.topic)

    @classmethod
    def decode(cls, reader: Reader) -> DeleteTopicRequest:
        """Read the body."""
        return cls(reader.short_string())

"""Publishes of one set, which most are: their requests and good answers made in one step.

All requests of a client for one partition differ in the correlation id and the set, all good
answers in the correlation id and the offset. Everything else about them is made once.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from broker.errors import NO_ERROR
from broker.protocol.data_requests import Acks, PublishRequest
from broker.protocol.primitives import INT16, INT32, Buffer, encode_short_string
from broker.protocol.request_fields import encode_partition
from broker.topic import TopicPartition


class SinglePublish:
    """A client's publishes of one set for one partition.

    Args:
        client_id: who sends them.
        acks: when they are answered.
        timeout_ms: how long the broker may take to commit them.
        partition: where the sets go.
    """

    __slots__ = ("_layout", "_middle")

    def __init__(
        self, client_id: str, acks: Acks, timeout_ms: int, partition: TopicPartition
    ) -> None:
        self._middle = b"".join(
            (
                encode_short_string(client_id),
                INT16.pack(acks),
                INT32.pack(timeout_ms),
                INT32.pack(1),
                encode_partition(partition),
            )
        )
        self._layout = struct.Struct(f">ihhi{len(self._middle)}si")

    def encode_parts(self, correlation_id: int, message_set: Buffer) -> list[Buffer]:
        """Return the frame of a request, in pieces: the set is not copied."""
        set_bytes = len(message_set)
        head = self._layout.pack(
            self._layout.size - INT32.size + set_bytes,
            PublishRequest.TYPE,
            PublishRequest.VERSION,
            correlation_id,
            self._middle,
            set_bytes,
        )
        return [head, message_set]


class GoodAnswer:
    """The answers to publishes of one set that were taken.

    Args:
        partition: where the sets went, as the broker calls it.
    """

    __slots__ = ("_layout", "_middle", "_size")

    def __init__(self, partition: TopicPartition) -> None:
        self._middle = INT32.pack(1) + encode_partition(partition) + INT16.pack(NO_ERROR)
        self._layout = struct.Struct(f">hi{len(self._middle)}sqh")
        self._size = INT32.pack(self._layout.size)

    def encode(self, correlation_id: int, base_offset: int) -> bytes:
        """Return the frame of an answer."""
        return self._size + self._layout.pack(
            NO_ERROR, correlation_id, self._middle, base_offset, 0
        )

    def decode(self, frame: Buffer, correlation_id: int) -> int | None:
        """Return the base offset of a set that was taken; None where somebody has to look closer.

        Args:
            frame: an answer without its size field.
            correlation_id: of the request.
        """
        if len(frame) != self._layout.size:
            return None
        error, found_id, middle, base_offset, text_bytes = self._layout.unpack(frame)
        is_good = error == NO_ERROR and text_bytes == 0 and middle == self._middle
        return int(base_offset) if is_good and found_id == correlation_id else None


@lru_cache(maxsize=4096)
def good_answer_from(partition: TopicPartition) -> GoodAnswer:
    """Return the answers to publishes to a partition; one object for all who ask."""
    return GoodAnswer(partition)

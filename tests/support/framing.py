"""Frames of a stream, for servers and clients of tests."""

from __future__ import annotations

from broker.protocol.framing import DEFAULT_MAX_FRAME_BYTES, SIZE_BYTES, FrameSizeError
from broker.protocol.primitives import INT32, Buffer


class FrameDecoder:
    """Decodes the frames of a stream that arrives in parts of any size.

    `max_frame_bytes` is the largest size field allowed, inclusive.
    """

    def __init__(self, *, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()

    def receive_data(self, data: Buffer) -> None:
        """Take bytes from the peer."""
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Return the next frame without its size field, or None until more data has come.

        After `FrameSizeError` the stream cannot be used any more.
        """
        if len(self._buffer) < SIZE_BYTES:
            return None
        (size,) = INT32.unpack_from(self._buffer)
        if not 0 < size <= self._max_frame_bytes:
            raise FrameSizeError(size, self._max_frame_bytes, 0)
        if len(self._buffer) < SIZE_BYTES + size:
            return None
        frame = bytes(self._buffer[SIZE_BYTES : SIZE_BYTES + size])
        del self._buffer[: SIZE_BYTES + size]
        return frame

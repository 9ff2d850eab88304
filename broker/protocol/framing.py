"""Frames: an int32 size and that many bytes, in both directions."""

from __future__ import annotations

import sys

from broker.errors import ProtocolError
from broker.protocol.primitives import INT32, Buffer

SIZE_BYTES = 4
DEFAULT_MAX_FRAME_BYTES = 104857600


def encode_frame(*parts: Buffer) -> bytes:
    """Return one frame around the parts."""
    return b"".join((INT32.pack(sum(map(len, parts))), *parts))


def cut_frames(
    buffer: Buffer, *, max_frame_bytes: int, max_count: int = sys.maxsize
) -> tuple[list[memoryview], int, int]:
    """Cut complete frames off the front of a buffer; raise `FrameSizeError` for a bad size field.

    Args:
        buffer: bytes as they came from the peer.
        max_frame_bytes: the largest size field allowed, inclusive.
        max_count: of frames to cut, as a view takes ten times the memory of a small frame.

    Returns:
        Views of the frames without their size fields; how many bytes they take with them; and the
        length, size field included, of the next frame, which is incomplete; 0 if that is unknown,
        or if there are more frames than `max_count`.
    """
    view = memoryview(buffer)
    size_at = INT32.unpack_from
    frames: list[memoryview] = []
    position = 0
    end = len(view)
    while end - position >= SIZE_BYTES and len(frames) < max_count:
        (size,) = size_at(view, position)
        if not 0 < size <= max_frame_bytes:
            raise FrameSizeError(size, max_frame_bytes, position)
        start = position + SIZE_BYTES
        if start + size > end:
            return frames, position, SIZE_BYTES + size
        position = start + size
        frames.append(view[start:position])
    return frames, position, 0


class FrameSizeError(ProtocolError):
    """The size field at `position` of the buffer is out of range; frames before it are good."""

    def __init__(self, size: int, max_frame_bytes: int, position: int) -> None:
        super().__init__(f"frame size {size} is not within 1..{max_frame_bytes}")
        self.position = position


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

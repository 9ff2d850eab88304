"""Frames: an int32 size and that many bytes, in both directions."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from broker.errors import ProtocolError
from broker.protocol.codec import boundaries
from broker.protocol.primitives import INT32, Buffer

SIZE_BYTES = 4
DEFAULT_MAX_FRAME_BYTES = 104857600


def encode_frame(*parts: Buffer) -> bytes:
    """Return one frame around the parts."""
    return b"".join((INT32.pack(sum(map(len, parts))), *parts))


class Frames:
    """Whole frames, one behind the other in a buffer; each is cut out when it is taken.

    A view of each would take ten times the memory of a small one.
    """

    __slots__ = ("bounds", "view")

    def __init__(self, view: memoryview, bounds: list[int]) -> None:
        self.view = view
        self.bounds = bounds  # where each starts, with its size field, and where the last one ends

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: int) -> memoryview:
        """Return a frame, without its size field."""
        bounds = self.bounds
        return self.view[bounds[number] + SIZE_BYTES : bounds[number + 1]]

    def __iter__(self) -> Iterator[memoryview]:
        return map(self.__getitem__, range(len(self)))

    def since(self, number: int) -> Frames:
        """Return the frames from one on."""
        return Frames(self.view, self.bounds[number:])

    def only(self, number: int) -> Frames:
        """Return one frame."""
        return Frames(self.view, self.bounds[number : number + 2])

    def copy(self) -> Frames:
        """Return the frames in memory of their own."""
        start = self.bounds[0]
        copied = bytes(self.view[start : self.bounds[-1]])
        return Frames(memoryview(copied), [bound - start for bound in self.bounds])


def cut_frames(
    buffer: Buffer, *, max_frame_bytes: int, max_count: int = sys.maxsize
) -> tuple[Frames, int]:
    """Cut complete frames off the front of a buffer; raise `FrameSizeError` for a bad size field.

    Args:
        buffer: bytes as they came from the peer.
        max_frame_bytes: the largest size field allowed, inclusive.
        max_count: of frames to cut.

    Returns:
        The frames; and the length, size field included, of the next frame, which is incomplete; 0
        if that is unknown, or if there are more frames than `max_count`.
    """
    view = memoryview(buffer)
    bounds = boundaries(view, 1, max_frame_bytes, max_count)
    end = bounds[-1]
    needed = 0
    if len(view) - end >= SIZE_BYTES and len(bounds) <= max_count:
        (size,) = INT32.unpack_from(view, end)
        if not 0 < size <= max_frame_bytes:
            raise FrameSizeError(size, max_frame_bytes, end)
        needed = SIZE_BYTES + size
    return Frames(view, bounds), needed


class FrameSizeError(ProtocolError):
    """The size field at `position` of the buffer is out of range; frames before it are good."""

    def __init__(self, size: int, max_frame_bytes: int, position: int) -> None:
        super().__init__(f"frame size {size} is not within 1..{max_frame_bytes}")
        self.position = position

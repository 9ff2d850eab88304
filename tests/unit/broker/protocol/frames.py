"""Taking a stream apart, for tests of what is in it."""

from __future__ import annotations

from tests.support.framing import FrameDecoder


def frame_of(stream: bytes) -> bytes:
    """The body of a stream that is exactly one frame."""
    decoder = FrameDecoder()
    decoder.receive_data(stream)
    frame = decoder.next_frame()
    assert frame is not None
    assert decoder.next_frame() is None
    return frame

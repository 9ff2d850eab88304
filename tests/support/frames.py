"""Frames as they come out of a socket's bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from broker.protocol.framing import Frames, cut_frames, encode_frame
from broker.protocol.primitives import Buffer


def frames_of(bodies: Iterable[Buffer]) -> Frames:
    """Return frames with these bodies."""
    return cut_frames(b"".join(map(encode_frame, bodies)), max_frame_bytes=sys.maxsize)[0]

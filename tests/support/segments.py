"""Logs to read without a broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from broker.protocol.message_set import build_set

WriteSegments = Callable[..., Path]


@pytest.fixture
def write_segments(tmp_path: Path) -> WriteSegments:
    """Write the segments of a log, one for each list of payloads; returns the data directory."""

    def write(
        *segments: Sequence[bytes], directory: str = "events_0", start: int = 0, tail: bytes = b""
    ) -> Path:
        log = tmp_path / "logs" / directory
        log.mkdir(parents=True, exist_ok=True)
        offset = start
        path = log
        for payloads in segments:
            path = log / f"{offset:020d}.pylog"
            path.write_bytes(build_set(payloads))
            offset += path.stat().st_size
        if tail:
            with path.open("ab") as file:
                file.write(tail)
        return tmp_path / "logs"

    return write

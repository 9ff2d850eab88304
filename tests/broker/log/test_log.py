from __future__ import annotations

from broker.protocol.codec import encode
from tests.broker.log.conftest import LogFactory

TWELVE_BYTES = encode([b"ab"])


def test_append_when_flushed_then_readable(make_log: LogFactory) -> None:
    log = make_log()
    assert log.append(TWELVE_BYTES, 1) == 0
    log.flush()
    found = log.read(0, 100)
    assert found is not None
    assert found.length == 12

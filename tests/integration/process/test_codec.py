"""One broker after the other on the same data, with another codec each."""

from __future__ import annotations

import pytest

from broker.protocol.codec import VARIABLE, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from tests.integration.process.conftest import ProcessFactory
from tests.support.codec_engines import ENGINE_NAMES, load_engine

SETS = [
    encode([b"a plain message"]),
    build_set([b"one", b"two", b""], Codec.GZIP),
    encode([bytes(size) for size in range(200)]),
    build_set([b"x" * 5000] * 9, Codec.ZSTD),
]


@pytest.mark.parametrize("first", ENGINE_NAMES)
@pytest.mark.parametrize("second", ENGINE_NAMES)
def test_log_when_its_broker_is_killed_then_is_recovered_by_either_codec(
    start_process: ProcessFactory, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    load_engine("compiled")
    monkeypatch.setenv(VARIABLE, first)
    process = start_process()
    with process.peer() as peer:
        for message_set in SETS:
            peer.publish("events", message_set)
        assert first in peer.status()["codec"].lower()
    process.kill()
    with next(process.data.glob("events_0/*.pylog")).open("ab") as file:
        file.write(SETS[0][:-1])

    monkeypatch.setenv(VARIABLE, second)
    again = start_process()

    with again.peer() as peer:
        assert peer.fetch("events", 0) == (0, b"".join(SETS))
        status = peer.status()
        assert second in status["codec"].lower()
        assert status["clean_start"] is False

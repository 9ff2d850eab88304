"""The compiled engine lets other threads run while it goes over a large buffer."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from broker.protocol import codec
from tests.support.codec_engines import Engine, load_engine

DEADLINE_S = 60.0
NEVER_S = 10 * DEADLINE_S
PAYLOADS = [os.urandom(200)] * 5000
BATCH = codec.encode_batch([codec.Record(n, 0, None, one) for n, one in enumerate(PAYLOADS)])
TEXT = b"\n".join([b"x" * 200] * 5000) + b"\n"


@pytest.fixture(scope="module")
def compiled() -> Engine:
    return load_engine("compiled")


@pytest.fixture
def no_switching() -> Iterator[None]:
    """Have no thread give way to another unless it lets go of the lock by itself."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(NEVER_S)
    yield
    sys.setswitchinterval(interval_s)


CALLS: dict[str, Callable[[Engine, bytes], object]] = {
    "scan": lambda engine, data: engine.scan(data),
    "boundaries": lambda engine, data: engine.boundaries(data),
    "find_entry": lambda engine, data: engine.find_entry(bytes(1 << 20), 1 << 20, 1 << 20),
    "decode": lambda engine, data: engine.decode(data, 0),
    "decode_delimited": lambda engine, data: engine.decode_delimited(data, b"\n"),
    "decode_columns": lambda engine, data: engine.decode_columns(data, 0),
    "scan_batches": lambda engine, data: engine.scan_batches(BATCH),
    "decode_records": lambda engine, data: engine.decode_records(BATCH),
    "decode_record_columns": lambda engine, data: engine.decode_record_columns(BATCH),
    "encode": lambda engine, data: engine.encode(PAYLOADS),
    "encode_delimited": lambda engine, data: engine.encode_delimited(
        TEXT, b"\n", max_payload_bytes=1000, batch_count=100
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("no_switching")
def test_lock_when_a_buffer_is_large_then_another_thread_gets_it(
    compiled: Engine, name: str
) -> None:
    data = compiled.encode(PAYLOADS)
    gate = threading.Lock()
    gate.acquire()
    has_run: list[bool] = []

    def run_once() -> None:
        with gate:
            has_run.append(True)

    thread = threading.Thread(target=run_once, name="other")
    thread.start()
    gate.release()
    deadline_s = time.monotonic() + DEADLINE_S
    while not has_run and time.monotonic() < deadline_s:
        CALLS[name](compiled, data)
    got_the_lock = bool(has_run)
    thread.join()

    assert got_the_lock

"""The cases: both engines must return the same for each; what strangers send is read or refused."""

from __future__ import annotations

import ctypes
import gc
import itertools
import threading
import time
import traceback
from array import array
from collections.abc import Callable
from operator import methodcaller
from random import Random

from broker.errors import ProtocolError
from broker.protocol.client_requests import AuthenticateRequest
from broker.protocol.codec import CrcCheck
from broker.protocol.message import COLUMN_NAMES
from broker.protocol.primitives import Reader
from broker.protocol.record_batch import RECORD_COLUMN_NAMES, Record
from fuzz import inputs
from tests.support.codec_engines import Engine, assert_alike, load_engine

_REPORT_CASES = 1000
_RACE_CASES = 50
_LEAK_CASES = 200
_LEAK_ROUNDS = 6
"""The first fills caches, and any other may catch the interpreter at filling one."""

Engines = tuple[Engine, Engine]


def run(seconds: float, first_seed: int) -> int:
    """Run cases until the time is up or one fails; return 0 if none failed."""
    engines = load_engine("python"), load_engine("compiled")
    deadline_s = time.monotonic() + seconds
    seed = first_seed
    while time.monotonic() < deadline_s:
        if (seed - first_seed) % _REPORT_CASES == 0:
            print(f"from seed {seed}", flush=True)  # a sanitizer ends the process without the seed
        try:
            _run_case(engines, Random(seed))
        except AssertionError:
            traceback.print_exc()
            print(f"the engines differ; reproduce with --seed {seed}")
            return 1
        seed += 1
    _run_race(engines[1], Random(first_seed))
    leaked_bytes = _leaked_bytes(engines, first_seed)
    print(f"{seed - first_seed} cases, no difference, {leaked_bytes} bytes leaked")
    return int(leaked_bytes > 0)


def _run_case(engines: Engines, random: Random) -> None:
    for case in (
        _compare_reading,
        _compare_columns,
        _compare_text,
        _compare_sets,
        _compare_appends,
        _compare_batches,
        _decode_authentication,
    ):
        case(engines, random)


def _compare_reading(engines: Engines, random: Random) -> None:
    data = inputs.exact(inputs.message_set(random))
    base_offset = random.choice((0, 2**62, -(2**63), 2**63 - 1 - len(data), 2**63 - len(data)))
    delimiter = random.choice(inputs.DELIMITERS)
    limit = random.choice((-1, 0, 1, 2, 5, 100))
    stop, rest = random.choice((0, 9, len(data))), len(data) + random.choice((-1, 0, 1, 8, 2**24))
    calls: tuple[Callable[[Engine], object], ...] = (
        lambda engine: engine.scan(data),
        lambda engine: engine.boundaries(data),
        lambda engine: engine.find_entry(data, stop, rest),
        lambda engine: engine.decode(data, base_offset),
        lambda engine: engine.decode_delimited(data, delimiter, limit),
        lambda engine: engine.count_delimiters(bytes(data), delimiter or b"x"),
    )
    for call in calls:
        assert_alike(engines, call)


def _compare_columns(engines: Engines, random: Random) -> None:
    data = inputs.exact(inputs.message_set(random))
    check = random.choice(tuple(CrcCheck))
    most = random.choice((0, 1, 200, 5000, 2**31 - 1))
    names = {one for one in COLUMN_NAMES if random.random() < 0.7}
    assert_alike(
        engines,
        lambda engine: engine.decode_columns(
            data, 7, crc_check=check, max_value_bytes=most, columns=names
        ),
    )


def _compare_text(engines: Engines, random: Random) -> None:
    delimiter = random.choice(inputs.DELIMITERS)
    data = inputs.exact(inputs.text(random, delimiter))
    max_payload_bytes = random.choice((0, 64, 999, 10**6, 2**40))
    batch_count = random.choice((1, 2, 10, 10**6))
    batch_bytes = random.choice((None, 0, 11, 500, 10**6))
    assert_alike(
        engines,
        lambda engine: engine.encode_delimited(
            data,
            delimiter,
            max_payload_bytes=max_payload_bytes,
            batch_count=batch_count,
            batch_bytes=batch_bytes,
        ),
    )


def _compare_sets(engines: Engines, random: Random) -> None:
    payloads = inputs.payloads(random)
    assert_alike(engines, lambda engine: engine.encode(payloads))
    codec, container = inputs.container(random)
    assert_alike(engines, lambda engine: engine.unfold(codec, container))
    assert_alike(engines, lambda engine: engine.count_unfolded(codec, container))


def _compare_appends(engines: Engines, random: Random) -> None:
    data = inputs.exact(inputs.appends(random))
    most_bytes, most_count = random.choice((40, 200, 2**40)), random.choice((1, 3, 2**40))
    assert_alike(engines, lambda engine: engine.boundaries(data, 1, most_bytes, most_count))
    bounds = engines[0].boundaries(data, 1)
    for first in range(-1, len(bounds)):
        assert_alike(engines, methodcaller("single_appends", data, bounds, first))
    template = random.randbytes(random.choice((27, 28, 40)))
    ids = random.randbytes(random.choice((0, 3, 4, 40)))
    sizes = random.randbytes(random.choice((len(ids), len(ids), len(ids), 4)))
    base_offset = random.choice((0, 2**62, -(2**63), 2**63 - 1))
    assert_alike(
        engines, lambda engine: engine.publish_responses(template, ids, sizes, base_offset)
    )


def _compare_batches(engines: Engines, random: Random) -> None:
    data = inputs.exact(inputs.batches(random))
    most = random.choice((0, 1, 200, 5000, 2**40))
    names = {one for one in RECORD_COLUMN_NAMES if random.random() < 0.7}
    has_control = random.random() < 0.5
    base_offset = random.choice((0, 2**62, -1, 2**63 - 1))
    calls: tuple[Callable[[Engine], object], ...] = (
        lambda engine: engine.crc32c(data, len(data)),
        lambda engine: engine.scan_batches(data),
        lambda engine: engine.verify_batches(data),
        lambda engine: engine.decode_records(data, with_control=has_control, max_bytes=most),
        lambda engine: engine.decode_record_columns(data, max_bytes=most, columns=names),
        lambda engine: engine.stamp_batches(data, base_offset, 7),
    )
    for call in calls:
        assert_alike(engines, call)
    records, batch = inputs.records(random), inputs.batch_fields(random)
    assert_alike(engines, lambda engine: engine.encode_batch(records, batch))


def _decode_authentication(_engines: Engines, random: Random) -> None:
    """What is read of any bytes is written as it was read, or they are refused."""
    data = inputs.authentication(random)
    reader = Reader(data)
    try:
        request = AuthenticateRequest.decode(reader)
    except ProtocolError:
        return
    assert request.encode() + bytes(reader.rest) == data


def _run_race(compiled: Engine, random: Random) -> None:
    """Have another thread write into a buffer while it is read without the lock."""
    good = bytearray(compiled.encode([random.randbytes(90) for _ in range(20_000)]))
    batch = bytearray(compiled.encode_batch([Record(n, n, b"k", bytes(90)) for n in range(20_000)]))
    is_over = threading.Event()

    def disturb() -> None:
        while not is_over.is_set():
            for data in (good, batch):
                at = random.randrange(len(data))
                data[at] ^= 1 << random.randrange(8)
                data[at] ^= 1 << random.randrange(8)

    thread = threading.Thread(target=disturb, name="disturb")
    thread.start()
    try:
        for _ in range(_RACE_CASES):
            compiled.scan(good)
            compiled.boundaries(good)
            compiled.find_entry(memoryview(good)[1:], len(good), len(good))
            compiled.decode(good, 0)
            compiled.scan_batches(batch)
            compiled.decode_records(batch)
            compiled.decode_record_columns(batch)
            compiled.decode_delimited(good, b"\n")
            for check in CrcCheck:
                compiled.decode_columns(good, 0, crc_check=check)
            compiled.encode_delimited(good, b"\n", max_payload_bytes=2**30, batch_count=10)
    finally:
        is_over.set()
        thread.join()


def _leaked_bytes(engines: Engines, first_seed: int) -> int:
    """Return how much memory the same cases take for good each time they are run once more.

    Only the address sanitizer counts allocations; without it the result is 0.
    """
    allocated = getattr(ctypes.CDLL(None), "__sanitizer_get_current_allocated_bytes", None)
    if allocated is None:
        return 0
    allocated.restype = ctypes.c_size_t
    sizes = array("Q", bytes(8 * _LEAK_ROUNDS))  # a list would itself grow with what it notes
    for place in range(_LEAK_ROUNDS):
        for seed in range(first_seed, first_seed + _LEAK_CASES):
            _run_case(engines, Random(seed))
        gc.collect()
        sizes[place] = allocated()
    return min(after - before for before, after in itertools.pairwise(sizes[1:]))

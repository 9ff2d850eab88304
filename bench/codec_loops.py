"""The codec's loops over buffers alone, which are part of all other figures.

Both engines take turns, so that a change of the machine's load affects both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import ModuleType

from bench.measure import Goal, Measurement, Plan, repeat
from bench.workload import payloads
from broker.protocol import _codec_python
from broker.protocol.codec import IS_COMPILED, Record

_CALLS = {"python": 4, "compiled": 40}
_GOALS = {"encode_delimited": Goal(2_500_000), "decode_delimited": Goal(4_000_000)}


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure each loop over a million bytes of messages in memory."""
    engines = {"python": _codec_python}
    if IS_COMPILED:
        from broker.protocol import _codec_compiled

        engines["compiled"] = _codec_compiled
    messages = payloads() * 5
    calls = {engine: _loops(module, messages) for engine, module in engines.items()}
    for name in calls["python"]:
        rates = _interleaved(
            plan, {engine: loops[name] for engine, loops in calls.items()}, messages
        )
        for engine, values in rates.items():
            goal = _GOALS.get(name) if engine == "compiled" else None
            yield Measurement(f"codec {name}, {engine}", "messages/s", values, goal)
        if IS_COMPILED:
            pairs = zip(rates["compiled"], rates["python"], strict=True)
            ratios = [compiled / plain for compiled, plain in pairs]
            yield Measurement(f"codec {name}, compiled to python", "times", ratios)


def _loops(engine: ModuleType, messages: list[bytes]) -> dict[str, Callable[[], object]]:
    text = b"\n".join(messages) + b"\n"
    message_set = engine.encode(messages)
    records = [Record(n, n, None, one) for n, one in enumerate(messages)]
    batch = engine.encode_batch(records)

    def encode_text() -> object:
        return engine.encode_delimited(text, b"\n", max_payload_bytes=1_000_000, batch_count=200)

    return {
        "encode": lambda: engine.encode(messages),
        "encode_delimited": encode_text,
        "scan": lambda: engine.scan(message_set),
        "boundaries": lambda: engine.boundaries(message_set),
        "decode": lambda: engine.decode(message_set, 0),
        "decode_delimited": lambda: engine.decode_delimited(message_set, b"\n"),
        "decode_columns": lambda: engine.decode_columns(message_set, 0),
        "encode_batch": lambda: engine.encode_batch(records),
        "scan_batches": lambda: engine.scan_batches(batch),
        "decode_records": lambda: engine.decode_records(batch),
        "decode_record_columns": lambda: engine.decode_record_columns(batch),
    }


def _interleaved(
    plan: Plan, loops: dict[str, Callable[[], object]], messages: list[bytes]
) -> dict[str, list[float]]:
    """Return the rates of each engine, measured in turns."""
    rates: dict[str, list[float]] = {engine: [] for engine in loops}

    def measure_each() -> float:
        for engine, loop in loops.items():
            elapsed_s = _time_calls(loop, _CALLS[engine])
            rates[engine].append(_CALLS[engine] * len(messages) / elapsed_s)
        return 0.0

    repeat(plan, measure_each)
    return rates


def _time_calls(loop: Callable[[], object], count: int) -> float:
    started_s = time.perf_counter()
    for _ in range(count):
        loop()
    return time.perf_counter() - started_s

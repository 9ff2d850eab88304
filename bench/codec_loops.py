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
from broker.protocol.codec import IS_COMPILED

_CALLS = {"python": 4, "compiled": 40}
_GOALS = {"encode_delimited": Goal(2_500_000), "decode_delimited": Goal(4_000_000)}


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure each loop over a million bytes of messages in memory."""
    twins = {"python": _codec_python}
    if IS_COMPILED:
        from broker.protocol import _codec_compiled

        twins["compiled"] = _codec_compiled
    messages = payloads() * 5
    calls = {twin: _loops(module, messages) for twin, module in twins.items()}
    for name in calls["python"]:
        rates = _interleaved(plan, {twin: loops[name] for twin, loops in calls.items()}, messages)
        for twin, values in rates.items():
            goal = _GOALS.get(name) if twin == "compiled" else None
            yield Measurement(f"codec {name}, {twin}", "messages/s", values, goal)
        if IS_COMPILED:
            pairs = zip(rates["compiled"], rates["python"], strict=True)
            ratios = [compiled / plain for compiled, plain in pairs]
            yield Measurement(f"codec {name}, compiled to python", "times", ratios)


def _loops(twin: ModuleType, messages: list[bytes]) -> dict[str, Callable[[], object]]:
    text = b"\n".join(messages) + b"\n"
    message_set = twin.encode(messages)

    def encode_text() -> object:
        return twin.encode_delimited(text, b"\n", max_payload_bytes=1_000_000, batch_count=200)

    return {
        "encode": lambda: twin.encode(messages),
        "encode_delimited": encode_text,
        "scan": lambda: twin.scan(message_set),
        "boundaries": lambda: twin.boundaries(message_set),
        "decode": lambda: twin.decode(message_set, 0),
        "decode_delimited": lambda: twin.decode_delimited(message_set, b"\n"),
        "decode_columns": lambda: twin.decode_columns(message_set, 0),
    }


def _interleaved(
    plan: Plan, loops: dict[str, Callable[[], object]], messages: list[bytes]
) -> dict[str, list[float]]:
    """Return the rates of each engine, measured in turns."""
    rates: dict[str, list[float]] = {twin: [] for twin in loops}

    def measure_each() -> float:
        for twin, loop in loops.items():
            elapsed_s = _time_calls(loop, _CALLS[twin])
            rates[twin].append(_CALLS[twin] * len(messages) / elapsed_s)
        return 0.0

    repeat(plan, measure_each)
    return rates


def _time_calls(loop: Callable[[], object], count: int) -> float:
    started_s = time.perf_counter()
    for _ in range(count):
        loop()
    return time.perf_counter() - started_s

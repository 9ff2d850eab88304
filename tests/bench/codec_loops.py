"""The codec's loops over buffers, alone: the share of every other figure that is theirs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from broker.protocol import codec
from tests.bench.measure import Measurement, Plan, repeat_rate
from tests.bench.workload import payloads

_CALLS = 20


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure each loop over a million bytes of messages in memory."""
    messages = payloads() * 5
    text = b"\n".join(messages) + b"\n"
    message_set = codec.encode(messages)

    def encode_text() -> object:
        return codec.encode_delimited(text, b"\n", max_payload_bytes=1_000_000, batch_count=200)

    loops: dict[str, Callable[[], object]] = {
        "encode": lambda: codec.encode(messages),
        "encode_delimited": encode_text,
        "scan": lambda: codec.scan(message_set),
        "boundaries": lambda: codec.boundaries(message_set),
        "decode": lambda: codec.decode(message_set, 0),
        "decode_delimited": lambda: codec.decode_delimited(message_set, b"\n"),
    }
    for name, loop in loops.items():
        rates = repeat_rate(plan, _CALLS * len(messages), partial(_time_calls, loop))
        yield Measurement(f"codec {name}", "messages/s", rates)


def _time_calls(loop: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    for _ in range(_CALLS):
        loop()
    return time.perf_counter() - started_s

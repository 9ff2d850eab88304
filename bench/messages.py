"""Messages as a program gets them: objects, or the tuples of Kafka 0.7's classes.

Each loop decodes a set of a thousand messages of 100 bytes in memory, passes them through a
generator, as `Client.read` and `ConsumerStream` do, and reads their values. Both loops take turns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from types import ModuleType

from bench.measure import Goal, Measurement, Plan, repeat
from bench.workload import payloads
from broker.protocol import _codec_python
from broker.protocol.codec import IS_COMPILED
from broker.topic import TopicPartition

_PARTITION = TopicPartition("messages", 0, 0)
_PAYLOAD_BYTES = 100
_ROUNDS = 50
_MOST = Goal(1.15, is_most=True)
"""How much longer objects may take than tuples, with the compiled codec."""


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure both loops with each engine of the codec."""
    engines = {"python": _codec_python}
    if IS_COMPILED:
        from broker.protocol import _codec_compiled

        engines["compiled"] = _codec_compiled
    for name, engine in engines.items():
        message_set = engine.encode([payload[:_PAYLOAD_BYTES] for payload in payloads()])
        taken_ns = {"objects": list[float](), "tuples": list[float]()}
        repeat(plan, partial(_measure_both, engine, message_set, taken_ns))
        for kind, values in taken_ns.items():
            yield Measurement(f"messages as {kind}, {name}", "ns", values)
        ratios = [one / other for one, other in zip(*taken_ns.values(), strict=True)]
        goal = _MOST if name == "compiled" else None
        yield Measurement(f"messages as objects to tuples, {name}", "times", ratios, goal)


def _measure_both(
    engine: ModuleType, message_set: bytes, taken_ns: dict[str, list[float]]
) -> float:
    """Add the nanoseconds that a message takes in each loop."""
    best_ns = dict.fromkeys(_LOOPS, math.inf)  # other work of the machine only adds to it
    for _ in range(_ROUNDS):
        for kind, loop in _LOOPS.items():
            started_ns = time.perf_counter_ns()
            count = loop(engine, message_set)
            best_ns[kind] = min(best_ns[kind], (time.perf_counter_ns() - started_ns) / count)
    for kind, value in best_ns.items():
        taken_ns[kind].append(value)
    return 0.0


def _objects(engine: ModuleType, message_set: bytes) -> int:
    def give() -> Iterator[_codec_python.Message]:
        messages, _, _ = engine.decode_messages(message_set, 0, _PARTITION.topic, _PARTITION)
        yield from messages

    count = 0
    for message in give():
        message.value  # noqa: B018
        count += 1
    return count


def _tuples(engine: ModuleType, message_set: bytes) -> int:
    def give() -> Iterator[tuple[str, TopicPartition, int, int, bytes]]:
        topic = _PARTITION.topic
        for offset, next_offset, payload in engine.decode(message_set, 0).messages:
            yield topic, _PARTITION, offset, next_offset, payload

    count = 0
    for _topic, _partition, _offset, _next_offset, _payload in give():
        count += 1
    return count


_LOOPS = {"objects": _objects, "tuples": _tuples}

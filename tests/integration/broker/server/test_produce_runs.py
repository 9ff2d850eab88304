"""Requests that are taken together have the effect they have one after the other."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.config import BrokerConfig
from broker.errors import BrokerError
from broker.log.manager import LogManager
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import DeleteTopicRequest
from broker.protocol.message_set import build_set
from broker.protocol.primitives import INT16
from broker.protocol.requests import ProduceRequest, encode_request
from broker.server.broker import Broker
from broker.server.checking import SetChecker, TooMuchToCheckError
from broker.server.metrics import ProcessorMetrics
from broker.server.produce import Appender, ProduceHandler
from tests.doubles import FakeClock
from tests.integration.broker.factories import PeerFactory
from tests.support.waiting import wait_until

MAX_MESSAGE_BYTES = 50
TOPICS = ("events", "audit", "new")


def frame_of(topic: str, index: int, message_set: bytes) -> memoryview:
    body = ProduceRequest(topic, index, message_set).encode()
    return memoryview(INT16.pack(0) + body)


payloads = st.lists(st.binary(max_size=20), min_size=1, max_size=4)
good_sets = st.one_of(
    st.just(b""),
    payloads.map(encode),
    payloads.map(lambda one: build_set(one, Codec.GZIP)),
)
cut_sets = st.builds(lambda whole, cut: encode(whole)[: -min(cut, 9)], payloads, st.integers(1, 9))
bad_sets = st.one_of(
    payloads.map(lambda one: encode(one)[:-1] + b"\xff\xff"),
    st.just(encode([bytes(MAX_MESSAGE_BYTES + 1)])),
    st.binary(max_size=30),
)
frames = st.builds(
    frame_of,
    st.sampled_from(TOPICS),
    st.sampled_from((0, 0, 0, 1, 2)),
    st.one_of(good_sets, good_sets, good_sets, good_sets, cut_sets, bad_sets),
)
odd_frames = st.binary(max_size=40).map(lambda rest: memoryview(b"\0\0" + rest))
runs = st.lists(st.one_of(*[frames] * 15, odd_frames), min_size=1, max_size=12)


@dataclass
class Outcome:
    """What a run left in the logs, in the counters, and what it raised."""

    logs: dict[str, bytes]
    counters: dict[str, tuple[int, int, int]]
    error: str | None


def run(handle: Callable[[ProduceHandler], object], *, turn_bytes: int | None = None) -> Outcome:
    """Handle frames with handlers of their own, and look at what came of it."""
    with TemporaryDirectory() as directory:
        config = BrokerConfig(data_dir=Path(directory) / "data", num_partitions=2)
        clock = FakeClock()
        logs = LogManager(config, clock)
        logs.open()
        metrics = ProcessorMetrics(clock, 60.0)
        checker = SetChecker(MAX_MESSAGE_BYTES, turn_bytes=turn_bytes)
        appender = Appender(logs, metrics, checker, max_topic_name_length=255)
        handler = ProduceHandler(appender, logs, metrics, checker)
        handler.handle_run([frame_of(topic, 0, b"") for topic in TOPICS[:2]])
        checker.begin_turn()
        error = None
        try:
            handle(handler)
        except BrokerError as problem:
            error = f"{type(problem).__name__}: {problem}"
        counters = {
            name: (one.messages_in, one.bytes_in, one.failed_produce)
            for name, one in metrics.topics.items()
        }
        logs.close()
        content = {
            path.parent.name: path.read_bytes() for path in config.data_dir.glob("*/*.pylog")
        }
        return Outcome(content, counters, error)


def one_by_one(run_of: list[memoryview]) -> Callable[[ProduceHandler], None]:
    def handle(handler: ProduceHandler) -> None:
        for frame in run_of:
            handler.handle_run([frame])

    return handle


@settings(max_examples=150, deadline=None)
@given(runs)
def test_handle_run_when_requests_come_together_then_as_one_after_the_other(
    run_of: list[memoryview],
) -> None:
    together = run(lambda handler: handler.handle_run(run_of))
    assert together == run(one_by_one(run_of))


@settings(max_examples=60, deadline=None)
@given(runs, st.integers(1, 300))
def test_handle_run_when_there_is_no_time_for_all_then_only_the_rest_is_left(
    run_of: list[memoryview], turn_bytes: int
) -> None:
    done_counts: list[int] = []

    def handle(handler: ProduceHandler) -> None:
        try:
            done_counts.append(handler.handle_run(run_of))
        except TooMuchToCheckError:
            done_counts.append(0)

    limited = run(handle, turn_bytes=turn_bytes)
    done_count = done_counts[0] if done_counts else len(run_of)

    assert limited == run(one_by_one(run_of[:done_count]))


def test_produce_run_when_its_topic_is_deleted_then_nothing_keeps_the_log(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    frame = encode_request(ProduceRequest("events", 0, encode([b"one"])))
    for _ in range(2):  # the first one creates the topic
        peer.send_bytes(2 * frame)
        peer.status()
    log = running_broker._logs.get("events", 0)
    assert log is not None
    kept = weakref.ref(log)
    del log

    peer.call(DeleteTopicRequest("events"))

    def is_gone() -> bool:
        gc.collect()
        return kept() is None

    wait_until(is_gone, "the log to go")

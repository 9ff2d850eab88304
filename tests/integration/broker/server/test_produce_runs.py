"""Requests that are taken together have the effect they have one after the other."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.config import BrokerConfig
from broker.errors import BrokerError
from broker.log.manager import LogManager
from broker.protocol.append_request import append_request
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import DeleteTopicRequest
from broker.protocol.message_set import build_set
from broker.protocol.primitives import INT16
from broker.protocol.requests import ProduceRequest, RequestType, decode_request, encode_request
from broker.server.broker import Broker
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_table import ReplicaTable
from broker.server.cluster.shutdown import Shutdown
from broker.server.requests.broker_parts import BrokerParts
from broker.server.requests.client import ConnectedClient
from broker.server.requests.creation_limits import CreationLimits
from broker.server.requests.forwarder import Forwarder
from broker.server.requests.handlers import RequestHandlers
from broker.server.requests.judge import Judge
from broker.server.requests.metrics import ProcessorMetrics
from broker.server.requests.outcomes import CloseConnection, Offload, YieldTurn
from broker.server.requests.produce import ProduceHandler
from broker.server.requests.schema_guard import SchemaGuard
from broker.server.requests.topic_creations import TopicCreations
from broker.server.requests.validation import TURN_BYTES, Validator
from broker.topic import TopicPartition
from tests.doubles import FakeClock
from tests.integration.broker.factories import PeerFactory
from tests.support.frames import frames_of
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
class Effect:
    """What requests left in the logs and in the counters, and the error of the bad one."""

    logs: dict[str, bytes]
    counters: dict[str, tuple[int, int, int]]
    error: str | None


def effect_of(handle: Callable[[BrokerParts, ProcessorMetrics], object]) -> Effect:
    """Handle frames with parts of their own, and look at the effect."""
    with TemporaryDirectory() as directory:
        config = BrokerConfig(
            data_dirs=(Path(directory) / "data",),
            num_partitions=2,
            max_message_bytes=MAX_MESSAGE_BYTES,
        )
        clock = FakeClock()
        logs = LogManager(config, clock)
        logs.open()
        replicas = ReplicaTable(config, logs, clock, Mock(), Mock())
        brokers = LiveBrokers(config)
        limits = CreationLimits(config, logs, clock)
        creations = TopicCreations(config, logs, replicas, brokers, Mock(), Mock(), limits)
        parts = Mock(
            config=config,
            clock=clock,
            logs=logs,
            replicas=replicas,
            shutdown=Shutdown(clock),
            creations=creations,
            guard=SchemaGuard(Mock(), clock),
            forwarder=Forwarder(replicas, brokers, creations, clock, config.max_request_bytes),
            judge=Judge(0),
            at_home=lambda topic, index: TopicPartition(topic, 0, index),
        )
        metrics = ProcessorMetrics(clock, 60.0)
        for topic in TOPICS[:2]:
            append_singly(produce_handler(parts, metrics), frame_of(topic, 0, b""))
        error = None
        try:
            handle(parts, metrics)
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
        return Effect(content, counters, error)


@pytest.fixture(scope="module", autouse=True)
def endless_turns() -> Iterator[None]:
    """Let turns end by the budget of validation only, not on a slow machine as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("broker.server.requests.handlers.TURN_S", math.inf)
        yield


def produce_handler(parts: BrokerParts, metrics: ProcessorMetrics) -> ProduceHandler:
    return ProduceHandler(parts, metrics, Validator(MAX_MESSAGE_BYTES, turn_bytes=None))


def append_singly(handler: ProduceHandler, frame: memoryview) -> None:
    request = decode_request(frame)
    assert isinstance(request, ProduceRequest)
    handler.append(append_request(request, 0), ConnectedClient("127.0.0.1"), None)


def effect_of_each(frames_of_run: list[memoryview]) -> Effect:
    def handle(parts: BrokerParts, metrics: ProcessorMetrics) -> None:
        handler = produce_handler(parts, metrics)
        for frame in frames_of_run:
            append_singly(handler, frame)

    return effect_of(handle)


def effect_of_run(frames_of_run: list[memoryview], turn_bytes: int | None) -> tuple[Effect, int]:
    """Handle frames as a processor does; return also how many were handled."""
    done_counts = [len(frames_of_run)]

    def handle(parts: BrokerParts, metrics: ProcessorMetrics) -> None:
        handlers = RequestHandlers(parts, metrics, turn_bytes, Mock())
        for position, outcome in handlers.handle(
            frames_of(frames_of_run), ConnectedClient("127.0.0.1"), 0.0
        ):
            match outcome:
                case Offload(frames):
                    done_counts.append(position - len(frames))
                case YieldTurn():
                    done_counts.append(position)
                case CloseConnection(reason):
                    raise reason

    return effect_of(handle), done_counts[-1]


@settings(max_examples=150, deadline=None)
@given(runs)
def test_append_together_when_requests_come_together_then_as_one_after_the_other(
    frames_of_run: list[memoryview],
) -> None:
    together, _ = effect_of_run(frames_of_run, None)
    assert together == effect_of_each(frames_of_run)


@settings(max_examples=60, deadline=None)
@given(runs, st.integers(1, 300))
def test_append_together_when_the_budget_is_exceeded_then_only_the_rest_is_left(
    frames_of_run: list[memoryview], turn_bytes: int
) -> None:
    limited, done_count = effect_of_run(frames_of_run, turn_bytes)
    assert limited == effect_of_each(frames_of_run[:done_count])


def test_request_when_a_worker_takes_it_over_then_counted_once(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    large = build_set([bytes(500_000)] * (TURN_BYTES // 500_000 + 1), Codec.GZIP)
    peer.send_bytes(encode_request(ProduceRequest("events", 0, large)))
    peer.status()
    assert running_broker.server._offload_metrics.requests == {RequestType.PRODUCE: 1}
    assert running_broker.status()["metrics"]["RequestMetrics.produce"] == {"Requests": 1}


def test_produce_run_when_its_topic_is_deleted_then_nothing_keeps_the_log(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    frame = encode_request(ProduceRequest("events", 0, encode([b"one"])))
    for _ in range(2):  # the first one creates the topic
        peer.send_bytes(2 * frame)
        peer.status()
    log = running_broker.logs.table.get("events", 0)
    assert log is not None
    kept = weakref.ref(log)
    del log

    peer.call(DeleteTopicRequest("events"))

    def is_gone() -> bool:
        gc.collect()
        return kept() is None

    wait_until(is_gone, "the log to go")

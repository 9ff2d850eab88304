"""Many connections that each wait for an acknowledgement, or have reads parked."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench.broker_process import BrokerProcess, running_broker
from bench.measure import Measurement, Plan
from bench.scale import load
from bench.scale.point import Axis, seconds, watch
from bench.wire import publish_frames
from bench.workload import payloads
from broker.protocol.client_requests import PartitionPosition, ReadRequest
from broker.protocol.extension_requests import StatusParts, StatusRequest
from broker.protocol.framing import SIZE_BYTES
from broker.protocol.layouts import DATA
from broker.protocol.primitives import INT32
from broker.topic import TopicPartition
from pylogctl.perf.measure import Latencies

_COUNTS = (1, 10, 100, 1000)
_PARKED_CONNECTIONS = (0, 100, 500)
_READS_EACH = 17
_PARKED_MS = 60_000
_ROOM = {"max.connections": "2000", "max.connections.per.ip": "2000"}


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure 1 to 1,000 connections, requests of 50 messages, one in flight on each."""
    axis = Axis("connections")
    for count in _COUNTS:
        with running_broker(plan.directory, **_ROOM) as broker:
            (partition,) = load.create(broker, "swarmed", 1)
            with watch([broker]) as watched:
                latencies = _swarm(broker, partition, count, seconds(plan))
            messages = latencies.count * load.BATCH
            yield from axis.throughput("in", count, watched, message_count=messages)
            yield from _times(axis, "time of a request", count, latencies)
            yield axis.figure("broker memory", "", count, broker.memory_mb("VmHWM"), "MB")


def run_parked_reads(plan: Plan) -> Iterator[Measurement]:
    """Measure publishes of 50 messages beside reads that wait for more of the same partition."""
    axis = Axis("parked reads")
    for count in _PARKED_CONNECTIONS:
        with running_broker(plan.directory, **_ROOM) as broker, ExitStack() as opened:
            (partition,) = load.create(broker, "parked", 1)
            position = PartitionPosition(partition, 0, 1 << 30)
            read = ReadRequest(_PARKED_MS, 1 << 30, 1 << 30, (position,))
            reads = count * _READS_EACH
            for _ in range(count):
                connection = broker.connect()
                opened.callback(connection.close)
                for _ in range(_READS_EACH):
                    connection.send_extension(read)
            while _waiting_count(broker) < reads:
                time.sleep(0.1)
            with watch([broker]) as watched:
                latencies = _swarm(broker, partition, 1, seconds(plan))
            yield from axis.cores("publish", reads, watched)
            yield from _times(axis, "time of a publish", reads, latencies)


def _waiting_count(broker: BrokerProcess) -> int:
    """Return how many responses of a broker are delayed."""
    connection = broker.connect()
    status = json.loads(DATA.decode(connection.call(StatusRequest(StatusParts.METRICS))))
    connection.close()
    waiting: int = status["metrics"]["Purgatory"]["Waiting"]
    return waiting


def _times(axis: Axis, what: str, x: float, latencies: Latencies) -> Iterator[Measurement]:
    for name, percent in (("p50", 50.0), ("p99", 99.0)):
        yield axis.figure(what, name, x, 1000 * (latencies.percentile_s(percent) or 0.0), "ms")


def _swarm(
    broker: BrokerProcess, partition: TopicPartition, count: int, seconds: float
) -> Latencies:
    """Send on each connection, wait for the response, and send again, for some seconds."""
    (frame,) = publish_frames(partition, payloads()[: load.BATCH], load.BATCH)
    latencies = Latencies()
    sent_s: dict[socket.socket, float] = {}
    with selectors.DefaultSelector() as selector:
        for _ in range(count):
            opened = socket.create_connection((broker.address.host, broker.port))
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(opened, selectors.EVENT_READ, opened)
            sent_s[opened] = time.perf_counter()
            opened.sendall(frame)
        end_s = time.perf_counter() + seconds
        is_over = False
        while sent_s:
            for key, _ in selector.select():
                sock: socket.socket = key.data
                _take_response(sock)
                now_s = time.perf_counter()
                latencies.add(now_s - sent_s.pop(sock))
                is_over = is_over or now_s >= end_s
                if is_over:
                    selector.unregister(sock)
                    sock.close()
                else:
                    sent_s[sock] = now_s
                    sock.sendall(frame)
    return latencies


def _take_response(sock: socket.socket) -> None:
    """Read a response that has begun to arrive."""
    (size,) = INT32.unpack(sock.recv(SIZE_BYTES, socket.MSG_WAITALL))
    sock.recv(size, socket.MSG_WAITALL)

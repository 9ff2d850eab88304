"""What TLS costs: plain and TLS connections to the same brokers, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import trustme

from bench import library
from bench.broker_process import BrokerProcess, running_broker, temporary_directory
from bench.latency import end_to_end
from bench.measure import ChartPosition, Measurement, Plan
from bench.replication import publish_s
from bench.workload import ENTRY_BYTES, LINE_BYTES, write_lines
from broker.protocol.client_requests import Acks
from broker.security.client_security import ClientSecurity

_RATES = "plain connections and TLS"
_LATENCY = "latency over plain connections and TLS, 10,000 messages a second"
_HANDSHAKES = "handshakes of TLS, one after the other"
_MB = 1e6


class _Way(NamedTuple):
    """How brokers listen, to clients and to each other, and how to connect to them."""

    name: str
    security: ClientSecurity | None
    properties: dict[str, str]


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure producing, consuming, replicating, latency and handshakes."""
    with temporary_directory(plan.directory) as directory:
        ways = (_Way("plain", None, {}), _tls(directory))
        source = directory / "lines"
        total = write_lines(source, plan.size(1 << 30, 128 << 20))
        produce, consume = partial(_produce_s, plan, source), partial(_consume_s, plan, source)
        yield from _rates(plan, "produce", total, ways, produce)
        yield from _rates(plan, "consume", total, ways, consume)
        count = plan.size(2_000_000, 200_000)
        yield from _rates(
            plan,
            "publish with acks -1, three replicas",
            count * LINE_BYTES,
            ways,
            lambda way: publish_s(plan, 3, count, way.security, **way.properties),
        )
        yield from _latencies(plan, ways)
        yield from _handshakes(plan, ways[1])


def _tls(directory: Path) -> _Way:
    ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
    files = {name: directory / f"{name}.pem" for name in ("ca", "certificate", "key")}
    leaf = ca.issue_cert("127.0.0.1", key_type=trustme.KeyType.ECDSA)
    ca.cert_pem.write_to_path(files["ca"])
    leaf.cert_chain_pems[0].write_to_path(files["certificate"])
    leaf.private_key_pem.write_to_path(files["key"])
    files["key"].chmod(0o600)
    properties = {
        "port": "-1",
        "listeners": "SECURE=tls://127.0.0.1:0",
        "ssl.ca.location": str(files["ca"]),
        "ssl.certificate.location": str(files["certificate"]),
        "ssl.key.location": str(files["key"]),
    }
    return _Way("TLS", ClientSecurity.of_files(ca=files["ca"]), properties)


def _rates(
    plan: Plan,
    name: str,
    size_bytes: int,
    ways: tuple[_Way, _Way],
    run_s: Callable[[_Way], float],
) -> Iterator[Measurement]:
    found: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(plan.repetitions):
        for way in ways:
            found[way.name].append(size_bytes / _MB / run_s(way))
    for key, rates in found.items():
        yield Measurement(
            f"{name}, {key}", "MB/s", rates, position=ChartPosition(_RATES, key, name)
        )
    ratios = [tls / plain for plain, tls in zip(*found.values(), strict=True)]
    yield Measurement(f"{name}, TLS / plain", "x", ratios)


def _produce_s(plan: Plan, source: Path, way: _Way) -> float:
    with running_broker(plan.directory, way.security, **way.properties) as broker:
        return library.produce(broker, source, Acks.WRITTEN, way.security)


def _consume_s(plan: Plan, source: Path, way: _Way) -> float:
    with running_broker(plan.directory, way.security, **way.properties) as broker:
        library.produce(broker, source, Acks.WRITTEN, way.security)
        end = source.stat().st_size // LINE_BYTES * ENTRY_BYTES
        return library.consume(broker, end, way.security)


def _latencies(plan: Plan, ways: tuple[_Way, _Way]) -> Iterator[Measurement]:
    found: dict[str, list[dict[str, float]]] = {way.name: [] for way in ways}
    for _ in range(plan.repetitions):
        for way in ways:
            with running_broker(plan.directory, way.security, **way.properties) as broker:
                options = [] if way.security is None else ["--tls-ca", str(way.security.tls_ca)]
                seconds = plan.size(10, 2)
                record = end_to_end([broker], 10_000, seconds, size=LINE_BYTES, options=options)
                found[way.name].append(record)
    for key, records in found.items():
        for percent in ("p50", "p99"):
            values = [one[f"{percent}_ms"] for one in records]
            position = ChartPosition(_LATENCY, key, percent)
            yield Measurement(f"latency, {key}, {percent}", "ms", values, position=position)


def _handshakes(plan: Plan, way: _Way) -> Iterator[Measurement]:
    count = plan.size(2_000, 200)
    rates, broker_ms = [], []
    for _ in range(plan.repetitions):
        with running_broker(plan.directory, way.security, **way.properties) as broker:
            _connect(broker)  # the first one loads modules
            before_s, started_s = broker.cpu_s(), time.perf_counter()
            for _ in range(count):
                _connect(broker)
            rates.append(count / (time.perf_counter() - started_s))
            broker_ms.append((broker.cpu_s() - before_s) / count * 1000)
    yield Measurement(_HANDSHAKES, "/s", rates)
    yield Measurement("broker's processor time for a handshake", "ms", broker_ms)


def _connect(broker: BrokerProcess) -> None:
    connection = broker.connect()
    connection.connect()
    connection.close()

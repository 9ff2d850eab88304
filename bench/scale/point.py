"""One point of a scale run: the throughput of a few seconds, and how busy both sides were."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.broker_process import BrokerProcess
from bench.measure import ChartPosition, Measurement, Plan

MB = 1e6


@dataclass
class Watch:
    """Time and processor time of a block, set when it has ended."""

    seconds: float = 0.0
    broker_cores: float = 0.0
    client_cores: float = 0.0


@contextmanager
def watch(brokers: Sequence[BrokerProcess]) -> Iterator[Watch]:
    """Measure the time of a block, and the cores that brokers and this process keep busy."""
    found = Watch()
    broker_s, client_s = sum(one.cpu_s() for one in brokers), time.process_time()
    started_s = time.perf_counter()
    yield found
    found.seconds = time.perf_counter() - started_s
    found.broker_cores = (sum(one.cpu_s() for one in brokers) - broker_s) / found.seconds
    found.client_cores = (time.process_time() - client_s) / found.seconds


@dataclass(frozen=True)
class Axis:
    """The x axis of a chart; makes measurements of points on it."""

    name: str

    def figure(self, what: str, series: str, x: float, value: float, unit: str) -> Measurement:
        """Return a measurement of one point.

        Args:
            what: title of the chart it belongs to.
            series: of the line.
            x: position on the axis.
            value: of the figure.
            unit: of the value.
        """
        position = ChartPosition(f"{what} over {self.name}", series, x)
        label = f"{what}, {series}" if series else what
        return Measurement(f"{label}: {x:,.10g} {self.name}", unit, [value], position=position)

    def throughput(
        self, series: str, x: float, watched: Watch, *, message_count: float
    ) -> Iterator[Measurement]:
        """Yield the rate of a point, and how busy both sides were."""
        rate = message_count / watched.seconds
        yield self.figure("throughput", series, x, rate, "messages/s")
        yield from self.cores(series, x, watched)

    def cores(self, series: str, x: float, watched: Watch) -> Iterator[Measurement]:
        """Yield how busy both sides were."""
        yield self.figure("cores busy", f"{series}: broker", x, watched.broker_cores, "cores")
        yield self.figure("cores busy", f"{series}: client", x, watched.client_cores, "cores")

    def latency(self, series: str, x: float, record: dict[str, float]) -> Iterator[Measurement]:
        """Yield median and p99 of an end-to-end run."""
        for name in ("p50", "p99"):
            label = f"{series} {name}".strip()
            yield self.figure("latency", label, x, record[f"{name}_ms"], "ms")


def seconds(plan: Plan) -> float:
    """Return the duration of a point in seconds."""
    return plan.size(20, 5) / 10

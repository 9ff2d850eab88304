"""Looks at the cluster each few seconds, and keeps for an hour what pages draw and show live."""

from __future__ import annotations

import logging
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from broker.admin import lag as group_lag
from broker.admin.brokers import request_status
from broker.admin.cluster import Health
from broker.api.client import Client
from broker.api.errors import NoZooKeeper
from broker.client.connection import parse_broker_list
from broker.errors import BrokerError, UnsupportedVersionError
from broker.protocol.extension_requests import StatusParts
from broker.threads import LoopThread
from broker.topic import TopicPartition

logger = logging.getLogger("pylogctl.web")

INTERVAL_S = 5.0
_CAPACITY = 720  # of a series: an hour
_MAX_SERIES = 3000
_MAX_SHARE = 0.2  # of the time, for one kind of look where there is very much to look at
_WINDOW_MS = 300_000  # by which the lag of a partition is judged
_TIMEOUT_S = 5.0
_PARTS = StatusParts.METRICS | StatusParts.TOPICS
_TOPIC = "BrokerTopicStat."
_TOPIC_COUNTERS = {"messages": "MessagesIn", "in": "BytesIn", "out": "BytesOut"}
_TIMES = {"produce": "ProduceRequest", "fetch": "FetchRequest"}
TIMED = ("produce", "fetch")
PARTS_OF_TIME = ("queue", "local", "remote", "send")

_Counters = dict[str, float]


class Point(NamedTuple):
    """A value at a moment."""

    time_s: float  # since 1970
    value: float


class StatusSampler:
    """A thread that asks brokers for their status by parts, and ZooKeeper for groups.

    A series is named as `cluster/in`, `topic/orders/in`, `broker/2/cpu` or `group/billing/lag`.
    """

    def __init__(self, client: Client, interval_s: float = INTERVAL_S) -> None:
        self._client = client
        self._interval_s = interval_s
        # seconds between the starts of looks of one kind
        self._intervals_s: dict[Callable[[], None], float] = {
            self.look: interval_s,
            self.look_at_health: 3 * interval_s,
            self.look_at_groups: 2 * interval_s,
        }
        self._stop = threading.Event()
        self._thread = LoopThread(self._run, name="web-sampler")
        self._lock = threading.Lock()  # guards what follows
        self._series: dict[str, array[float]] = {}  # time and value of each point
        self._newest: dict[str, float] = {}
        self._windows: dict[tuple[str, TopicPartition], tuple[group_lag.LagSample, ...]] = {}
        self._lags: dict[str, group_lag.Lag] = {}
        self._before: dict[int, tuple[float, _Counters]] = {}  # only for the thread
        self.problem = ""  # of the last look; empty if there was none
        self.health: Health | None = None  # None also if no broker tells it
        self._health_s = 0.0  # when that look began

    def start(self) -> None:
        """Start to look."""
        self._thread.start()

    def close(self) -> None:
        """Look no more; a look that runs ends by itself, in seconds."""
        self._stop.set()

    def points(self, name: str) -> list[Point]:
        """Return the values of a series, oldest first."""
        with self._lock:
            kept = self._series.get(name, array("d"))
            return [Point(*pair) for pair in zip(kept[::2], kept[1::2], strict=True)]

    def newest(self, prefix: str = "") -> dict[str, float]:
        """Return the values of the last look, by the name of their series."""
        with self._lock:
            return {name: one for name, one in self._newest.items() if name.startswith(prefix)}

    def lags(self) -> dict[str, group_lag.Lag]:
        """Return the lag of each group at the last look, judged over some minutes."""
        with self._lock:
            return dict(self._lags)

    def judged(self, lag: group_lag.Lag) -> group_lag.Lag:
        """Return a lag with each partition judged by what the last looks have seen of it."""
        with self._lock:
            partitions = tuple(self._judged(lag.group, one) for one in lag.partitions)
        return replace(
            lag, partitions=partitions, status=group_lag.worst(one.status for one in partitions)
        )

    def look(self) -> None:
        """Look once at brokers and groups."""
        problems: list[str] = []
        found: dict[str, float] = {}
        connect = self._client._connect
        for broker in self._client.brokers(timeout=_TIMEOUT_S):
            if broker.address is None:
                continue
            (address,) = parse_broker_list(broker.address)
            _, document, error = request_status(
                lambda at: connect(at).limited_to(_TIMEOUT_S), address, _PARTS
            )
            if error is not None:
                problems.append(f"broker {broker.id}: {error}")
            elif document is not None:
                for name, value in self._rates(broker.id, document):
                    found[name] = found.get(name, 0.0) + value
        self._add(("cluster/", "topic/", "broker/"), found)
        self.problem = "; ".join(problems)

    def look_at_health(self) -> None:
        """Run the checks of the cluster once."""
        self.check_health(_TIMEOUT_S)

    def check_health(self, timeout_s: float) -> Health | None:
        """Run the checks of the cluster and keep the result, unless a later look was faster."""
        started_s = time.monotonic()
        found = None
        try:
            found = self._client.health(timeout=timeout_s)
        except UnsupportedVersionError:  # of Kafka 0.7
            pass
        finally:
            with self._lock:
                if started_s > self._health_s:
                    self.health, self._health_s = found, started_s
        return found

    def look_at_groups(self) -> None:
        """Look once at the groups."""
        lags = [self._client.lag(one.name, timeout=_TIMEOUT_S) for one in self._client.groups()]
        found: dict[str, float] = {}
        with self._lock:
            for lag in lags:
                self._keep_samples(lag)
                known = [one for one in lag.partitions if one.lag_bytes is not None]
                if known:
                    name = f"group/{lag.group}"
                    found[f"{name}/lag"] = sum(one.lag_bytes or 0 for one in known)
                    found[f"{name}/position"] = sum(one.offset or 0 for one in known)
                    found[f"{name}/end"] = sum(one.end or 0 for one in known)
        judged = {lag.group: self.judged(lag) for lag in lags}
        with self._lock:
            self._lags = judged
            current = {(lag.group, one.partition) for lag in lags for one in lag.partitions}
            for key in self._windows.keys() - current:
                del self._windows[key]
        self._add(("group/",), found)

    def _run(self) -> None:
        due_s = dict.fromkeys(self._intervals_s, 0.0)
        while True:
            before = self.problem
            for work, interval_s in self._intervals_s.items():
                if self.problem != before:
                    due_s[self.look_at_health] = 0.0  # a broker has gone, or is back
                if (start_s := time.monotonic()) < due_s[work]:
                    continue
                self._attempt(work)
                took_s = time.monotonic() - start_s
                due_s[work] = start_s + max(interval_s, took_s / _MAX_SHARE)
            if self.problem and self.problem != before:
                logger.warning("cannot look at the cluster: %s", self.problem)
            if self._stop.wait(self._interval_s):
                return

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except NoZooKeeper:
            pass  # then there are no groups, as their page says
        except BrokerError as error:
            if not self._stop.is_set():
                self.problem = str(error)

    def _add(self, kinds: tuple[str, ...], values: Mapping[str, float]) -> None:
        """Add a point to each series; those of these kinds without a value have no newest one."""
        now_s = time.time()
        with self._lock:
            others = {n: one for n, one in self._newest.items() if not n.startswith(kinds)}
            self._newest = others | dict(values)
            for name, value in values.items():
                if name not in self._series and len(self._series) >= _MAX_SERIES:
                    continue
                series = self._series.setdefault(name, array("d"))
                series.extend((now_s, value))
                del series[: -2 * _CAPACITY]
            oldest_s = now_s - _CAPACITY * self._interval_s
            for name in [n for n, one in self._series.items() if one[-2] < oldest_s]:
                del self._series[name]

    def _rates(self, broker_id: int, document: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
        """Yield the series of a broker and its part of those of topics and the cluster."""
        now_s = time.monotonic()
        counters = _counters_of(document["metrics"])
        before_s, before = self._before.get(broker_id, (now_s, {}))
        self._before[broker_id] = now_s, counters
        sockets, name = document["metrics"]["SocketServerStats"], f"broker/{broker_id}"
        yield f"{name}/connections", sockets["Connections"]
        for event, attribute in _TIMES.items():
            yield f"{name}/{event}_max_ms", sockets[f"Max{attribute}Ms"]
        elapsed_s = now_s - before_s
        if not before or elapsed_s <= 0 or counters["cpu"] < before["cpu"]:  # first or restarted
            return
        for counter, value in counters.items():
            rate = (value - before.get(counter, 0.0)) / elapsed_s
            if counter.startswith("topic/"):
                yield counter, rate
                yield f"cluster/{counter.rpartition('/')[2]}", rate
                yield f"{name}/{counter.rpartition('/')[2]}", rate
            elif not counter.startswith("times/"):
                yield f"{name}/{counter}", rate
        for request in TIMED:
            for part in PARTS_OF_TIME:
                total, count = (
                    counters[f"times/{request}/{part}/{what}"]
                    - before[f"times/{request}/{part}/{what}"]
                    for what in ("ms", "count")
                )
                yield f"{name}/{request}_{part}_ms", total / count if count else 0.0

    def _keep_samples(self, lag: group_lag.Lag) -> None:
        time_ms = round(lag.time.timestamp() * 1000)
        for one in lag.partitions:
            if one.offset is None or one.end is None or one.committed is None:
                continue
            committed_ms = round(one.committed.timestamp() * 1000)
            key = lag.group, one.partition
            new = group_lag.LagSample(time_ms, one.offset, one.end, committed_ms)
            kept = (*self._windows.get(key, ()), new)
            self._windows[key] = tuple(group_lag.within_window(kept, _WINDOW_MS))

    def _judged(self, group: str, one: group_lag.PartitionLag) -> group_lag.PartitionLag:
        samples = self._windows.get((group, one.partition), ())
        if one.status not in (group_lag.LagStatus.LAG, group_lag.LagStatus.OK) or not samples:
            return one
        rate = group_lag.consume_rate(samples)
        return replace(
            one,
            status=group_lag.window_status(samples, window_ms=_WINDOW_MS),
            bytes_per_s=rate,
            eta_s=None if one.lag_bytes is None else group_lag.eta_s(one.lag_bytes, rate),
            age_s=group_lag.age_s(samples),
        )


def _counters_of(metrics: Mapping[str, Mapping[str, Any]]) -> _Counters:
    found: _Counters = {"cpu": metrics["KafkaServer"]["CpuSeconds"]}
    for name, attributes in metrics.items():
        if name.startswith(_TOPIC):
            for series, attribute in _TOPIC_COUNTERS.items():
                found[f"topic/{name.removeprefix(_TOPIC)}/{series}"] = attributes[attribute]
        elif name.startswith("RequestMetrics."):
            found["requests"] = found.get("requests", 0.0) + attributes["Requests"]
    for request in TIMED:
        times = metrics.get(f"RequestTimes.{request}", {})
        for part in PARTS_OF_TIME:
            found[f"times/{request}/{part}/ms"] = times.get(f"Total{part.title()}TimeMs", 0.0)
            found[f"times/{request}/{part}/count"] = times.get(f"Num{part.title()}Times", 0.0)
    return found

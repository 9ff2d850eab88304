"""The rows of `pylogctl perf` and their documents, 0.7's CSV, and files of saved runs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from broker.protocol.compression import Codec
from broker.units import format_time
from pylogctl import __version__
from pylogctl.cli.columns import (
    HIDDEN,
    Bytes,
    Document,
    Fit,
    Flag,
    Integer,
    Number,
    Rank,
    Rate,
    Row,
    Seconds,
    Text,
)
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.render import render
from pylogctl.perf.consume import ConsumePlan
from pylogctl.perf.e2e import E2eResult
from pylogctl.perf.measure import MIB, Interval, Result, latencies_ms
from pylogctl.perf.produce import ProducePlan

_RUN_SCHEMA = "pylogctl.perf.run/1"
_Overhead = Annotated[Number, "bytes of log per message beyond its payload"]


class ResultRow(Row):
    """The result of a measurement; see `result_fields`."""

    messages: Annotated[Integer, "number of messages"]
    bytes: Annotated[Bytes, "bytes of payload"]
    seconds: Annotated[Seconds, "elapsed time"]
    msg_per_s: Annotated[Rate, "messages per second"]
    mib_per_s: Annotated[Number, "MiB of payload per second"]
    p50_ms: Annotated[Number, "latency that half do not exceed"]
    p90_ms: Annotated[Number, "latency that 90 % do not exceed"]
    p95_ms: Annotated[Number, "latency that 95 % do not exceed"]
    p99_ms: Annotated[Number, "latency that 99 % do not exceed"]
    p99_9_ms: Annotated[Number, "latency that 99.9 % do not exceed"]
    max_ms: Annotated[Number, "longest latency"]
    cpu_s: Annotated[Number, "processor time of this process, in seconds"]
    rss_bytes: Annotated[Bytes, "peak memory of this process"]


class ProduceRow(ResultRow):
    """The result of `perf produce`."""

    overhead_bytes: _Overhead


class E2eRow(ResultRow):
    """The result of `perf e2e`."""

    rate: Annotated[Rate, "intended messages per second"]
    late_ms: Annotated[Number, "longest delay of a message sent after it was due"]
    missing: Annotated[Integer, "messages that were sent but not received"]
    acks: Annotated[Text, "requested acknowledgement"]
    flush: Annotated[Text, "when messages are flushed, and so become readable", Fit.WRAP]


class PlanRow(Row):
    """What `perf produce` would do."""

    topic: Annotated[Text, "topic messages would be sent to"]
    partitions: Annotated[list[str] | None, "its partitions; none if it would be created", Fit.WRAP]
    messages: Annotated[Integer, "messages that would be sent"]
    seconds: Annotated[Seconds, "maximum duration"]
    batch: Annotated[Integer, "messages in a batch"]
    bytes: Annotated[Bytes, "bytes of payload in a batch, on average"]
    codec: Annotated[Text, "compression"]
    acks: Annotated[Text, "requested acknowledgement"]
    threads: Annotated[Integer, "threads with a producer each"]


class ReportRow(Row):
    """A saved run; the command decides which figures it has."""

    file: Annotated[Text, "where the run is saved"]
    command: Annotated[Text, "what was measured", Fit.WHOLE]
    topic: Annotated[Text, "name of the topic", Rank(3)]
    messages: Annotated[Integer, "number of messages", Rank(2)] = None
    seconds: Annotated[Seconds, "elapsed time", Rank(3)] = None
    msg_per_s: Annotated[Rate, "messages per second"] = None
    mib_per_s: Annotated[Number, "MiB of payload per second"] = None
    p50_ms: Annotated[Number, "latency that half do not exceed", Rank(2)] = None
    p99_ms: Annotated[Number, "latency that 99 % do not exceed"] = None
    p99_9_ms: Annotated[Number, "latency that 99.9 % do not exceed", Rank(4)] = None
    max_ms: Annotated[Number, "longest latency", Rank(4)] = None
    overhead_bytes: Annotated[_Overhead, Rank(5)] = None
    acks: Annotated[Text, "requested acknowledgement", HIDDEN] = None
    flush: Annotated[Text, "when messages are flushed", HIDDEN] = None
    cpu_s: Annotated[Number, "processor time, in seconds", HIDDEN] = None
    rss_bytes: Annotated[Bytes, "peak memory", HIDDEN] = None
    started: Annotated[Text, "start of the run", HIDDEN] = None
    options: Annotated[Mapping[str, Any] | None, "options and properties", Fit.WRAP, HIDDEN] = None
    pylogctl: Annotated[Text, "version", HIDDEN] = None
    git_revision: Annotated[Text, "revision of the checkout it ran from", HIDDEN] = None
    python: Annotated[Text, "interpreter", HIDDEN] = None
    platform: Annotated[Text, "system", Fit.WRAP, HIDDEN] = None
    processors: Annotated[Integer, "number of processors", HIDDEN] = None


class CompareRow(Row):
    """A figure of two runs."""

    figure: Annotated[str, "what was measured", Fit.WHOLE]
    before: Annotated[Number, "in the first file"]
    after: Annotated[Number, "in the second file"]
    change_percent: Annotated[Number, "from the first to the second"]
    verdict: Annotated[str, "better, worse or same; same is within the limit", Fit.STATE]
    decides: Annotated[Flag, "whether it counts for --fail-below"]


PRODUCE = Document("perf.produce/1", ProduceRow, empty="nothing measured")
CONSUME = Document("perf.consume/1", ResultRow, empty="nothing measured")
SIMPLE = Document("perf.simple/1", ResultRow, empty="nothing measured")
E2E = Document("perf.e2e/1", E2eRow, empty="nothing measured")
PLAN = Document("perf.produce.plan/1", PlanRow, empty="nothing to send")
REPORT = Document("perf.report/1", ReportRow, empty="no runs")
COMPARE = Document("perf.compare/1", CompareRow, empty="nothing to compare")

_PRODUCE_HEADER_07 = (
    "start.time, end.time, compression, message.size, batch.size, total.data.sent.in.MB, MB.sec, "
    "total.data.sent.in.nMsg, nMsg.sec"
)
_CONSUME_HEADER_07 = (
    "start.time, end.time, fetch.size, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
)
_IS_MORE_BETTER = {
    "msg_per_s": True,
    "mib_per_s": True,
    "p50_ms": False,
    "p90_ms": False,
    "p95_ms": False,
    "p99_ms": False,
    "p99_9_ms": False,
    "max_ms": False,
    "cpu_s": False,
    "rss_bytes": False,
    "overhead_bytes": False,
}
_DECIDING_FIGURES = {"perf e2e": ("p50_ms", "p99_ms")}  # of other commands: the rate
_PLATFORM = ("python", "platform", "processors")


class PerfRun(NamedTuple):
    """A measurement, the options to repeat it, and its row in the document of its command."""

    command: str
    options: Mapping[str, object]
    result: Result
    intervals: Sequence[Interval]
    row: ResultRow


def result_fields(result: Result) -> dict[str, Any]:
    """Return the fields of `ResultRow`."""
    return {
        "messages": result.counted.message_count,
        "bytes": result.counted.payload_bytes,
        "seconds": round(result.seconds, 6),
        "msg_per_s": round(result.messages_per_s, 1),
        "mib_per_s": round(result.mib_per_s, 3),
        **latencies_ms(result.counted.latencies),
        "cpu_s": round(result.cpu_s, 3),
        "rss_bytes": result.peak_rss_bytes,
    }


def produce_row(result: Result) -> ProduceRow:
    """Return the row of `PRODUCE`."""
    overhead_bytes = result.overhead_bytes
    return ProduceRow(
        **result_fields(result),
        overhead_bytes=None if overhead_bytes is None else round(overhead_bytes, 2),
    )


def e2e_row(found: E2eResult, *, rate: float, acks: str, flush: str | None) -> E2eRow:
    """Return the row of `E2E`.

    `rate` is the intended messages a second, `acks` the value of `request.required.acks`, `flush`
    that of `flush_text`.
    """
    late_ms = round(found.late_s * 1000, 3)
    return E2eRow(
        **result_fields(found.result),
        rate=rate,
        late_ms=late_ms,
        missing=found.missing_count,
        acks=acks,
        flush=flush,
    )


def flush_text(flush: Mapping[str, Any], topic: str, acks: str) -> str:
    """Return when a broker flushes a topic, in words; `flush` is a part of its status."""
    if acks in ("-1", "all"):
        return "before each acknowledgement"
    interval_ms = flush["topic_intervals_ms"].get(topic, flush["interval_ms"])
    text = f"after {flush['interval_messages']} messages or {interval_ms}ms"
    return text if flush["before_read"] else f"{text}, read before that"


def produce_csv_07(result: Result, plan: ProducePlan, codec: Codec) -> tuple[str, str]:
    """Return header and row as 0.7's `ProducerPerformance`; of varying sizes, the largest."""
    start, end = _times_07(result)
    counted = result.counted
    message_bytes = max(len(payload) for batch in plan.batches for payload in batch)
    row = (
        f"{start}, {end}, {codec:d}, {message_bytes}, {len(plan.batches[0])}, "
        f"{counted.payload_bytes / MIB:.2f}, {result.mib_per_s:.4f}, "
        f"{counted.message_count}, {result.messages_per_s:.4f}"
    )
    return _PRODUCE_HEADER_07, row


def consume_csv_07(result: Result, plan: ConsumePlan) -> tuple[str, str]:
    """Return header and row as 0.7's `ConsumerPerformance`."""
    start, end = _times_07(result)
    counted = result.counted
    row = (
        f"{start}, {end}, {plan.fetch_bytes}, {counted.payload_bytes / MIB:.4f}, "
        f"{result.mib_per_s:.4f}, {counted.message_count}, {result.messages_per_s:.4f}"
    )
    return _CONSUME_HEADER_07, row


def _times_07(result: Result) -> tuple[str, str]:
    ended_ms = result.started_ms + round(result.seconds * 1000)
    return _time_07(result.started_ms), _time_07(ended_ms)


def _time_07(time_ms: int) -> str:
    """Return a time as `yyyy-MM-dd HH:mm:ss:SSS` in local time, as 0.7 does."""
    moment = datetime.fromtimestamp(time_ms // 1000).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S}:{time_ms % 1000:03d}"


def save_run(path: Path, run: PerfRun) -> None:
    """Write a run and the platform to a JSON file."""
    document = {
        "schema": _RUN_SCHEMA,
        "command": run.command,
        "options": dict(run.options),
        "started": format_time(run.result.started_ms),
        "pylogctl": __version__,
        "git_revision": _git_revision(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "result": run.row.by_column(),
        "intervals": [
            {
                "at_s": round(one.at_s, 3),
                "seconds": round(one.seconds, 3),
                "messages": one.message_count,
                "bytes": one.payload_bytes,
                "msg_per_s": round(one.messages_per_s, 1),
                "mib_per_s": round(one.mib_per_s, 3),
                **one.latencies_ms,
            }
            for one in run.intervals
        ],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _git_revision() -> str | None:
    """Return the revision of the checkout this program runs from; None if it is installed."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


class _SavedRun(NamedTuple):
    path: Path
    document: Mapping[str, Any]

    @property
    def command(self) -> str:
        return str(self.document["command"])

    @property
    def result(self) -> Mapping[str, Any]:
        result: Mapping[str, Any] = self.document["result"]
        return result


def _load_run(path: Path) -> _SavedRun:
    try:
        document = json.loads(path.read_bytes())
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("schema") != _RUN_SCHEMA:
        raise UsageError(f"'{path}' is no saved run", hints=["save one with: perf ... --save FILE"])
    return _SavedRun(path, document)


def list_runs(env: Environment, paths: Iterable[Path]) -> None:
    """Render saved runs, a row for each."""
    render(env, REPORT, [_report_row(_load_run(path)) for path in paths])


def _report_row(run: _SavedRun) -> ReportRow:
    options = run.document["options"]
    named = {
        "acks": options["properties"].get("request.required.acks"),
        **run.document,
        **run.result,
        "file": str(run.path),
        "topic": options["topic"],
    }
    return ReportRow(**named)  # of a file's fields, those that are no column are not shown


def compare_runs(env: Environment, before: Path, after: Path, *, limit: float) -> bool:
    """Compare the figures of two saved runs; return whether a deciding figure is worse.

    Other differences of the runs are warned of. A figure that is worse by at most the share `limit`
    counts as the same.
    """
    old, new = _load_run(before), _load_run(after)
    if old.command != new.command:
        raise UsageError(f"'{old.command}' and '{new.command}' cannot be compared")
    rows = list(_compare(old, new, limit))
    for difference in _differences(old.document, new.document):
        env.warn(f"the runs differ in {difference}")
    render(env, COMPARE, rows)
    env.flush()
    return any(one.decides and one.verdict == "worse" for one in rows)


def _compare(before: _SavedRun, after: _SavedRun, limit: float) -> Iterator[CompareRow]:
    """Yield a row of `COMPARE` for each figure that both runs have."""
    deciding = _DECIDING_FIGURES.get(before.command, ("msg_per_s",))
    for figure, is_more_better in _IS_MORE_BETTER.items():
        old, new = before.result.get(figure), after.result.get(figure)
        if old is None or new is None:
            continue
        change = (new - old) / old if old else 0.0
        gain = change if is_more_better else -change
        verdict = "worse" if gain < -limit else "better" if gain > limit else "same"
        change_percent = round(100 * change, 2)
        yield CompareRow(figure, old, new, change_percent, verdict, figure in deciding)


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the options, properties and parts of the platform that differ."""
    pairs = [(before[name], after[name], name) for name in _PLATFORM]
    old, new = (
        {**one["options"], **one["options"]["properties"], "properties": None}
        for one in (before, after)
    )
    pairs += [(old.get(name), new.get(name), name) for name in sorted(old.keys() | new.keys())]
    return [f"{name}: {one} and {other}" for one, other, name in pairs if one != other]

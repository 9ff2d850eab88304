"""The documents of `pylogctl perf`: columns, records, 0.7's CSV, and files of saved runs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from broker.protocol.compression import Codec
from pylogctl import __version__
from pylogctl.cli.columns import Column, ColumnKind, Document
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.render import Record, render
from pylogctl.cli.units import format_duration, format_size, format_time
from pylogctl.perf.consume import ConsumePlan
from pylogctl.perf.e2e import E2eResult
from pylogctl.perf.measure import MIB, Interval, Result, latencies_ms
from pylogctl.perf.produce import ProducePlan

_RUN_SCHEMA = "pylogctl.perf.run/1"
_RESULT = (
    Column("messages", "number of messages", ColumnKind.INTEGER),
    Column("bytes", "bytes of payload", ColumnKind.BYTES),
    Column("seconds", "elapsed time", ColumnKind.SECONDS),
    Column("msg_per_s", "messages per second", ColumnKind.NUMBER),
    Column("mib_per_s", "MiB of payload per second", ColumnKind.NUMBER),
    Column("p50_ms", "latency that half do not exceed", ColumnKind.NUMBER),
    Column("p90_ms", "latency that 90 % do not exceed", ColumnKind.NUMBER),
    Column("p95_ms", "latency that 95 % do not exceed", ColumnKind.NUMBER),
    Column("p99_ms", "latency that 99 % do not exceed", ColumnKind.NUMBER),
    Column("p99_9_ms", "latency that 99.9 % do not exceed", ColumnKind.NUMBER),
    Column("max_ms", "longest latency", ColumnKind.NUMBER),
    Column("cpu_s", "processor time of this process, in seconds", ColumnKind.NUMBER),
    Column("rss_bytes", "peak memory of this process", ColumnKind.BYTES),
)
_OVERHEAD = Column(
    "overhead_bytes", "bytes of log per message beyond its payload", ColumnKind.NUMBER
)
PRODUCE = Document("perf.produce/1", (*_RESULT, _OVERHEAD), empty="nothing measured")
CONSUME = Document("perf.consume/1", _RESULT, empty="nothing measured")
SIMPLE = Document("perf.simple/1", _RESULT, empty="nothing measured")
E2E = Document(
    "perf.e2e/1",
    (
        *_RESULT,
        Column("rate", "intended messages per second", ColumnKind.NUMBER),
        Column("late_ms", "longest delay of a message sent after it was due", ColumnKind.NUMBER),
        Column("missing", "messages that were sent but not received", ColumnKind.INTEGER),
        Column("acks", "requested acknowledgement"),
        Column("flush", "when messages are flushed, and so become readable"),
    ),
    empty="nothing measured",
)

FIGURES = Document(
    "perf.figures/1",
    (Column("figure", "what was measured"), Column("value", "with its unit")),
    empty="nothing measured",
)
PLAN = Document(
    "perf.produce.plan/1",
    (
        Column("topic", "topic messages would be sent to"),
        Column("partitions", "its partitions; none if it would be created"),
        Column("messages", "messages that would be sent", ColumnKind.INTEGER),
        Column("seconds", "maximum duration", ColumnKind.SECONDS),
        Column("batch", "messages in a batch", ColumnKind.INTEGER),
        Column("bytes", "bytes of payload in a batch, on average", ColumnKind.BYTES),
        Column("codec", "compression"),
        Column("acks", "requested acknowledgement"),
        Column("threads", "threads with a producer each", ColumnKind.INTEGER),
    ),
    empty="nothing to send",
)
REPORT = Document(
    "perf.report/1",
    (
        Column("file", "where the run is saved"),
        Column("command", "what was measured"),
        Column("topic", "name of the topic"),
        Column("messages", "number of messages", ColumnKind.INTEGER),
        Column("seconds", "elapsed time", ColumnKind.SECONDS),
        Column("msg_per_s", "messages per second", ColumnKind.NUMBER),
        Column("mib_per_s", "MiB of payload per second", ColumnKind.NUMBER),
        Column("p50_ms", "latency that half do not exceed", ColumnKind.NUMBER),
        Column("p99_ms", "latency that 99 % do not exceed", ColumnKind.NUMBER),
        Column("p99_9_ms", "latency that 99.9 % do not exceed", ColumnKind.NUMBER),
        Column("max_ms", "longest latency", ColumnKind.NUMBER),
        _OVERHEAD,
        Column("acks", "requested acknowledgement", shown=False),
        Column("flush", "when messages are flushed", shown=False),
        Column("cpu_s", "processor time, in seconds", ColumnKind.NUMBER, shown=False),
        Column("rss_bytes", "peak memory", ColumnKind.BYTES, shown=False),
        Column("started", "start of the run", shown=False),
        Column("options", "options and properties", shown=False),
        Column("pylogctl", "version", shown=False),
        Column("git_revision", "revision of the checkout it ran from", shown=False),
        Column("python", "interpreter", shown=False),
        Column("platform", "system", shown=False),
        Column("processors", "number of processors", ColumnKind.INTEGER, shown=False),
    ),
    empty="no runs",
)
COMPARE = Document(
    "perf.compare/1",
    (
        Column("figure", "what was measured"),
        Column("before", "in the first file", ColumnKind.NUMBER),
        Column("after", "in the second file", ColumnKind.NUMBER),
        Column("change_percent", "from the first to the second", ColumnKind.NUMBER),
        Column("verdict", "better, worse or same; same is within the limit"),
        Column("decides", "whether it counts for --fail-below", ColumnKind.BOOLEAN),
    ),
    empty="nothing to compare",
)

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
    """A measurement, the options to repeat it, and the `figures` of its command alone."""

    command: str
    options: Mapping[str, object]
    result: Result
    intervals: Sequence[Interval]
    figures: Mapping[str, object] = MappingProxyType({})

    @property
    def record(self) -> Record:
        """Return the result as a record of the command's document."""
        return {**result_record(self.result), **self.figures}


def result_record(result: Result) -> dict[str, Any]:
    """Return the columns that the records of all measurements have."""
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


def produce_figures(result: Result) -> dict[str, Any]:
    """Return the columns that only `PRODUCE` has."""
    overhead_bytes = result.overhead_bytes
    return {"overhead_bytes": None if overhead_bytes is None else round(overhead_bytes, 2)}


def e2e_figures(found: E2eResult, *, rate: float, acks: str, flush: str | None) -> dict[str, Any]:
    """Return the columns that only `E2E` has.

    `rate` is the intended messages a second, `acks` the value of `request.required.acks`, `flush`
    that of `flush_text`.
    """
    return {
        "rate": rate,
        "late_ms": round(found.late_s * 1000, 3),
        "missing": found.missing_count,
        "acks": acks,
        "flush": flush,
    }


def flush_text(flush: Mapping[str, Any], topic: str, acks: str) -> str:
    """Return when a broker flushes a topic, in words; `flush` is a part of its status."""
    if acks == "-1":
        return "before each acknowledgement"
    interval_ms = flush["topic_intervals_ms"].get(topic, flush["interval_ms"])
    text = f"after {flush['interval_messages']} messages or {interval_ms}ms"
    return text if flush["before_read"] else f"{text}, read before that"


def figures(document: Document, record: Record) -> list[dict[str, str]]:
    """Return a record as one row of `FIGURES` for each column: it is too wide for a terminal."""
    return [
        {"figure": c.heading, "value": _figure(record[c.name], c.kind)} for c in document.columns
    ]


def _figure(value: Any, kind: ColumnKind) -> str:
    if value is None:
        return "-"
    if kind is ColumnKind.BYTES:
        return format_size(value)
    if kind is ColumnKind.SECONDS:
        return format_duration(value)
    return str(value) if isinstance(value, str) else f"{value:,}"


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
        "result": dict(run.record),
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
    render(env, REPORT, [_report_record(_load_run(path)) for path in paths])


def _report_record(run: _SavedRun) -> Record:
    options = run.document["options"]
    return {
        "acks": options["properties"].get("request.required.acks"),
        **run.document,
        **run.result,
        "file": str(run.path),
        "topic": options["topic"],
        "options": options,
    }


def compare_runs(env: Environment, before: Path, after: Path, *, limit: float) -> bool:
    """Compare the figures of two saved runs; return whether a deciding figure is worse.

    Other differences of the runs are warned of. A figure that is worse by at most the share `limit`
    counts as the same.
    """
    old, new = _load_run(before), _load_run(after)
    if old.command != new.command:
        raise UsageError(f"'{old.command}' and '{new.command}' cannot be compared")
    records = list(_compare_records(old, new, limit))
    for difference in _differences(old.document, new.document):
        env.warn(f"the runs differ in {difference}")
    render(env, COMPARE, records)
    env.flush()
    return any(one["decides"] and one["verdict"] == "worse" for one in records)


def _compare_records(before: _SavedRun, after: _SavedRun, limit: float) -> Iterator[Record]:
    """Yield a record of `COMPARE` for each figure that both runs have."""
    deciding = _DECIDING_FIGURES.get(before.command, ("msg_per_s",))
    for figure, is_more_better in _IS_MORE_BETTER.items():
        old, new = before.result.get(figure), after.result.get(figure)
        if old is None or new is None:
            continue
        change = (new - old) / old if old else 0.0
        gain = change if is_more_better else -change
        yield {
            "figure": figure,
            "before": old,
            "after": new,
            "change_percent": round(100 * change, 2),
            "verdict": "worse" if gain < -limit else "better" if gain > limit else "same",
            "decides": figure in deciding,
        }


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the options, properties and parts of the platform that differ."""
    pairs = [(before[name], after[name], name) for name in _PLATFORM]
    old, new = (
        {**one["options"], **one["options"]["properties"], "properties": None}
        for one in (before, after)
    )
    pairs += [(old.get(name), new.get(name), name) for name in sorted(old.keys() | new.keys())]
    return [f"{name}: {one} and {other}" for one, other, name in pairs if one != other]

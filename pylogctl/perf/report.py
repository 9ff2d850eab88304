"""What a measurement leaves behind: a record, a row as Kafka 0.7's tools print it, a file.

Knows results and their columns; knows no broker and no option.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from broker.protocol.compression import Codec
from pylogctl import __version__
from pylogctl.cli.render import Column, Document, Kind, Record
from pylogctl.cli.units import format_duration, format_size, format_time
from pylogctl.perf.consume import ConsumePlan
from pylogctl.perf.display import Interval
from pylogctl.perf.e2e import E2eResult
from pylogctl.perf.measure import MIB, Result, latencies_ms
from pylogctl.perf.produce import ProducePlan

RUN_SCHEMA = "pylogctl.perf.run/1"
"""Name and number of the form of a saved run."""
_RESULT = (
    Column("messages", "number of messages", Kind.INTEGER),
    Column("bytes", "bytes of payload", Kind.BYTES),
    Column("seconds", "time on the wall", Kind.SECONDS),
    Column("msg_per_s", "messages per second", Kind.NUMBER),
    Column("mib_per_s", "MiB of payload per second", Kind.NUMBER),
    Column("p50_ms", "latency that half do not exceed", Kind.NUMBER),
    Column("p90_ms", "latency that 90 % do not exceed", Kind.NUMBER),
    Column("p95_ms", "latency that 95 % do not exceed", Kind.NUMBER),
    Column("p99_ms", "latency that 99 % do not exceed", Kind.NUMBER),
    Column("p99_9_ms", "latency that 99.9 % do not exceed", Kind.NUMBER),
    Column("max_ms", "longest latency", Kind.NUMBER),
    Column("cpu_s", "processor time of this process, in seconds", Kind.NUMBER),
    Column("rss_bytes", "most memory this process had", Kind.BYTES),
)
PRODUCE = Document(
    "perf.produce/1",
    (
        *_RESULT,
        Column("overhead_bytes", "bytes of log for a message beyond its payload", Kind.NUMBER),
    ),
    empty="nothing measured",
)
CONSUME = Document("perf.consume/1", _RESULT, empty="nothing measured")
SIMPLE = Document("perf.simple/1", _RESULT, empty="nothing measured")
E2E = Document(
    "perf.e2e/1",
    (
        *_RESULT,
        Column("rate", "messages per second that were to be sent", Kind.NUMBER),
        Column("late_ms", "longest that a message was sent after it was due", Kind.NUMBER),
        Column("missing", "messages that were sent and did not come", Kind.INTEGER),
        Column("acks", "acknowledgement asked for"),
        Column("flush", "when messages are flushed, and so become visible"),
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
        Column("topic", "where messages would go"),
        Column("partitions", "partitions it has; none if it would be created"),
        Column("messages", "how many would be sent", Kind.INTEGER),
        Column("seconds", "for how long at most", Kind.SECONDS),
        Column("batch", "messages in a batch", Kind.INTEGER),
        Column("bytes", "bytes of payload in a batch, on average", Kind.BYTES),
        Column("codec", "compression"),
        Column("acks", "acknowledgement asked for"),
        Column("threads", "threads with a producer each", Kind.INTEGER),
    ),
    empty="nothing to send",
)

_PRODUCE_HEADER_07 = (
    "start.time, end.time, compression, message.size, batch.size, total.data.sent.in.MB, MB.sec, "
    "total.data.sent.in.nMsg, nMsg.sec"
)
_CONSUME_HEADER_07 = (
    "start.time, end.time, fetch.size, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
)


def result_record(result: Result) -> dict[str, Any]:
    """Return what the records of all measurements have in common."""
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
    """Return what a record of `PRODUCE` has besides."""
    overhead_bytes = result.overhead_bytes
    return {"overhead_bytes": None if overhead_bytes is None else round(overhead_bytes, 2)}


def e2e_figures(found: E2eResult, *, rate: float, acks: str, flush: str | None) -> dict[str, Any]:
    """Return what a record of `E2E` has besides.

    Args:
        found: what was measured.
        rate: messages a second asked for.
        acks: acknowledgement asked for, as a property's value.
        flush: when brokers flush, None if they do not tell.
    """
    return {
        "rate": rate,
        "late_ms": round(found.late_s * 1000, 3),
        "missing": found.missing_count,
        "acks": acks,
        "flush": flush,
    }


def flush_text(flush: Mapping[str, Any], topic: str, acks: str) -> str:
    """Return when a broker flushes a topic, in words.

    Args:
        flush: what its status says of it.
        topic: which topic.
        acks: acknowledgement asked for, as a property's value.
    """
    if acks == "-1":
        return "before each acknowledgement"
    interval_ms = flush["topic_intervals_ms"].get(topic, flush["interval_ms"])
    text = f"after {flush['interval_messages']} messages or {interval_ms}ms"
    return text if flush["before_read"] else f"{text}, read before that"


def figures(document: Document, record: Record) -> list[dict[str, str]]:
    """Return a record as a row of `FIGURES` for each column: too many for a terminal."""
    return [
        {"figure": c.heading, "value": _figure(record[c.name], c.kind)} for c in document.columns
    ]


def _figure(value: Any, kind: Kind) -> str:
    if value is None:
        return "-"
    if kind is Kind.BYTES:
        return format_size(value)
    if kind is Kind.SECONDS:
        return format_duration(value)
    return str(value) if isinstance(value, str) else f"{value:,}"


def produce_csv_07(result: Result, plan: ProducePlan, codec: Codec) -> tuple[str, str]:
    """Return a result as header and row of 0.7's tool; sizes that vary are told by the largest.

    Source: Kafka 0.7 `ProducerPerformance`.
    """
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
    """Return a result as header and row of 0.7's tool.

    Source: Kafka 0.7 `ConsumerPerformance`.
    """
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
    """Return a moment as `yyyy-MM-dd HH:mm:ss:SSS` in local time, as 0.7 does."""
    moment = datetime.fromtimestamp(time_ms // 1000).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S}:{time_ms % 1000:03d}"


class Run(NamedTuple):
    """A measurement with what it takes to repeat it; `figures` are those of its command alone."""

    command: str
    options: Mapping[str, object]
    result: Result
    intervals: Sequence[Interval]
    figures: Mapping[str, object] = MappingProxyType({})

    @property
    def record(self) -> Record:
        """Return the result as a record of the command's document."""
        return {**result_record(self.result), **self.figures}


def save_run(path: Path, run: Run) -> None:
    """Write a run to a file as JSON, together with what it ran on.

    Raises:
        OSError: the file cannot be written.
    """
    document = {
        "schema": RUN_SCHEMA,
        "command": run.command,
        "options": dict(run.options),
        "started": format_time(run.result.started_ms),
        "pylogctl": __version__,
        "git_revision": git_revision(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "result": dict(run.record),
        "intervals": [_interval_record(one) for one in run.intervals],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _interval_record(interval: Interval) -> dict[str, Any]:
    return {
        "at_s": round(interval.at_s, 3),
        "seconds": round(interval.seconds, 3),
        "messages": interval.message_count,
        "bytes": interval.payload_bytes,
        "msg_per_s": round(interval.messages_per_s, 1),
        "mib_per_s": round(interval.mib_per_s, 3),
        **interval.latencies_ms,
    }


def git_revision() -> str | None:
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

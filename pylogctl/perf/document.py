"""The rows of `pylogctl perf` and their documents, and 0.7's CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

from broker.protocol.compression import Codec
from pylogctl.cli.columns import Bytes, Document, Fit, Integer, Number, Rate, Row, Seconds, Text
from pylogctl.perf.measure import MIB, Result, latencies_ms
from pylogctl.perf.produce import Batch


class ResultRow(Row):
    """The result of a measurement; see `row_of`."""

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


class PerfProduceRow(ResultRow):
    """The result of `perf produce`."""

    overhead_bytes: Annotated[Number, "bytes of log per message beyond its payload"]


class E2eRow(ResultRow):
    """The result of `perf e2e`."""

    rate: Annotated[Rate, "intended messages per second"]
    late_ms: Annotated[Number, "longest delay of a message sent after it was due"]
    missing: Annotated[Integer, "messages that were sent but not received"]
    acks: Annotated[Text, "requested acknowledgement"]
    flush: Annotated[Text, "when messages are flushed, and so become readable", Fit.WRAP]


class PerfPlanRow(Row):
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


_Result = TypeVar("_Result", bound=ResultRow)

PRODUCE = Document("perf.produce/1", PerfProduceRow, empty="nothing measured")
CONSUME = Document("perf.consume/1", ResultRow, empty="nothing measured")
E2E = Document("perf.e2e/1", E2eRow, empty="nothing measured")
PLAN = Document("perf.produce.plan/1", PerfPlanRow, empty="nothing to send")

_PRODUCE_HEADER_07 = (
    "start.time, end.time, compression, message.size, batch.size, total.data.sent.in.MB, MB.sec, "
    "total.data.sent.in.nMsg, nMsg.sec"
)
_CONSUME_HEADER_07 = (
    "start.time, end.time, fetch.size, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
)


def row_of(kind: type[_Result], result: Result, **more: Any) -> _Result:
    """Return the row of a result, with the fields that its kind has besides."""
    return kind(
        messages=result.counted.message_count,
        bytes=result.counted.payload_bytes,
        seconds=round(result.seconds, 6),
        msg_per_s=round(result.messages_per_s, 1),
        mib_per_s=round(result.mib_per_s, 3),
        cpu_s=round(result.cpu_s, 3),
        rss_bytes=result.peak_rss_bytes,
        **latencies_ms(result.counted.latencies),
        **more,
    )


def flush_text(flush: Mapping[str, Any], topic: str, acks: str) -> str:
    """Return when a broker flushes a topic, in words; `flush` is a part of its status."""
    if acks in ("-1", "all"):
        return "before each acknowledgement"
    interval_ms = flush["topic_intervals_ms"].get(topic, flush["interval_ms"])
    text = f"after {flush['interval_messages']} messages or {interval_ms}ms"
    return text if flush["before_read"] else f"{text}, read before that"


def produce_csv_07(result: Result, batches: Sequence[Batch], codec: Codec) -> tuple[str, str]:
    """Return header and row as 0.7's `ProducerPerformance`; of varying sizes, the largest."""
    start, end = _times_07(result)
    counted = result.counted
    message_bytes = max(len(payload) for batch in batches for payload in batch)
    row = (
        f"{start}, {end}, {codec:d}, {message_bytes}, {len(batches[0])}, "
        f"{counted.payload_bytes / MIB:.2f}, {result.mib_per_s:.4f}, "
        f"{counted.message_count}, {result.messages_per_s:.4f}"
    )
    return _PRODUCE_HEADER_07, row


def consume_csv_07(result: Result, fetch_bytes: int) -> tuple[str, str]:
    """Return header and row as 0.7's `ConsumerPerformance`."""
    start, end = _times_07(result)
    counted = result.counted
    row = (
        f"{start}, {end}, {fetch_bytes}, {counted.payload_bytes / MIB:.4f}, "
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

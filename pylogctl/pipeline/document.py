"""The rows of plans, loads and audits of pipeline commands, and the documents that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from broker.records import HIDDEN, Bytes, Count, Fit, Integer, Millis, Rank, Text
from broker.units import counted, format_size
from pylogctl.cli.columns import Document, Row

if TYPE_CHECKING:
    from broker.spark.loading.output import Manifest
    from broker.spark.loading.plan import LoadPlan
    from broker.tools.audit import AuditVerdict


class PipelinePlanRow(Row):
    """A partition that would be loaded."""

    topic: Annotated[Text, "the topic"]
    partition: Annotated[Text, "home broker and index", Fit.WHOLE]
    start: Annotated[Integer, "start offset of the load"]
    end: Annotated[Integer, "its end offset"]
    bytes: Annotated[Bytes, "bytes of the log to load"]
    tasks: Annotated[Integer, "number of tasks", Rank(2)]
    lost_bytes: Annotated[Bytes, "bytes to load that are gone"]
    load: Annotated[Integer, "number of the load", HIDDEN]


class LoadRow(Row):
    """What was loaded of a partition."""

    load: Annotated[Integer, "number of the load"]
    topic: Annotated[Text, "the topic"]
    partition: Annotated[Text, "home broker and index", Fit.WHOLE]
    start: Annotated[Integer, "start offset of the load", Rank(2)]
    end: Annotated[Integer, "its end offset, the start of the next load", Rank(1)]
    messages: Annotated[Integer, "rows"]
    payload_bytes: Annotated[Bytes, "size of the payloads in the log", Rank(1)]
    left_out_bytes: Annotated[Bytes, "lost, corrupt or undecodable bytes"]
    crc_sum: Annotated[Integer, "sum of the CRC-32 of the payloads", HIDDEN]


class AuditRow(Row):
    """A window in the log or in the loads, compared with what producers counted."""

    topic: Annotated[Text, "the topic"]
    start: Annotated[Millis, "start of the time window"]
    end: Annotated[Millis, "its end, exclusive", Rank(3)]
    tier: Annotated[Text, "log: in the topic; load: in the directory of the loads", Fit.WHOLE]
    expected: Annotated[Integer, "messages that producers have counted", Rank(2)]
    found: Annotated[Integer, "messages found, each once", Rank(2)]
    lost: Annotated[Count, "messages missing for good"]
    late: Annotated[Count, "messages missing so far that may still arrive"]
    duplicated: Annotated[Count, "messages found twice or not counted by producers"]
    status: Annotated[Text, "ok, lost, late, duplicated or open", Fit.STATE]


PLAN = Document("pipeline.load.plan/1", PipelinePlanRow, empty="nothing to load")
LOAD = Document("pipeline.load/1", LoadRow, empty="nothing to load")


AUDIT = Document("pipeline.audit/1", AuditRow, empty="")


def load_plan_rows(plan: LoadPlan) -> list[PipelinePlanRow]:
    """Return the rows of a planned load, one for each partition."""
    rows = []
    for one in plan.read.ranges:
        sizes = [
            task.size_bytes for task in plan.read.tasks if task.range.partition == one.partition
        ]
        gaps = (gap for gap in plan.read.omissions if gap.partition == one.partition)
        lost = sum(gap.end - gap.start for gap in gaps)
        topic, name = one.partition.topic, one.partition.name
        rows.append(
            PipelinePlanRow(
                topic, name, one.start, one.end, sum(sizes), len(sizes), lost, plan.number
            )
        )
    return rows


def load_rows(manifest: Manifest) -> list[LoadRow]:
    """Return the rows of a load, one for each partition."""
    rows = []
    for one in manifest.partitions:
        topic, name = one.partition.topic, one.partition.name
        left_out = sum(gap.size_bytes for gap in one.left_out)
        span, counts = (one.start, one.end), (one.message_count, one.payload_bytes)
        rows.append(LoadRow(manifest.number, topic, name, *span, *counts, left_out, one.crc_sum))
    return rows


def load_line(manifest: Manifest, elapsed_s: float) -> str:
    """Summarize a load in one line."""
    size = sum(one.payload_bytes for one in manifest.partitions)
    line = (
        f"load {manifest.number}: {manifest.message_count:,} messages of "
        f"{counted(len(manifest.partitions), 'partition')}, {format_size(size)} of payload, "
        f"{format_size(size / max(elapsed_s, 1e-9))}/s"
    )
    if not manifest.files:  # a table has its own
        return line
    return f"{line}; {counted(len(manifest.files), 'file')}, {format_size(manifest.size_bytes)}"


def audit_row(verdict: AuditVerdict, repeated: int) -> AuditRow:
    """Return the row of a window in one tier; `repeated` messages were found twice."""
    from broker.tools.audit import Judgement

    judgement = verdict.judgement
    lacking = max(0, -verdict.difference)
    is_open = judgement is Judgement.OPEN
    counts = {
        "lost": lacking if judgement is Judgement.MISSING else 0,
        "late": lacking if judgement is Judgement.LATE else 0,
        "duplicated": 0 if is_open else max(0, verdict.difference) + repeated,
    }
    wrong = [name for name, count in counts.items() if count]
    status = "open" if is_open else (wrong[0] if wrong else "ok")
    expected, found = verdict.expected.message_count, verdict.found.message_count
    lost, late, duplicated = counts.values()
    return AuditRow(*verdict.window, verdict.tier, expected, found, lost, late, duplicated, status)

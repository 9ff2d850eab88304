"""Output documents of pipeline commands: columns and records of plans, loads and audits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylogctl.cli.render import Column, ColumnKind, Document
from pylogctl.cli.units import format_size

if TYPE_CHECKING:
    from broker.spark.loading.output import Manifest, PartitionLoad
    from broker.spark.loading.plan import LoadPlan
    from broker.tools.audit import AuditVerdict

PLAN = Document(
    "pipeline.load.plan/1",
    (
        Column("topic", "the topic"),
        Column("partition", "home broker and index"),
        Column("start", "start offset of the load", ColumnKind.INTEGER),
        Column("end", "its end offset", ColumnKind.INTEGER),
        Column("bytes", "bytes of the log to load", ColumnKind.BYTES),
        Column("tasks", "number of tasks", ColumnKind.INTEGER),
        Column("lost_bytes", "bytes to load that are gone", ColumnKind.BYTES),
        Column("load", "number of the load", ColumnKind.INTEGER, shown=False),
    ),
    empty="nothing to load",
)
LOAD = Document(
    "pipeline.load/1",
    (
        Column("load", "number of the load", ColumnKind.INTEGER),
        Column("topic", "the topic"),
        Column("partition", "home broker and index"),
        Column("start", "start offset of the load", ColumnKind.INTEGER),
        Column("end", "its end offset, the start of the next load", ColumnKind.INTEGER),
        Column("messages", "rows", ColumnKind.INTEGER),
        Column("payload_bytes", "size of the payloads in the log", ColumnKind.BYTES),
        Column("left_out_bytes", "lost, corrupt or undecodable bytes", ColumnKind.BYTES),
        Column("crc_sum", "sum of the CRC-32 of the payloads", ColumnKind.INTEGER, shown=False),
    ),
    empty="nothing to load",
)


AUDIT = Document(
    "pipeline.audit/1",
    (
        Column("topic", "the topic"),
        Column("start", "start of the time window", ColumnKind.TIME),
        Column("end", "its end, exclusive", ColumnKind.TIME),
        Column("tier", "log: in the topic; load: in the directory of the loads"),
        Column("expected", "messages that producers have counted", ColumnKind.INTEGER),
        Column("found", "messages found, each once", ColumnKind.INTEGER),
        Column("lost", "messages missing for good", ColumnKind.INTEGER),
        Column("late", "messages missing so far that may still arrive", ColumnKind.INTEGER),
        Column(
            "duplicated", "messages found twice or not counted by producers", ColumnKind.INTEGER
        ),
        Column("status", "ok, lost, late, duplicated or open"),
    ),
    empty="",
)


def load_plan_records(plan: LoadPlan) -> list[dict[str, Any]]:
    """Return the records of a planned load, one for each partition."""
    records = []
    for one in plan.read.ranges:
        tasks = plan.tasks_of(one.partition)
        lost = sum(gap.end - gap.start for gap in plan.omissions_of(one.partition))
        records.append(
            {
                "topic": one.partition.topic,
                "partition": one.partition.name,
                "start": one.start,
                "end": one.end,
                "bytes": sum(task.range.size_bytes for task in tasks),
                "tasks": len(tasks),
                "lost_bytes": lost,
                "load": plan.number,
            }
        )
    return records


def load_records(manifest: Manifest) -> list[dict[str, Any]]:
    """Return the records of a load, one for each partition."""
    return [_load_record(manifest.number, one) for one in manifest.partitions]


def _load_record(number: int, one: PartitionLoad) -> dict[str, Any]:
    return {
        "load": number,
        "topic": one.partition.topic,
        "partition": one.partition.name,
        "start": one.start,
        "end": one.end,
        "messages": one.message_count,
        "payload_bytes": one.payload_bytes,
        "left_out_bytes": sum(gap.size_bytes for gap in one.left_out),
        "crc_sum": one.crc_sum,
    }


def load_line(manifest: Manifest, elapsed_s: float) -> str:
    """Summarize a load in one line."""
    size = sum(one.payload_bytes for one in manifest.partitions)
    count = manifest.message_count
    line = (
        f"load {manifest.number}: {count:,} messages of {len(manifest.partitions)} "
        f"partition{'' if len(manifest.partitions) == 1 else 's'}, {format_size(size)} of payload, "
        f"{format_size(size / max(elapsed_s, 1e-9))}/s"
    )
    if not manifest.files:  # a table has its own
        return line
    return (
        f"{line}; {len(manifest.files)} file{'' if len(manifest.files) == 1 else 's'}, "
        f"{format_size(manifest.size_bytes)}"
    )


def audit_record(verdict: AuditVerdict, repeated: int) -> dict[str, Any]:
    """Return the record of a window in one tier; `repeated` messages were found twice."""
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
    return {
        "topic": verdict.window.topic,
        "start": verdict.window.start_ms,
        "end": verdict.window.end_ms,
        "tier": verdict.tier,
        "expected": verdict.expected.message_count,
        "found": verdict.found.message_count,
        **counts,
        "status": "open" if is_open else (wrong[0] if wrong else "ok"),
    }

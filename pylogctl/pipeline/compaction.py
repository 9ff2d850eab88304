"""Runs `pipeline compact`; errors are those of `broker.spark.compaction`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from broker.spark.compaction import plan_compaction, prepare_compaction
from broker.spark.loading.output import LoadOutput
from broker.units import format_size
from pylogctl.cli.columns import Bytes, Document, Integer, Row, Text
from pylogctl.cli.environment import Environment
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.pipeline.document import LOAD, load_rows
from pylogctl.pipeline.engine import open_engine
from pylogctl.pipeline.options import SparkChoice
from pylogctl.pipeline.spark import in_parts

_EMPTY = "nothing to join"


class _PlanRow(Row):
    """Files that would be joined into one."""

    path: Annotated[Text, "topic and date of the files"]
    files: Annotated[Integer, "number of files to join into one"]
    bytes: Annotated[Bytes, "their size"]
    messages: Annotated[Integer, "their rows"]


_PLAN = Document("pipeline.compact.plan/1", _PlanRow, empty=_EMPTY)


def show_compaction(env: Environment, directory: Path, file_bytes: int, keep: int) -> None:
    """Render the plan of a compaction."""
    plan = plan_compaction(LoadOutput(directory), file_bytes=file_bytes, keep=keep)
    rows = [
        _PlanRow(
            group[0].file.path.rpartition("/")[0],
            len(group),
            sum(one.file.size_bytes for one in group),
            sum(one.file.message_count for one in group),
        )
        for group in plan.groups
    ]
    render(env, _PLAN, rows)


def run_compaction(
    env: Environment, directory: Path, file_bytes: int, keep: int, spark: SparkChoice | None
) -> None:
    """Compact loads, and render the manifest of the new one."""
    with prepare_compaction(directory, file_bytes=file_bytes, keep=keep) as prepared:
        plan = prepared.plan
        if plan.is_empty:
            env.note(_EMPTY)
            return
        total = plan.size_bytes
        with open_engine(env, spark, total) as engine, progress(env, "compact", total) as meter:
            manifest = prepared.run(engine, in_parts(meter, total))
    render(env, LOAD, load_rows(manifest))
    env.flush()
    before = sum(len(one.files) for one in plan.replaced)
    count = len(plan.replaced)
    env.note(
        f"load {manifest.number}: {count} load{'' if count == 1 else 's'} with {before} files in "
        f"one with {len(manifest.files)}, {format_size(manifest.size_bytes)}"
    )

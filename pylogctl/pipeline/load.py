"""Runs `pipeline load` and `pipeline compact`; errors have the names of options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from broker.spark.compaction import Compaction, plan_compaction, prepare_compaction
from broker.spark.load import LoadRequest, look_at_load, prepare_load
from broker.spark.loading.output import LoadOutput, Manifest
from broker.spark.loading.plan import LoadPlan
from broker.spark.reading.report import Cause
from broker.units import counted, format_size
from pylogctl.cli.columns import Bytes, Document, Integer, Row, Text
from pylogctl.cli.environment import Environment
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.pipeline.document import LOAD, PLAN, load_line, load_plan_rows, load_rows
from pylogctl.pipeline.options import SparkChoice
from pylogctl.pipeline.reading import naming_options, report_absent, warn_of_omissions
from pylogctl.pipeline.spark import in_parts, open_engine, open_spark, query_progress

if TYPE_CHECKING:
    from broker.spark.load_table import TableLoadRequest


def run_load(env: Environment, request: LoadRequest, spark: SparkChoice | None) -> None:
    """Load on Spark or on processes of this machine, or only plan it with `--dry-run`."""
    with naming_options():
        if env.settings.dry_run:
            _report(env, request, look_at_load(request))
            return
        with prepare_load(request, clock=env.clock) as prepared:
            total = prepared.plan.size_bytes

            def run() -> Manifest:
                with (
                    open_engine(env, spark, total) as engine,
                    progress(env, "load", total) as meter,
                ):
                    return prepared.run(engine, in_parts(meter, total))

            _report(env, request, prepared.plan, run)


def load_table(env: Environment, request: TableLoadRequest, spark: SparkChoice) -> None:
    """Load into a table, or only plan it with `--dry-run`."""
    from broker.spark.load_table import prepare_table_load  # late: it takes PySpark

    with naming_options(), open_spark(env, spark, target=request.target) as session:
        prepared = prepare_table_load(session, request, clock=env.clock)

        def run() -> Manifest:
            with query_progress(env, session):
                return prepared.run()

        _report(env, request, prepared.plan, None if env.settings.dry_run else run)


def _report(
    env: Environment,
    request: LoadRequest | TableLoadRequest,
    plan: LoadPlan,
    run: Callable[[], Manifest] | None = None,
) -> None:
    """Render the plan of a load, or run it unless it is empty, and render its manifest.

    Report which messages the plan leaves out, or loads again.
    """
    if run is None:
        render(env, PLAN, load_plan_rows(plan))
    report_absent(env.leave_out if request.options.fail_on_data_loss else env.warn, plan.read)
    if plan.read.has_records:  # no broker writes the rest of these files
        cut_off = [one for one in plan.read.omissions if one.cause is Cause.INCOMPLETE]
        warn_of_omissions(env, cut_off)
    if plan.retiring:
        first, last = plan.retiring[0], plan.retiring[-1]
        which = f"load {first}" if first == last else f"loads {first} to {last}"
        env.note(f"{which}: retired, and loaded again")
    for partition in plan.absent:
        env.warn(f"{partition} was loaded before, and does not exist now: its loads are kept")
    if run is None:
        return
    if plan.is_empty:
        render(env, LOAD, [])
        return
    started_s = env.clock.monotonic_s()
    manifest = run()
    elapsed_s = env.clock.monotonic_s() - started_s
    render(env, LOAD, load_rows(manifest))
    env.flush()
    warn_of_omissions(env, manifest.left_out)
    env.note(load_line(manifest, elapsed_s))


_EMPTY = "nothing to join"


class _PlanRow(Row):
    """Files that would be joined into one."""

    path: Annotated[Text, "topic and date of the files"]
    files: Annotated[Integer, "number of files to join into one"]
    bytes: Annotated[Bytes, "their size"]
    messages: Annotated[Integer, "their rows"]


_PLAN = Document("pipeline.compact.plan/1", _PlanRow, empty=_EMPTY)


def _show(env: Environment, plan: Compaction) -> None:
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
    """Compact loads, and render the manifest of the new one; with `--dry-run` only the plan."""
    if env.settings.dry_run:
        _show(env, plan_compaction(LoadOutput(directory), file_bytes=file_bytes, keep=keep))
        return
    with prepare_compaction(directory, file_bytes=file_bytes, keep=keep) as plan:
        if plan.is_empty:
            env.note(_EMPTY)
            return
        total = plan.size_bytes
        with open_engine(env, spark, total) as engine, progress(env, "compact", total) as meter:
            manifest = plan.run(engine, in_parts(meter, total))
    render(env, LOAD, load_rows(manifest))
    env.flush()
    before = sum(len(one.files) for one in plan.replaced)
    env.note(
        f"load {manifest.number}: {counted(len(plan.replaced), 'load')} with {before} files in "
        f"one with {len(manifest.files)}, {format_size(manifest.size_bytes)}"
    )

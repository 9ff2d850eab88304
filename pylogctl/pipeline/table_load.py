"""Runs `pipeline load --into-table`."""

from __future__ import annotations

from broker.spark.load_table import TableLoadRequest, prepare_table_load
from pylogctl.cli.environment import Environment
from pylogctl.cli.render import render
from pylogctl.pipeline.document import LOAD, PLAN, load_line, load_plan_rows, load_rows
from pylogctl.pipeline.load import report_plan
from pylogctl.pipeline.options import SparkChoice
from pylogctl.pipeline.reading import naming_options, warn_of_omissions
from pylogctl.pipeline.spark import open_spark_for, query_progress


def load_table(env: Environment, request: TableLoadRequest, spark: SparkChoice) -> None:
    """Run a load into a table, or only plan it with `--dry-run`, and render the result."""
    with naming_options(), open_spark_for(env, spark, request.target) as session:
        prepared = prepare_table_load(session, request, clock=env.clock)
        if env.settings.dry_run:
            render(env, PLAN, load_plan_rows(prepared.plan))
            report_plan(env, request.options, prepared.plan)
            return
        report_plan(env, request.options, prepared.plan)
        if prepared.plan.is_empty:
            render(env, LOAD, [])
            return
        started_s = env.clock.monotonic_s()
        with query_progress(env, session):
            manifest = prepared.run()
        elapsed_s = env.clock.monotonic_s() - started_s
    render(env, LOAD, load_rows(manifest))
    env.flush()
    warn_of_omissions(env, manifest.left_out)
    env.note(load_line(manifest, elapsed_s))

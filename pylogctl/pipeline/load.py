"""Runs `pipeline load`; errors are those of `broker.spark.load`, with names of options."""

from __future__ import annotations

from broker.spark.load import LoadRequest, PreparedLoad, look_at_load, prepare_load
from broker.spark.loading.output import Manifest
from broker.spark.loading.plan import LoadPlan
from broker.spark.options import ReadOptions
from pylogctl.cli.environment import Environment
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.pipeline.document import LOAD, PLAN, load_line, load_plan_rows, load_rows
from pylogctl.pipeline.engine import open_engine
from pylogctl.pipeline.options import SparkChoice
from pylogctl.pipeline.reading import naming_options, report_absent, warn_of_omissions
from pylogctl.pipeline.spark import in_parts


def show_plan(env: Environment, request: LoadRequest) -> None:
    """Render the plan of a load."""
    with naming_options():
        plan = look_at_load(request)
    render(env, PLAN, load_plan_rows(plan))
    report_plan(env, request.options, plan)


def run_load(env: Environment, request: LoadRequest, spark: SparkChoice | None) -> None:
    """Run a load on Spark or on processes of this machine, and render its manifest."""
    with naming_options(), prepare_load(request, clock=env.clock) as prepared:
        plan = prepared.plan
        report_plan(env, request.options, plan)
        if plan.is_empty:
            render(env, LOAD, [])
            return
        started_s = env.clock.monotonic_s()
        manifest = _run(env, prepared, spark)
        elapsed_s = env.clock.monotonic_s() - started_s
    render(env, LOAD, load_rows(manifest))
    env.flush()
    warn_of_omissions(env, manifest.left_out)
    env.note(load_line(manifest, elapsed_s))


def _run(env: Environment, prepared: PreparedLoad, spark: SparkChoice | None) -> Manifest:
    total = prepared.plan.size_bytes
    with (
        naming_options(),
        open_engine(env, spark, total) as engine,
        progress(env, "load", total) as meter,
    ):
        return prepared.run(engine, in_parts(meter, total))


def report_plan(env: Environment, options: ReadOptions, plan: LoadPlan) -> None:
    """Report which messages a plan leaves out, or loads again."""
    report_absent(env.leave_out if options.fail_on_data_loss else env.warn, plan.read)
    if plan.retiring:
        first, last = plan.retiring[0], plan.retiring[-1]
        which = f"load {first}" if first == last else f"loads {first} to {last}"
        env.note(f"{which}: retired, and loaded again")
    for partition in plan.absent:
        env.warn(f"{partition} was loaded before, and does not exist now: its loads are kept")

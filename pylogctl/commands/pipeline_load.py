"""`pylogctl pipeline load`: topics into files, each message once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pylogctl.context import Environment
from pylogctl.errors import CliError
from pylogctl.exit_status import ExitStatus
from pylogctl.options import CONNECTION, DRY_RUN, OUTPUT, PROGRESS, accepts
from pylogctl.pipeline_input import (
    DataLoss,
    Include,
    Paths,
    Topics,
    Until,
    bound_options,
    source_options,
)
from pylogctl.spark_options import DEFAULT_SPARK, SPARK, SparkChoice

To = Annotated[
    Path,
    typer.Option(
        "--to",
        metavar="DIR",
        help="Directory of the loads, on a file system that all of Spark sees.",
        rich_help_panel="Output",
    ),
]
FileFormat = Annotated[
    Literal["parquet", "json", "text"],
    typer.Option("--format", help="Kind of files.", rich_help_panel="Output"),
]
LoadGroup = Annotated[
    str,
    typer.Option(
        "--group",
        metavar="NAME",
        help="Whose loads these are; a directory is one group's.",
        rich_help_panel="Output",
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="SPEC",
        help="Where to start. Loads that have anything behind it are taken back, and loaded again. "
        "Default: where the last load ended, or the start.",
        rich_help_panel="Selection",
    ),
]


@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROGRESS,
    *DRY_RUN,
    exits=(
        ExitStatus.FAILED,
        ExitStatus.NOT_FOUND,
        ExitStatus.CONFLICT,
        ExitStatus.TIMEOUT,
        ExitStatus.CORRUPT,
        ExitStatus.CONFIG,
        ExitStatus.UNREACHABLE,
        ExitStatus.REMOTE,
    ),
    examples=("pylogctl pipeline load web --to /data/web --dry-run",),
)
def load(
    env: Environment,
    *,
    topics: Topics = None,
    to: To,
    file_format: FileFormat = "parquet",
    group: LoadGroup = "load",
    include: Include = None,
    paths: Paths = None,
    start: From = None,
    until: Until = None,
    allow_data_loss: DataLoss = False,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Load topics into files: what was not loaded yet, each message once.

    Data and offsets become visible together: a load that is killed leaves nothing behind, and the
    next one goes on where the last complete one ended.
    """
    from pylogctl.spark_run import check_spark

    check_spark(env)
    named = source_options(
        env, topics or [], include or [], paths or [], allow_data_loss=allow_data_loss
    )
    options = bound_options(env, named, start, until)
    if not env.settings.dry_run:
        raise CliError(ExitStatus.UNSUPPORTED, "only --dry-run is possible")
    _show_plan(env, options, to, {"group": group, "format": file_format}, rewinds=start is not None)


def _show_plan(
    env: Environment, options: dict[str, str], to: Path, layout: dict[str, str], *, rewinds: bool
) -> None:
    from broker.spark.load_plan import plan_load
    from broker.spark.output import LoadOutput
    from pylogctl.pipeline_documents import PLAN, load_plan_records
    from pylogctl.render import render

    output = LoadOutput(to)
    output.check_layout(layout)
    plan = plan_load(options, output, rewinds=rewinds)
    render(env, PLAN, load_plan_records(plan))

"""`pylogctl pipeline load`: topics into files, each message once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.options import CONNECTION, DRY_RUN, OUTPUT, PROGRESS, accepts
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.pipeline.document import LOAD, PLAN, load_line, load_plan_records, load_records
from pylogctl.pipeline.input import (
    Corrupt,
    DataLoss,
    Include,
    Paths,
    Topics,
    Until,
    bound_options,
    check_cluster,
    source_options,
)
from pylogctl.pipeline.spark import (
    DEFAULT_SPARK,
    SPARK,
    SparkChoice,
    check_spark,
    in_parts,
    open_spark,
)

if TYPE_CHECKING:
    from broker.spark.load import LoadRequest, PreparedLoad
    from broker.spark.load_plan import LoadPlan
    from broker.spark.manifest import Manifest

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


AvroSchemas = Annotated[
    Path | None,
    typer.Option(
        "--avro-schemas",
        metavar="DIR",
        help="Payloads are a zero byte, a schema's id in four bytes and an Avro record: write that "
        "as JSON. DIR has the schemas, as ID.avsc.",
        rich_help_panel="Input",
    ),
]
AvroReader = Annotated[
    int | None,
    typer.Option(
        "--avro-reader",
        metavar="ID",
        min=0,
        help="Have Avro values as columns of the schema ID instead, resolved from the schemas they "
        "were written with. Needs --avro-schemas and --format parquet.",
        rich_help_panel="Input",
    ),
]
DateField = Annotated[
    str | None,
    typer.Option(
        "--date-field",
        metavar="PATH",
        help="Date from this field of JSON or Avro payloads, such as .meta.ts. Default: the day of "
        "the load.",
        rich_help_panel="Input",
    ),
]
DateRegex = Annotated[
    str | None,
    typer.Option(
        "--date-regex",
        metavar="RE",
        help="Date from the first group of RE, searched for in payloads.",
        rich_help_panel="Input",
    ),
]
DateFormat = Annotated[
    str | None,
    typer.Option(
        "--date-format",
        metavar="STR",
        help="How that is written, such as '%d/%b/%Y:%H:%M:%S %z'; without a year it is that of "
        "the load. Default: ISO 8601, or a number since 1970.",
        rich_help_panel="Input",
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
    examples=(
        "pylogctl pipeline load web --to /data/web --dry-run",
        "pylogctl pipeline load web orders --to /data/lake --date-field .ts",
        "pylogctl pipeline load web --to /data/web --from @-2d",
        "pylogctl pipeline load --path data --to /data/old --format json",
    ),
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
    avro_schemas: AvroSchemas = None,
    avro_reader: AvroReader = None,
    date_field: DateField = None,
    date_regex: DateRegex = None,
    date_format: DateFormat = None,
    corrupt: Corrupt = "fail",
    allow_data_loss: DataLoss = False,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Load topics into files: what was not loaded yet, each message once.

    Data and offsets become visible together: a load that is killed leaves nothing behind, and the
    next one goes on where the last complete one ended.
    """
    if avro_reader is not None and (avro_schemas is None or file_format != "parquet"):
        raise UsageError("--avro-reader needs --avro-schemas and --format parquet")
    check_cluster(env, has_paths=bool(paths))
    check_spark(env)
    from broker.spark.dates import DateRule
    from broker.spark.load import LoadRequest  # late: it takes PyArrow

    named = source_options(
        env, topics or [], include or [], paths or [], allow_data_loss=allow_data_loss
    )
    today = datetime.fromtimestamp(env.clock.time_ms() / 1000, UTC).date().isoformat()
    request = LoadRequest(
        output=to,
        options=bound_options(env, named, start, until),
        group=group,
        file_format=file_format,
        dates=DateRule(today, date_field, date_regex, date_format),
        schemas=avro_schemas,
        avro_reader=avro_reader,
        skips_corrupt=corrupt == "skip",
        rewinds=start is not None,
    )
    if env.settings.dry_run:
        _show_plan(env, request)
    else:
        _load(env, request, spark)


def _show_plan(env: Environment, request: LoadRequest) -> None:
    from broker.spark.load import look_at_load

    plan = look_at_load(request)
    render(env, PLAN, load_plan_records(plan))
    _tell_of_plan(env, plan)


def _load(env: Environment, request: LoadRequest, spark: SparkChoice) -> None:
    from broker.spark.load import prepare_load

    with prepare_load(request, clock=env.clock) as prepared:
        plan = prepared.plan
        _tell_of_plan(env, plan)
        if plan.is_empty:
            render(env, LOAD, [])
            return
        started_s = env.clock.monotonic_s()
        manifest = _run(env, prepared, spark)
        elapsed_s = env.clock.monotonic_s() - started_s
    render(env, LOAD, load_records(manifest))
    env.flush()
    for partition, gap in manifest.left_out:
        env.warn(f"{partition}: {gap.text} ({gap.cause}, {gap.size_bytes} bytes from {gap.start})")
    env.note(load_line(manifest, elapsed_s))


def _run(env: Environment, prepared: PreparedLoad, spark: SparkChoice) -> Manifest:
    from broker.errors import InvalidMessageError
    from pylogctl.pipeline.reading import corrupt_error

    total = prepared.plan.size_bytes
    try:
        with open_spark(env, spark) as session, progress(env, "load", total) as meter:
            return prepared.run(session, in_parts(meter, total))
    except InvalidMessageError as error:
        raise corrupt_error(error) from error


def _tell_of_plan(env: Environment, plan: LoadPlan) -> None:
    if plan.retiring:
        first, last = plan.retiring[0], plan.retiring[-1]
        which = f"load {first}" if first == last else f"loads {first} to {last}"
        env.note(f"{which}: taken back, and loaded again")
    for partition in plan.absent:
        env.warn(f"{partition} was loaded before, and is not there now: left as it is")

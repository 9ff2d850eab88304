"""`pylogctl pipeline sql`: SQL on topics and segment files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.options import CONNECTION, OUTPUT, accepts
from pylogctl.pipeline.input import Corrupt, DataLoss, Paths, Until, check_cluster
from pylogctl.pipeline.spark import DEFAULT_SPARK, SPARK, SparkChoice
from pylogctl.pipeline.target_options import NO_TARGET, TARGET, TargetChoice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pylogctl.pipeline.reading import Reading

READS = (
    ExitStatus.FAILED,
    ExitStatus.NOT_FOUND,
    ExitStatus.CONFLICT,
    ExitStatus.TIMEOUT,
    ExitStatus.CORRUPT,
    ExitStatus.CONFIG,
    ExitStatus.UNREACHABLE,
    ExitStatus.REMOTE,
)
UTC_CONF = "spark.sql.session.timeZone=UTC"

Query = Annotated[str, typer.Argument(metavar="QUERY", help="A statement of Spark's SQL.")]
Topic = Annotated[
    list[str] | None,
    typer.Option(
        "-t",
        "--topic",
        metavar="TOPIC",
        help="Topic to have as a view of its name (repeatable). Default with --path: all there.",
        rich_help_panel="Selection",
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="SPEC",
        help="Where to start; see pylogctl help offsets. Default: start.",
        rich_help_panel="Selection",
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Payloads are JSON objects: have their fields as columns, as they are in the first "
        "10000 messages.",
        rich_help_panel="Input",
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="DDL",
        help="Payloads are JSON objects with these fields, such as 'id BIGINT, user STRING'.",
        rich_help_panel="Input",
    ),
]


@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=READS,
    examples=(
        "pylogctl pipeline sql \"SELECT count(*) FROM web WHERE text LIKE '%error%'\" -t web",
        'pylogctl pipeline sql "SELECT user, sum(price) AS total FROM orders GROUP BY user" '
        "-t orders --json --sort -total",
        'pylogctl pipeline sql "SELECT * FROM web" --path /var/lib/pylog --into web.parquet',
    ),
)
def sql(
    env: Environment,
    *,
    query: Query,
    topic: Topic = None,
    paths: Paths = None,
    start: From = None,
    until: Until = None,
    json: Json = False,
    schema: Schema = None,
    allow_data_loss: DataLoss = False,
    corrupt: Corrupt = "fail",
    target: Annotated[TargetChoice, TARGET] = NO_TARGET,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Query topics with SQL.

    Each topic is a view of its name, in backquotes if the name has a dot or a hyphen, with the
    columns topic, partition, offset, next_offset, inner_index, value, crc, and text: the payload as
    UTF-8. With --json or --schema fields of JSON are columns, too; one whose name is taken gets
    `json_` before it. Times are in UTC, and binary values in base64.
    """
    from pylogctl.pipeline.spark import check_spark

    if json and schema is not None:
        raise UsageError("--json finds the schema itself; give it or --schema, not both")
    target.check()
    target.check_new()
    check_cluster(env, has_paths=bool(paths), to_topic=target.to_topic is not None)
    check_spark(env)
    from broker.spark.queries import query as run_query
    from pylogctl.pipeline.reading import plan_reading, reporting
    from pylogctl.pipeline.results import write_result
    from pylogctl.pipeline.spark import open_spark

    planned = plan_reading(
        env,
        topic or [],
        paths or [],
        start=start,
        until=until,
        allow_data_loss=allow_data_loss,
        skips_corrupt=corrupt == "skip",
    )
    with (
        reporting(env, [planned], spark) as (reading,),
        open_spark(env, spark.with_conf(UTC_CONF)) as session,
    ):
        _make_views(env, session, reading, json=json, schema=schema)
        write_result(env, run_query(session, query), target, "pipeline.sql/1")


def _make_views(
    env: Environment, session: SparkSession, reading: Reading, *, json: bool, schema: str | None
) -> None:
    from broker.errors import QueryError
    from broker.spark.frames import read_messages
    from broker.spark.queries import infer_schema, make_view, parse_schema, quoted

    fixed = None if schema is None else parse_schema(schema)
    for topic in reading.topics:
        messages = read_messages(session, reading.of_batch(topic))
        try:
            found = infer_schema(messages) if json else fixed
        except QueryError as error:
            raise QueryError(f"topic '{topic}': {error}") from error
        table = _with_payload(messages, found)
        make_view(table, topic)
        env.trace(1, f"view {quoted(topic)}: {', '.join(table.columns)}")


def _with_payload(messages: DataFrame, schema: StructType | None) -> DataFrame:
    from broker.spark.queries import with_json, with_text

    return with_text(messages) if schema is None else with_json(messages, schema)

"""`pylogctl pipeline`: jobs on topics that run on Spark.

Each command validates its options, which needs neither Spark nor a cluster, and calls one function.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.options import CONNECTION, DRY_RUN, OUTPUT, PROGRESS, accepts
from pylogctl.cli.tree import Command, new_app
from pylogctl.cli.units import parse_duration_ms, parse_size
from pylogctl.log.command import Deep, EngineChoice, FilesOnDisk, MaxErrors
from pylogctl.pipeline.options import (
    DEFAULT_SPARK,
    EVENTS,
    LOAD,
    NO_EVENTS,
    NO_READ,
    NO_STREAM,
    NO_TARGET,
    READ,
    READS,
    SPARK,
    STREAM,
    TARGET,
    EventChoice,
    Include,
    ReadChoice,
    SparkChoice,
    StreamChoice,
    TargetChoice,
    Topics,
    file_format,
)

app = new_app("Load, query, compare and verify topics on Spark.")

To = Annotated[
    Path,
    typer.Option(
        "--to",
        metavar="DIR",
        help="Directory of the loads, on a file system that all of Spark sees.",
        rich_help_panel="Output",
    ),
]
LoadFormat = Annotated[
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


@app.command("load", cls=Command)
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
    file_format: LoadFormat = "parquet",
    group: LoadGroup = "load",
    include: Include = None,
    read: Annotated[ReadChoice, LOAD] = NO_READ,
    avro_schemas: AvroSchemas = None,
    avro_reader: AvroReader = None,
    date_field: DateField = None,
    date_regex: DateRegex = None,
    date_format: DateFormat = None,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Load topics into files: what was not loaded yet, each message once.

    Data and offsets become visible together: a load that is killed leaves nothing behind, and the
    next one starts where the last complete one ended.
    """
    from pylogctl.pipeline.spark import check_spark

    if avro_reader is not None and (avro_schemas is None or file_format != "parquet"):
        raise UsageError("--avro-reader needs --avro-schemas and --format parquet")
    _check_cluster(env, read)
    check_spark(env)
    from broker.spark.load import LoadRequest  # late: it takes PyArrow
    from broker.spark.load_task import DateRule
    from pylogctl.pipeline.jobs import run_load, show_plan
    from pylogctl.pipeline.reading import read_options

    today = datetime.fromtimestamp(env.clock.time_ms() / 1000, UTC).date().isoformat()
    request = LoadRequest(
        output=to,
        options=read_options(env, topics or [], include or [], read),
        group=group,
        file_format=file_format,
        dates=DateRule(today, date_field, date_regex, date_format),
        schemas=avro_schemas,
        avro_reader=avro_reader,
        skips_corrupt=read.corrupt == "skip",
        rewinds=read.start is not None,
    )
    if env.settings.dry_run:
        show_plan(env, request)
    else:
        run_load(env, request, spark)


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


@app.command("sql", cls=Command)
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
    read: Annotated[ReadChoice, READ] = NO_READ,
    json: Json = False,
    schema: Schema = None,
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
    _check_cluster(env, read, target)
    check_spark(env)
    from pylogctl.pipeline.jobs import Job, run_sql

    run_sql(Job(env, topic or [], read, target, spark), query, json=json, schema=schema)


Size = Annotated[
    str | None,
    typer.Option("--size", metavar="DUR", help="Length of a window.", rich_help_panel="Windows"),
]
Slide = Annotated[
    str | None,
    typer.Option(
        "--slide",
        metavar="DUR",
        help="Sliding windows: how far each starts behind the one before. Default: --size.",
        rich_help_panel="Windows",
    ),
]
Session = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="DUR",
        help="Instead of --size: sessions, which end when a key is quiet for so long.",
        rich_help_panel="Windows",
    ),
]


@app.command("window", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=READS,
    examples=(
        "pylogctl pipeline window web --size 1m --key-field .status --time-field .time",
        "pylogctl pipeline window sshd --size 1d --sort -messages --time-format '%b %d %T' "
        "--pattern '^(?P<time>\\w+ +\\d+ [\\d:]+) .*Failed password .* from (?P<key>\\S+)'",
        "pylogctl pipeline window web --session 30m --key-field .user --time-field .time --stream "
        "--watermark 10m --checkpoint /var/lib/sessions --to-topic sessions",
    ),
)
def window(
    env: Environment,
    *,
    topics: Topics = None,
    size: Size = None,
    slide: Slide = None,
    session: Session = None,
    events: Annotated[EventChoice, EVENTS] = NO_EVENTS,
    read: Annotated[ReadChoice, READ] = NO_READ,
    stream: Annotated[StreamChoice, STREAM] = NO_STREAM,
    target: Annotated[TargetChoice, TARGET] = NO_TARGET,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Count messages per key in windows of their own time.

    Messages without a time are left out. A stream gives a window once, when the watermark has
    passed its end; messages that come later do not count. Stopped and started again, it continues
    from its checkpoint: files have each window once, a topic or standard output at least once.
    """
    from pylogctl.pipeline.spark import check_spark

    if (size is None) == (session is None):
        raise UsageError("give either --size or --session")
    if slide is not None and size is None:
        raise UsageError("--slide needs --size")
    size_ms, slide_ms, gap_ms = _optional_ms(size), _optional_ms(slide), _optional_ms(session)
    events.check_time()
    _check_run(env, read, stream, target)
    check_spark(env)
    from pylogctl.pipeline.jobs import Job, run_window

    job = Job(env, topics or [], read, target, spark, stream)
    run_window(
        job,
        events.fields(),
        size_ms=size_ms,
        slide_ms=slide_ms,
        gap_ms=gap_ms,
        watermark_ms=_optional_ms(stream.watermark),
    )


Left = Annotated[str, typer.Argument(metavar="TOPIC", help="Topic to read.")]
Right = Annotated[
    str | None,
    typer.Argument(metavar="[OTHER]", help="Topic to join with.", show_default=False),
]
Table = Annotated[
    Path | None,
    typer.Option(
        "--table",
        metavar="FILE",
        help="Instead of another topic: a table to join with, .parquet, .json or .csv.",
        rich_help_panel="Join",
    ),
]
TableColumn = Annotated[
    str | None,
    typer.Option(
        "--table-column",
        metavar="COLUMN",
        help="Column of the table that has the key.",
        rich_help_panel="Join",
    ),
]
OtherKey = Annotated[
    str | None,
    typer.Option(
        "--other-key-field",
        metavar="PATH",
        help="Field with the key in the other topic. Default: --key-field.",
        rich_help_panel="Events",
    ),
]
OtherTime = Annotated[
    str | None,
    typer.Option(
        "--other-time-field",
        metavar="PATH",
        help="Field with the time in the other topic. Default: --time-field.",
        rich_help_panel="Events",
    ),
]
OtherPattern = Annotated[
    str | None,
    typer.Option(
        "--other-pattern",
        metavar="RE",
        help="Regular expression for the other topic. Default: --pattern.",
        rich_help_panel="Events",
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        "--within",
        metavar="DUR",
        help="How far apart in time two events may be that belong together.",
        rich_help_panel="Join",
    ),
]
How = Annotated[
    Literal["inner", "left"],
    typer.Option(
        "--how",
        help="Leave out messages that nothing belongs to (inner), or keep them (left).",
        rich_help_panel="Join",
    ),
]


@app.command("join", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=READS,
    examples=(
        "pylogctl pipeline join orders payments --key-field .order --time-field .ts --within 1h",
        "pylogctl pipeline join web --table users.csv --table-column id --key-field .user "
        "--how left --output jsonl",
        "pylogctl pipeline join orders payments --key-field .order --time-field .ts --within 1h "
        "--stream --watermark 10m --checkpoint /var/lib/paid --into paid.parquet",
    ),
)
def join(
    env: Environment,
    *,
    topic: Left,
    other: Right = None,
    table: Table = None,
    table_column: TableColumn = None,
    events: Annotated[EventChoice, EVENTS] = NO_EVENTS,
    other_key_field: OtherKey = None,
    other_time_field: OtherTime = None,
    other_pattern: OtherPattern = None,
    within: Within = None,
    how: How = "inner",
    read: Annotated[ReadChoice, READ] = NO_READ,
    stream: Annotated[StreamChoice, STREAM] = NO_STREAM,
    target: Annotated[TargetChoice, TARGET] = NO_TARGET,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Join messages of a topic with those of another one, or with a table.

    Keys come out of payloads and are compared as text. Two topics that are joined as streams need
    --watermark and --within, as a stream would have to keep all messages for ever without.
    """
    from pylogctl.pipeline.spark import check_spark

    if (other is None) == (table is None):
        raise UsageError("name another topic to join with, or give --table FILE")
    if (table is None) != (table_column is None):
        raise UsageError("--table and --table-column go together")
    if events.key_field is None and events.pattern is None:
        raise UsageError("give --key-field, or --pattern with a group named key")
    if table is not None:
        file_format(table)
        if not table.exists():
            raise FileNotFoundError(2, "", str(table))
    if other == topic:
        raise UsageError(
            f"'{topic}' is named twice", hints=["pipeline sql joins a topic with itself"]
        )
    others = EventChoice(
        other_key_field or (None if other_pattern else events.key_field),
        other_time_field or (None if other_pattern else events.time_field),
        other_pattern or (None if other_key_field else events.pattern),
    )
    if other is None and within is not None:
        raise UsageError("--within is for two topics; a table has no time")
    if other is not None and within is None and stream.stream:
        raise UsageError(
            "--stream with two topics needs --within DUR, how far apart events may be",
            hints=["without it Spark would keep every message for ever"],
        )
    if within is not None:
        events.check_time()
        others.check_time()
    _check_run(env, read, stream, target, is_bounded=other is not None)
    check_spark(env)
    from pylogctl.pipeline.jobs import Job, run_join

    left = events.fields()
    right = replace(
        left, key_field=others.key_field, time_field=others.time_field, pattern=others.pattern
    )
    topics = [topic] if other is None else [topic, other]
    run_join(
        Job(env, topics, read, target, spark, stream),
        [left, right],
        table,
        table_column or "",
        within_ms=_optional_ms(within),
        how=how,
        watermark_ms=_optional_ms(stream.watermark),
    )


AuditTopic = Annotated[
    str, typer.Argument(metavar="AUDIT-TOPIC", help="Topic that counts are published to.")
]
LoadDirectory = Annotated[
    Path | None,
    typer.Option(
        "--load",
        metavar="DIR",
        help="Directory of pipeline load to compare, too.",
        rich_help_panel="Input",
    ),
]
TimeField = Annotated[
    str | None,
    typer.Option(
        "--time-field",
        metavar="PATH",
        help="Field of JSON messages that has their time, as given to produce --time-field. "
        "Without it each topic is compared as a whole.",
        rich_help_panel="Selection",
    ),
]
Reference = Annotated[
    str,
    typer.Option(
        "--reference",
        metavar="TIER",
        help="Tier whose counts are expected.",
        rich_help_panel="Selection",
    ),
]
Grace = Annotated[
    str,
    typer.Option(
        "--grace",
        metavar="DUR",
        help="How long after its end a window may still be reported.",
        rich_help_panel="Limits",
    ),
]
FailAbove = Annotated[
    int | None,
    typer.Option(
        "--fail-above",
        metavar="N",
        min=0,
        help="Status 12 if more messages than this are lost, late or duplicated.",
        rich_help_panel="Limits",
    ),
]
Everything = Annotated[
    bool,
    typer.Option("--all", help="Show windows that agree, too.", rich_help_panel="Output"),
]


@app.command("audit", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(*READS, ExitStatus.PARTIAL, ExitStatus.THRESHOLD, ExitStatus.UNSUPPORTED),
    examples=(
        "pylogctl pipeline audit audit --time-field .ts --fail-above 0",
        "pylogctl pipeline audit audit --load /data/lake --include 'web|orders' --output json",
    ),
)
def audit(
    env: Environment,
    *,
    audit_topic: AuditTopic,
    load: LoadDirectory = None,
    include: Include = None,
    time_field: TimeField = None,
    reference: Reference = "producer",
    grace: Grace = "5m",
    fail_above: FailAbove = None,
    everything: Everything = False,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Compare what is in topics, and in a load of them, with what producers have counted.

    A window is judged when it is over and a grace time has passed. Messages that a load lacks are
    late as long as it has not come to the end of the topic; then they are lost.
    """
    from pylogctl.pipeline.spark import check_spark

    grace_ms = parse_duration_ms(grace)
    check_spark(env)
    from pylogctl.pipeline.audit import run_audit

    run_audit(
        env,
        audit_topic,
        load,
        spark,
        include=include or [],
        time_field=time_field,
        reference=reference,
        grace_ms=grace_ms,
        fail_above=fail_above,
        everything=everything,
    )


PieceSize = Annotated[
    str,
    typer.Option(
        "--piece-size",
        metavar="SIZE",
        help="Large files are cut into such parts.",
        rich_help_panel="Limits",
    ),
]


@app.command("verify", cls=Command)
@accepts(
    *OUTPUT,
    *PROGRESS,
    exits=(
        ExitStatus.FAILED,
        ExitStatus.NOT_FOUND,
        ExitStatus.PARTIAL,
        ExitStatus.CORRUPT,
        ExitStatus.CONFIG,
    ),
    examples=(
        "pylogctl pipeline verify /data/kafka --master spark://host:7077",
        "pylogctl pipeline verify archive/*/*.pylog --output jsonl",
    ),
)
def verify(
    env: Environment,
    files: FilesOnDisk,
    deep: Deep = True,
    max_errors: MaxErrors = 100,
    engine: EngineChoice = "codec",
    piece_size: PieceSize = "64MiB",
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Check every byte of segment files, on many machines at once.

    The rows and exit statuses are those of `log verify`. All machines must see the files under the
    same names.
    """
    from pylogctl.pipeline.spark import check_spark

    check_spark(env)
    piece_bytes = parse_size(piece_size)
    if piece_bytes < 1:
        raise UsageError("--piece-size is at least 1")
    from pylogctl.pipeline.jobs import verify_files

    raise typer.Exit(verify_files(env, files, spark, deep, max_errors, engine, piece_bytes))


def _check_run(
    env: Environment,
    read: ReadChoice,
    stream: StreamChoice,
    target: TargetChoice,
    *,
    is_bounded: bool = True,
) -> None:
    """Validate how a job runs and where its results go; `is_bounded` if it keeps events."""
    stream.check(is_bounded=is_bounded)
    target.check()
    _check_cluster(env, read, target)
    if not stream.stream:
        target.check_new()
        return
    if read.paths or read.until is not None:
        raise UsageError("--stream reads topics as they grow; it cannot have --path or --until")
    if env.output == "json" and target.into is None and target.to_topic is None:
        raise UsageError("a stream is no single document; use --output jsonl")
    _optional_ms(stream.watermark)


def _check_cluster(env: Environment, read: ReadChoice, target: TargetChoice = NO_TARGET) -> None:
    """Refuse options that name a cluster where only segment files are used."""
    named = {
        "PYLOGCTL_BROKER": ",".join(env.settings.brokers),
        "PYLOGCTL_ZOOKEEPER": env.settings.zookeeper,
    }
    # environment variables that name a cluster are ignored
    by_option = [text for name, text in named.items() if text and text != env.environ.get(name)]
    if read.paths and by_option and target.to_topic is None:
        raise UsageError("--path reads files; it cannot be used with --broker or --zookeeper")


def _optional_ms(duration: str | None) -> int | None:
    return None if duration is None else parse_duration_ms(duration)

"""`pylogctl pipeline`: jobs on topics that run on Spark, or loads without it.

Each command validates its options, which needs neither Spark nor a cluster, and calls one function.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pylogctl.audit.options import AuditTopicArgument
from pylogctl.cli import options as shared
from pylogctl.cli.context import at_cluster
from pylogctl.cli.declarations import argument, inputs, outputs, selection
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.pipeline import options

app = shared.App()


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROGRESS + shared.DRY_RUN,
    exits=options.READS,
    changes=False,
    first="--to --format --include --path --from --date-field --avro-schemas --into-table --local",
)
def load(
    env: Environment,
    *,
    topics: options.Topics = None,
    to: Path | None = outputs.option(
        "--to DIR", "Directory of the loads, on a file system that all machines see."
    ),
    file_format: Literal["parquet", "json", "text"] | None = outputs.option(
        "--format", "Format of the files. Default: parquet."
    ),
    file_size: int | None = outputs.option(
        "--file-size SIZE",
        "Target size of files: those under half of it are joined by topic and day. 0: keep the "
        "files of each partition and day. Default: 16MiB.",
    ),
    table: options.TableChoice,
    group: str = outputs.option(
        "--group NAME",
        "Name of the consumer of these loads; a directory or table belongs to one group.",
        default="load",
    ),
    include: options.Include = None,
    read: options.LoadChoice,
    payloads: options.PayloadChoice,
    loss: options.LossChoice,
    engine: options.EngineChoice,
) -> None:
    r"""Load the messages since the last load into files or a table, each once.

    Data and offsets become visible together. After a load that was killed, the next one starts at
    the end of the last complete load. With --local the same files are written without Spark.

    --path also takes directories of Apache Kafka 0.8 to 4, whose broker is stopped. Their rows have
    key, timestamp, timestampType and headers beside the value, and offsets count records; control
    records and those of aborted transactions are left out.

    $ pylogctl pipeline load web --to /data/web --dry-run
    $ pylogctl pipeline load web orders --to /data/lake --date-field .ts
    $ pylogctl pipeline load web --to /data/web --from @-2d
    $ pylogctl pipeline load --path data --to /data/old --format json --local
    $ pylogctl pipeline load --path /var/lib/kafka/data --to /data/lake --local
    $ pylogctl pipeline load web --into-table delta:/data/web --spark-conf \
        spark.jars.packages=io.delta:delta-spark_4.2_2.13:4.4.0
    """
    into_table = table.target()
    if (to is None) == (into_table is None):
        raise UsageError("give either --to DIR, or --into-table NAME")
    if into_table is not None and (file_format is not None or file_size is not None):
        raise UsageError("--format and --file-size are of files; a table has its own")
    file_format = file_format or "parquet"
    has_schemas = payloads.avro_schemas is not None and file_format == "parquet"
    if payloads.avro_schemas is not None and read.decoding.decode is not None:
        raise UsageError("--avro-schemas cannot be used with --decode: brokers have the schemas")
    if payloads.avro_reader is not None and not has_schemas:
        raise UsageError("--avro-reader needs --avro-schemas and --format parquet")
    _check_cluster(env, read)
    chosen = engine.checked(env, needs_spark=to is None)
    from broker.spark.load import LoadRequest  # late: it takes PyArrow
    from pylogctl.pipeline.load import load_table, run_load
    from pylogctl.pipeline.reading import read_options

    today = datetime.fromtimestamp(env.clock.time_ms() / 1000, UTC).date().isoformat()
    found = read_options(env, topics or [], include or [], read, loss)
    common: dict[str, Any] = {
        "options": found,
        "decodes": found.decode is not None,
        "reader": found.reader_schema,
        "group": group,
        "dates": payloads.dates(today),
        "schemas": payloads.avro_schemas,
        "avro_reader": payloads.avro_reader,
        "skips_corrupt": loss.corrupt == "skip",
        "opens_envelopes": payloads.envelope,
    }
    has_start = read.start is not None
    if into_table is not None:
        from broker.spark.load_table import TableLoadRequest  # late: it takes PySpark

        load_table(env, TableLoadRequest(target=into_table, has_start=has_start, **common), engine)
        return
    assert to is not None
    request = LoadRequest(
        output=to,
        file_format=file_format,
        file_bytes=16 << 20 if file_size is None else file_size,
        rewinds=has_start,
        **common,
    )
    run_load(env, request, chosen)


@app.command(shared.OUTPUT + shared.PROGRESS + shared.DRY_RUN, exits=options.READS)
def compact(
    env: Environment,
    *,
    directory: Path = argument("DIR", "Directory of loads, as given to load --to."),
    file_size: int = outputs.option(
        "--file-size SIZE",
        "Target size of files: those under half of it are joined by topic and day.",
        default="128MiB",
    ),
    keep: int = selection.option(
        "--keep N",
        "Leave the newest N loads alone; joined loads can only be loaded again together.",
        min=0,
        default=0,
    ),
    engine: options.EngineChoice,
) -> None:
    """Join the small files of loads into one load with fewer, larger files.

    The new load takes the place of the others in one step: if the command is killed, all loads are
    as before, or joined. A query that is reading the old files fails.

    $ pylogctl pipeline compact /data/lake --dry-run
    $ pylogctl pipeline compact /data/lake --keep 24 --file-size 256MiB
    """
    chosen = engine.checked(env)
    from pylogctl.pipeline.load import run_compaction

    run_compaction(env, directory, file_size, keep, chosen)


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROGRESS + shared.CONFIRM,
    exits=options.READS,
    changes=False,  # only with --to-topic
    first="-t --path --from --until --json-payloads --schema --into --to-topic --into-table "
    "--master",
)
def sql(
    env: Environment,
    *,
    query: str = argument("QUERY", "A statement of Spark's SQL."),
    topic: list[str] | None = selection.option(
        "-t, --topic TOPIC",
        "Topic to query, a view of its name (repeatable). Default with --path: all its topics.",
    ),
    read: options.ReadChoice,
    json: bool = inputs.flag(
        "--json-payloads",
        "Payloads are JSON objects: make columns of their fields. Reads the messages twice.",
    ),
    schema: str | None = inputs.option(
        "--schema DDL",
        "Payloads are JSON objects with these fields, such as 'id BIGINT, user STRING'.",
    ),
    loss: options.LossChoice,
    target: options.TargetChoice,
    spark: options.SparkChoice,
) -> None:
    r"""Query topics with SQL.

    Each topic is a view of its name, in backquotes if the name has a dot or a hyphen, with the
    columns topic, partition, offset, next_offset, inner_index, value, crc, and text: the payload as
    UTF-8. If the query names it, there is envelope too, with the fields timestamp, host, producer
    and sequence. With --json-payloads or --schema fields of JSON are columns; one with the name of
    another column, or with the empty name, is prefixed with `json_`. Times are in UTC, and binary
    values in base64.

    Topics in files of Apache Kafka (--path) have the columns of Spark's Kafka source instead: key,
    value, topic, partition, offset, timestamp, timestampType and headers, and text.

    A field that has integers and fractions is a DOUBLE with --json-payloads, which holds integers
    up to 2^53 exactly; a warning names the fields with larger ones. Give --schema to keep these,
    with DECIMAL(38, 9) for instance.

    Spark's own parser checks the statement as soon as Spark has started, which takes seconds, and
    before any message is read.

    $ pylogctl pipeline sql "SELECT count(*) FROM web WHERE text LIKE '%error%'" -t web
    $ pylogctl pipeline sql "SELECT user, sum(price) AS total FROM orders GROUP BY user" -t \
        orders --json-payloads --sort -total
    $ pylogctl pipeline sql "SELECT * FROM web" --path /var/lib/pylog --into web.parquet
    $ pylogctl pipeline sql "SELECT partition, max(timestamp) FROM web GROUP BY partition" \
        --path /var/lib/kafka/data
    """
    if json and schema is not None:
        raise UsageError("--json-payloads and --schema cannot be used together")
    job = _checked(options.Job(env, topic or [], read, loss, target, spark))
    from pylogctl.pipeline.jobs import run_sql

    run_sql(job, query, json=json, schema=schema)


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROGRESS + shared.CONFIRM,
    exits=options.READS,
    changes=False,  # only with --to-topic
    first="--size --session --key-field --time-field --pattern --top --path --stream "
    "--into --to-topic",
)
def window(
    env: Environment,
    *,
    topics: options.Topics = None,
    windows: options.WindowChoice,
    events: options.EventChoice,
    read: options.ReadChoice,
    loss: options.LossChoice,
    stream: options.StreamChoice,
    target: options.TargetChoice,
    spark: options.SparkChoice,
) -> None:
    r"""Count messages per key in windows of the messages' own time, and sum a number of them.

    Messages without a time are not counted. Records in files of Apache Kafka (--path) have a key
    and a time, which count where no option names others. A stream emits each window once, when the
    watermark has passed its end; later messages of that window are not counted. A restarted stream
    continues from its checkpoint: files have each window once, a topic or standard output at least
    once. A checkpoint can only be used with the options it was made with, except --watermark;
    --from can be left out.

    $ pylogctl pipeline window web --size 1m --key-field .status --time-field .time
    $ pylogctl pipeline window sshd --size 1d --sort -messages --time-format '%b %d %T' --pattern \
        '^(?P<time>\w+ +\d+ [\d:]+) .*Failed password .* from (?P<key>\S+)'
    $ pylogctl pipeline window orders --size 1h --top 10 --top-by sum --key-field .user \
        --time-field .ts --value-field .price
    $ pylogctl pipeline window web --size 1h --path /var/lib/kafka/data
    $ pylogctl pipeline window web --session 30m --key-field .user --time-field .time --stream \
        --watermark 10m --checkpoint /var/lib/sessions --to-topic sessions
    """
    windows.check(stream, target)
    if not read.paths:
        events.check_time()
    job = _checked(options.Job(env, topics or [], read, loss, target, spark, stream))
    from pylogctl.pipeline.jobs import run_window

    run_window(job, events, windows)


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROGRESS + shared.CONFIRM,
    exits=options.READS,
    changes=False,  # only with --to-topic
    first="--table --key-field --time-field --pattern --within --path --stream "
    "--into --to-topic --master",
)
def join(
    env: Environment,
    *,
    topic: str = argument("TOPIC", "Topic to read."),
    other: str | None = argument("[OTHER]", "Topic to join with.", default=None),
    joining: options.JoinChoice,
    events: options.EventChoice,
    read: options.ReadChoice,
    loss: options.LossChoice,
    stream: options.StreamChoice,
    target: options.TargetChoice,
    spark: options.SparkChoice,
) -> None:
    r"""Join the messages of a topic with those of another topic, or with a table.

    Keys are extracted from payloads and compared as text. Where the topics name them differently,
    --key-field and --time-field have two, such as .id,.order; one --pattern may match both. A join
    of two streams needs --watermark and --within; without them Spark would keep all messages for
    ever.

    $ pylogctl pipeline join orders payments --key-field .order --time-field .ts --within 1h
    $ pylogctl pipeline join web --table users.csv --table-column id --key-field .user --how left \
        --output jsonl
    $ pylogctl pipeline join orders payments --key-field .order --time-field .ts --within 1h \
        --stream --watermark 10m --checkpoint /var/lib/paid --into paid.parquet
    """
    joining.check(topic, other, events, is_stream=stream.stream)
    topics = [topic] if other is None else [topic, other]
    job = options.Job(env, topics, read, loss, target, spark, stream)
    job = _checked(job, keeps_events=other is not None)
    from pylogctl.pipeline.jobs import run_join

    run_join(job, events, joining)


@app.command(
    shared.OUTPUT + shared.CONNECTION,
    exits=(*options.READS, ExitStatus.PARTIAL, ExitStatus.THRESHOLD, ExitStatus.UNSUPPORTED),
)
def audit(
    env: Environment,
    *,
    audit_topic: AuditTopicArgument,
    choice: options.AuditChoice,
) -> None:
    """Compare the messages in topics, and in loads of them, with the counts of the producers.

    A window is compared when the grace time after its end has passed. Messages missing from the
    loads are late until the loads have reached the end of the topic, and then lost.

    $ pylogctl pipeline audit audit --time-field .ts --fail-above 0
    $ pylogctl pipeline audit audit --load /data/lake --include 'web|orders' --output json
    """
    choice.spark.check(env)
    from pylogctl.pipeline.audit import run_audit

    run_audit(env, audit_topic, choice)


@app.command(
    shared.OUTPUT + shared.CONNECTION,
    exits=(*options.READS, ExitStatus.TIMEOUT, ExitStatus.THRESHOLD),
)
def latency(
    env: Environment,
    *,
    choice: options.LatencyChoice,
    mirror: str | None = inputs.option(
        "--mirror CLUSTER",
        "Follow messages to the same topics there: a context, zk:2181, or brokers=host:port.",
    ),
) -> int:
    """Measure how long new messages take from their producers to broker, consumer, mirror and load.

    Only messages with an envelope tell when they were made. Committed offsets and loads are looked
    at five times a second. Where clocks differ the times do as well: those below zero are shown.

    $ pylogctl pipeline latency orders
    $ pylogctl pipeline latency orders --group billing --load /data/lake --for 5m --fail-above 10s
    $ pylogctl pipeline latency orders web --mirror zk2:2181 -n 1000 --output json
    """
    from pylogctl.pipeline.latency import run

    return run(env, None if mirror is None else at_cluster(env, mirror), choice)


@app.command(
    shared.OUTPUT + shared.PROGRESS,
    exits=(
        ExitStatus.FAILED,
        ExitStatus.NOT_FOUND,
        ExitStatus.PARTIAL,
        ExitStatus.CORRUPT,
        ExitStatus.CONFIG,
    ),
)
def verify(
    env: Environment,
    files: list[Path] = argument(
        "FILE|DIR...", "Segment files or archives of them (.gz), directories of these.", default=...
    ),
    deep: shared.DeepOption = True,
    *,
    spark: options.SparkChoice,
) -> int:
    """Validate every byte of segment files, on many machines in parallel.

    The output and exit statuses are those of `log verify`. All machines must have access to the
    files under the same paths.

    $ pylogctl pipeline verify /data/kafka --master spark://host:7077
    $ pylogctl pipeline verify archive/*/*.pylog.gz --output jsonl
    """
    spark.check(env)
    from pylogctl.pipeline.jobs import verify_files

    return verify_files(env, files, spark, deep)


def _checked(job: options.Job, *, keeps_events: bool = True) -> options.Job:
    """Validate how a job runs and where its results go, and that Spark can be started."""
    env, read, target, is_stream = job.env, job.read, job.target, job.stream.stream
    job.stream.check(is_bounded=keeps_events)
    target.check()
    _check_cluster(env, read, target)
    if not is_stream:
        target.check_new()
    elif read.paths or read.until is not None:
        raise UsageError("--stream cannot be used with --path or --until")
    elif env.output == "json" and target.is_stdout:
        raise UsageError("a stream cannot be one JSON document; use --output jsonl")
    job.spark.check(env)
    return job


def _check_cluster(
    env: Environment, read: options.ReadChoice, target: options.TargetChoice = options.NO_TARGET
) -> None:
    """Refuse options that name a cluster where only segment files are used."""
    named = {
        "PYLOGCTL_BROKER": ",".join(env.settings.brokers),
        "PYLOGCTL_ZOOKEEPER": env.settings.zookeeper,
    }
    # environment variables that name a cluster are ignored
    by_option = [text for name, text in named.items() if text and text != env.environ.get(name)]
    if read.paths and by_option and target.to_topic is None:
        raise UsageError("--path reads files; it cannot be used with --broker or --zookeeper")

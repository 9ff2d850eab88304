"""Streams of pipeline jobs: run a query, write its batches, and bind its checkpoint to it.

A stream into files writes one file for each batch, by a rename, so that any reader sees a batch
whole or not at all; a batch that is run again after a kill replaces its file. The checkpoint
records the options of its query; a directory of files records the query that writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from broker.exposition import exposition_text
from broker.files import write_atomically
from broker.metrics import ManagedObject, Reading, counter, waits
from broker.metrics_server import served_metrics
from broker.spark.jobs import cause_of
from broker.spark.options import WriteOptions
from broker.spark.source import FORMAT
from broker.spark.tables import start_stream
from broker.stats import ELECTION_BOUNDS_S, Histogram
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.render import render
from pylogctl.pipeline.options import StreamChoice, TargetChoice
from pylogctl.pipeline.reading import StreamOffsets, cluster_of, connection_of
from pylogctl.pipeline.results import (
    collected,
    document_of,
    records_of,
    send_rows,
    to_send,
    write_file,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_POLL_S = 0.2
_QUERY_NAME = "_pylogctl.json"  # in a checkpoint: the options that the query was started with
_OWNER_NAME = "_stream.json"  # in a directory of files: the query's id, as in the checkpoint
_QUERY_ID = "sql.streaming.queryId"

_WriteBatch = Callable[["DataFrame", int], None]
CountLate = Callable[[StreamOffsets, StreamOffsets, int], int]
START = "--from"  # may be left out when a query is continued
Identity = Mapping[str, str]  # the options that state and offsets in a checkpoint depend on


def check_checkpoint(target: TargetChoice, choice: StreamChoice, identity: Identity) -> None:
    """Refuse a checkpoint, or a directory of files, that belongs to another query."""
    assert choice.checkpoint is not None
    path = choice.checkpoint / _QUERY_NAME
    if path.exists():
        _check_identity(choice.checkpoint, _document(path), identity)
    if target.into is not None and target.into.exists():
        _check_owner(target.into, _query_id(choice.checkpoint), choice.checkpoint)


def _check_identity(checkpoint: Path, begun: Mapping[str, Any], identity: Identity) -> None:
    for name in sorted(begun.keys() | identity.keys()):
        if name == START and name not in identity:
            continue  # the query continues at the offsets in the checkpoint
        if begun.get(name) != identity.get(name):
            there, wanted = (one.get(name, "not given") for one in (begun, identity))
            raise CliError(
                ExitStatus.CONFLICT,
                f"the checkpoint '{checkpoint}' is of a stream with {name} {there}, not {wanted}",
                "give the options of that stream, or another directory",
            )


def _check_owner(into: Path, query_id: str | None, checkpoint: Path) -> None:
    """Refuse a directory unless it is empty, or has files of the query with this id."""
    if not into.is_dir():
        raise CliError(ExitStatus.CONFLICT, f"'{into}' is a file; a stream needs a directory")
    path = into / _OWNER_NAME
    if path.exists():
        if _document(path).get("query") == query_id:
            return
        text = f"'{into}' has files of a stream with another checkpoint than '{checkpoint}'"
    elif any(into.iterdir()):
        text = f"'{into}' has files that are not of this stream"
    else:
        return
    raise CliError(ExitStatus.CONFLICT, text, "name another directory")


def _query_id(checkpoint: Path) -> str | None:
    path = checkpoint / "metadata"
    return str(_document(path).get("id")) if path.exists() else None


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise CliError(ExitStatus.CONFLICT, f"'{path}' is damaged: {error}") from error
    return found if isinstance(found, dict) else {}


def run_stream(
    env: Environment,
    table: DataFrame,
    target: TargetChoice,
    choice: StreamChoice,
    name: str,
    identity: Identity,
    each_batch: Callable[[DataFrame], DataFrame] | None = None,
    count_late: CountLate | None = None,
) -> None:
    """Run a streaming query until it ends or the process is asked to stop by a signal.

    An interrupted micro-batch is run again when the query is restarted: its rows can be duplicated
    on standard output and in topics, but not in files and tables.

    Args:
        env: has the output format, and the address of the cluster.
        table: the rows of the stream.
        target: validated options.
        choice: validated options.
        name: name of the document on standard output.
        identity: stored in the checkpoint; see `check_checkpoint`.
        each_batch: converts the rows of a batch before they are written, not for tables.
        count_late: counts the late events between the start and end offsets of a batch, by a
            watermark in ms; None if Spark counts each of them.
    """
    assert choice.checkpoint is not None
    into_table = target.target()
    has_writer = target.to_topic is not None and each_batch is None
    sink = None
    if into_table is None and not has_writer:
        sink = _Sink(_batch_writer(env, table, target, name), each_batch)
    writer = _writer(env, table, target, sink).option("checkpointLocation", str(choice.checkpoint))
    if choice.exit_at_end:
        writer = writer.trigger(availableNow=True)
    late = _LateEvents(env, choice, count_late)
    counts = StreamCounts(late)
    with graceful_stop() as stop, ExitStack() as stack:
        if choice.metrics_port is not None:
            serving = served_metrics(partial(exposition, counts, name), choice.metrics_port)
            env.note(f"metrics at {stack.enter_context(serving)}")
        if into_table is None:
            query = writer.start()
        else:
            query = start_stream(table.sparkSession, writer, into_table, table.schema)
        try:
            try:
                _bind(choice.checkpoint, identity)
                _wait(query, stop, counts)
                if not stop.is_set:
                    _raise_failure(query, sink)
            finally:
                query.stop()
        except (Py4JError, ConnectionError):
            if not stop.is_set:  # else the signal may have ended the JVM, too
                raise
        finally:
            late.tell()


def _bind(checkpoint: Path, identity: Identity) -> None:
    """Store the options of a query in a new checkpoint."""
    path = checkpoint / _QUERY_NAME
    if not path.exists():
        write_atomically(path, (json.dumps(dict(identity), indent=1) + "\n").encode())


def _wait(query: StreamingQuery, stop: StopRequest, counts: StreamCounts) -> None:
    while query.isActive and not stop.is_set:
        stop.wait(_POLL_S)
        counts.note(query)
    counts.note(query, is_stopping=stop.is_set)


class StreamCounts:
    """Counts the batches of a query, and the messages in them."""

    def __init__(self, late: _LateEvents) -> None:
        self._late = late
        self.batch_times = Histogram(ELECTION_BOUNDS_S)
        self.message_count = 0
        self._newest_id = -1

    @property
    def late_count(self) -> int:
        """Return how many events came later than the watermark allows."""
        return self._late.count

    def note(self, query: StreamingQuery, *, is_stopping: bool = False) -> None:
        """Count the latest batches; late events without reading if the command is to end."""
        newest = query.lastProgress
        # Spark also reports triggers that found nothing to do
        if newest is None or newest.batchId <= self._newest_id or not _has_run(newest):
            return
        found = [newest]
        if newest.batchId > self._newest_id + 1:  # the others cost many calls of Java
            found = [one for one in query.recentProgress if one.batchId > self._newest_id]
        self._newest_id = newest.batchId
        for one in filter(_has_run, found):
            self.batch_times.record(one.batchDuration / 1000)
            self.message_count += one.numInputRows
            self._late.note(one, is_stopping=is_stopping)


def _has_run(batch: StreamingQueryProgress) -> bool:
    return "addBatch" in batch.durationMs


class _LateEvents:
    """Counts events that are later than the watermark allows, and so are in no result.

    Spark counts them after it has joined those of one batch, window and key; then `count_late`
    reads the messages of batches with late events again.
    """

    def __init__(
        self, env: Environment, choice: StreamChoice, count_late: CountLate | None
    ) -> None:
        assert choice.checkpoint is not None
        self._env = env
        self._watermark = choice.watermark
        self._batches = choice.checkpoint / "offsets"
        self._count_late = count_late
        self.count = 0
        self._is_exact = True

    def note(self, batch: StreamingQueryProgress, *, is_stopping: bool) -> None:
        """Count the late events of a batch, without reading if the command is to end."""
        count = sum(state.numRowsDroppedByWatermark for state in batch.stateOperators)
        if not count:
            return
        if not self.count:
            self._env.warn(
                f"events came later than --watermark {self._watermark}: they do not count"
            )
        if self._count_late is not None:
            exact = None if is_stopping else self._read_again(batch, self._count_late)
            self._is_exact &= exact is not None
            count = exact or count
        self.count += count

    def _read_again(self, batch: StreamingQueryProgress, count_late: CountLate) -> int | None:
        """Return how many events of a batch were late, None if they cannot be read any more."""
        (source,) = batch.sources
        starts, ends = (json.loads(text) for text in (source.startOffset, source.endOffset))
        try:
            return count_late(starts, ends, self._late_before_ms(batch.batchId))
        except (PySparkException, OSError) as error:
            self._env.trace(1, f"late events of batch {batch.batchId} are not counted: {error}")
            return None

    def _late_before_ms(self, batch_id: int) -> int:
        """Return the watermark by which events of a batch are late: that of the batch before."""
        lines = (self._batches / str(batch_id - 1)).read_text().splitlines()
        return int(json.loads(lines[1])["batchWatermarkMs"])

    def tell(self) -> None:
        """Warn of the total, unless it is 0."""
        if self.count:
            bound = "" if self._is_exact else "at least "
            self._env.warn(
                f"{bound}{self.count} events came later than --watermark "
                f"{self._watermark}, and were not counted or joined"
            )


STREAM: ManagedObject[StreamCounts] = ManagedObject(
    "Stream.{query}",
    waits("Batch", lambda it: [it.batch_times],
        "how long batches took", series="stream_batch_seconds"),
    counter("Messages", lambda it: it.message_count,
        "messages in these batches", series="stream_messages_total"),
    counter("LateMessages", lambda it: it.late_count,
        "events that came later than the watermark allows", series="stream_late_messages_total"),
)  # fmt: skip


def exposition(counts: StreamCounts, name: str) -> str:
    """Return the metrics of a stream in Prometheus' format; `name` is that of its document."""
    query = name.removeprefix("pipeline.").partition("/")[0]
    return exposition_text([Reading(STREAM, counts, (query,))])


class _Sink:
    """Writes the micro-batches of a query, and keeps the exception that ended it."""

    def __init__(
        self, write: _WriteBatch, each_batch: Callable[[DataFrame], DataFrame] | None
    ) -> None:
        self._write = write
        self._each_batch = each_batch
        self.failure: Exception | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        try:
            self._write(batch if self._each_batch is None else self._each_batch(batch), batch_id)
        except Exception as error:
            self.failure = error  # Spark's exception has only its text
            raise


def _batch_writer(
    env: Environment, table: DataFrame, target: TargetChoice, name: str
) -> _WriteBatch:
    if target.to_topic is not None:
        return lambda batch, _: send_rows(env, batch, str(target.to_topic))
    return _Printer(env, table, name) if target.into is None else _BatchFiles(target.into)


class _Printer:
    """Writes micro-batches to standard output, the header once."""

    def __init__(self, env: Environment, table: DataFrame, name: str) -> None:
        self._env = env.changed(settings=env.settings._replace(output=env.output))
        self._document = document_of(table, name, "")

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = collected(batch)
        if not rows:
            return
        records = records_of(batch.schema, rows, is_json=self._env.output == "jsonl")
        render(self._env, self._document, records, is_part=True)
        self._env.flush()
        settings = self._env.settings._replace(no_header=True)
        self._env = self._env.changed(settings=settings)


class _BatchFiles:
    """Writes each micro-batch that has rows as a file of a directory."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._is_owned = False

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        if not self._is_owned:
            query_id = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
            self._own(query_id)
        path = self._into / f"batch-{batch_id:010d}{self._into.suffix.lower()}"
        write_file(batch, path, keeps_empty=False)

    def _own(self, query_id: str | None) -> None:
        self._into.mkdir(parents=True, exist_ok=True)
        path = self._into / _OWNER_NAME
        if not path.exists():
            write_atomically(path, json.dumps({"query": query_id}).encode())
        self._is_owned = True


def _writer(
    env: Environment, table: DataFrame, target: TargetChoice, sink: _Sink | None
) -> DataStreamWriter:
    if sink is not None:
        function: Any = sink
        return table.writeStream.foreachBatch(function)
    if target.to_topic is None:
        return table.writeStream
    options = WriteOptions(
        cluster_of(env), target.to_topic, connection=connection_of(env)
    ).to_options()
    return to_send(table).writeStream.format(FORMAT).options(**options)


def _raise_failure(query: StreamingQuery, sink: _Sink | None) -> None:
    if sink is not None and sink.failure is not None:
        raise sink.failure
    failure = query.exception()
    if failure is not None:
        raise cause_of(failure) from failure

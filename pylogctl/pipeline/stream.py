"""Streams of pipeline jobs: run a query, write its batches, and bind its checkpoint to it.

A stream into files writes one file for each batch, by a rename, so that any reader sees a batch
whole or not at all; a batch that is run again after a kill replaces its file. The checkpoint
records the options of its query; a directory of files records the query that writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from broker.exposition import exposition_text
from broker.files import write_atomically
from broker.metrics import ManagedObject, Reading, counter, waits
from broker.metrics_server import served_metrics
from broker.spark.jobs import cause_of
from broker.spark.source import FORMAT
from broker.spark.tables import start_stream
from broker.stats import ELECTION_BOUNDS_S, Histogram
from pylogctl.cli.columns import Document
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.render import render
from pylogctl.pipeline import results
from pylogctl.pipeline.options import Job
from pylogctl.pipeline.reading import StreamOffsets

_POLL_S = 0.2
_QUERY_NAME = "_pylogctl.json"  # in a checkpoint: the options that the query was started with
_OWNER_NAME = "_stream.json"  # in a directory of files: the query's id, as in the checkpoint
_QUERY_ID = "sql.streaming.queryId"

_WriteBatch = Callable[[DataFrame, int], None]
CountLate = Callable[[StreamOffsets, StreamOffsets, int], int]
START = "--from"  # may be left out when a query is continued
Identity = Mapping[str, str]  # the options that state and offsets in a checkpoint depend on


def check_checkpoint(job: Job, identity: Identity) -> None:
    """Refuse a checkpoint, or a directory of files, that belongs to another query."""
    checkpoint, into = _checkpoint(job), job.target.into
    path = checkpoint / _QUERY_NAME
    if path.exists():
        _check_identity(checkpoint, _document(path), identity)
    if into is not None and into.exists():
        metadata = checkpoint / "metadata"
        query_id = str(_document(metadata).get("id")) if metadata.exists() else None
        _check_owner(into, query_id, checkpoint)


def _checkpoint(job: Job) -> Path:
    assert job.stream.checkpoint is not None
    return job.stream.checkpoint


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


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise CliError(ExitStatus.CONFLICT, f"'{path}' is damaged: {error}") from error
    return found if isinstance(found, dict) else {}


def run_stream(
    job: Job,
    table: DataFrame,
    name: str,
    identity: Identity,
    each_batch: Callable[[DataFrame], DataFrame] | None = None,
    count_late: CountLate | None = None,
) -> None:
    """Run a streaming query until it ends or the process is asked to stop by a signal.

    An interrupted micro-batch is run again when the query is restarted: its rows can be duplicated
    on standard output and in topics, but not in files and tables.

    Args:
        job: has validated options.
        table: the rows of the stream.
        name: name of the document on standard output.
        identity: stored in the checkpoint; see `check_checkpoint`.
        each_batch: converts the rows of a batch before they are written, not for tables.
        count_late: counts the late events between the start and end offsets of a batch, by a
            watermark in ms; None if Spark counts each of them.
    """
    env, checkpoint, into_table = job.env, _checkpoint(job), job.target.target()
    sink = None
    if into_table is not None:
        writer = table.writeStream
    elif job.target.to_topic is not None and each_batch is None:
        options = results.write_options(env, job.target.to_topic)
        writer = results.to_send(table).writeStream.format(FORMAT).options(**options)
    else:
        sink = _Sink(_batch_writer(job, table, name), each_batch)
        function: Any = sink  # its type in PySpark is a function's
        writer = table.writeStream.foreachBatch(function)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if job.stream.exit_at_end:
        writer = writer.trigger(availableNow=True)
    counts = StreamCounts(job, count_late)
    with graceful_stop() as stop, ExitStack() as stack:
        if job.stream.metrics_port is not None:
            serving = served_metrics(partial(exposition, counts, name), job.stream.metrics_port)
            env.note(f"metrics at {stack.enter_context(serving)}")
        if into_table is None:
            query = writer.start()
        else:
            query = start_stream(table.sparkSession, writer, into_table, table.schema)
        try:
            try:
                _bind(checkpoint, identity)
                while query.isActive and not stop.is_set:
                    stop.wait(_POLL_S)
                    counts.note(query)
                counts.note(query, is_stopping=stop.is_set)
                if not stop.is_set:
                    _raise_failure(query, sink)
            finally:
                query.stop()
        except (Py4JError, ConnectionError):
            if not stop.is_set:  # else the signal may have ended the JVM, too
                raise
        finally:
            counts.tell()


def _bind(checkpoint: Path, identity: Identity) -> None:
    """Store the options of a query in a new checkpoint."""
    path = checkpoint / _QUERY_NAME
    if not path.exists():
        write_atomically(path, (json.dumps(dict(identity), indent=1) + "\n").encode())


@dataclass(eq=False)
class StreamCounts:
    """Counts the batches of a query, the messages in them, and those that no result has.

    These are later than the watermark allows. Spark counts them after it has joined those of one
    batch, window and key; then `count_late` reads the messages of batches with late ones again.
    """

    job: Job
    count_late: CountLate | None
    batch_times: Histogram = field(default_factory=lambda: Histogram(ELECTION_BOUNDS_S), init=False)
    message_count: int = field(default=0, init=False)
    late_count: int = field(default=0, init=False)
    _is_exact: bool = field(default=True, init=False)  # `late_count` is
    _newest_id: int = field(default=-1, init=False)

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
            self._note_late(one, is_stopping=is_stopping)

    def _note_late(self, batch: StreamingQueryProgress, *, is_stopping: bool) -> None:
        count = sum(state.numRowsDroppedByWatermark for state in batch.stateOperators)
        if not count:
            return
        if not self.late_count:
            self.job.env.warn(
                f"events came later than --watermark {self.job.stream.watermark}: they do not count"
            )
        if self.count_late is not None:
            exact = None if is_stopping else self._read_again(batch, self.count_late)
            self._is_exact &= exact is not None
            count = exact or count
        self.late_count += count

    def _read_again(self, batch: StreamingQueryProgress, count_late: CountLate) -> int | None:
        """Return how many events of a batch were late, None if they cannot be read any more."""
        (source,) = batch.sources
        starts, ends = (json.loads(text) for text in (source.startOffset, source.endOffset))
        # late by the watermark of the batch before
        before = _checkpoint(self.job) / "offsets" / str(batch.batchId - 1)
        try:
            watermark_ms = int(json.loads(before.read_text().splitlines()[1])["batchWatermarkMs"])
            return count_late(starts, ends, watermark_ms)
        except (PySparkException, OSError) as error:
            text = f"late events of batch {batch.batchId} are not counted: {error}"
            self.job.env.trace(1, text)
            return None

    def tell(self) -> None:
        """Warn of the number of late events, unless it is 0."""
        if self.late_count:
            bound = "" if self._is_exact else "at least "
            self.job.env.warn(
                f"{bound}{self.late_count} events came later than --watermark "
                f"{self.job.stream.watermark}, and were not counted or joined"
            )


def _has_run(batch: StreamingQueryProgress) -> bool:
    return "addBatch" in batch.durationMs


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


@dataclass(eq=False)
class _Sink:
    """Writes the micro-batches of a query, and keeps the exception that ended it."""

    write: _WriteBatch
    each_batch: Callable[[DataFrame], DataFrame] | None
    failure: Exception | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        try:
            self.write(batch if self.each_batch is None else self.each_batch(batch), batch_id)
        except Exception as error:
            self.failure = error  # Spark's exception has only its text
            raise


def _batch_writer(job: Job, table: DataFrame, name: str) -> _WriteBatch:
    if job.target.to_topic is not None:
        return lambda batch, _: results.send_rows(job.env, batch, str(job.target.to_topic))
    if job.target.into is not None:
        return partial(_write_batch_file, job.target.into)
    return _Printer(job.env, results.document_of(table, name, ""))


@dataclass(eq=False)
class _Printer:
    """Writes micro-batches to standard output, the header once."""

    env: Environment
    document: Document

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = results.collected(batch)
        if not rows:
            return
        records = results.records_of(batch.schema, rows, is_json=self.env.output == "jsonl")
        render(self.env, self.document, records, is_part=True)
        self.env.flush()
        # the format of the first batch, without a header
        settings = self.env.settings._replace(output=self.env.output, no_header=True)
        self.env = self.env.changed(settings=settings)


def _write_batch_file(into: Path, batch: DataFrame, batch_id: int) -> None:
    """Write a micro-batch, if it has rows, as a file of a directory, bound to the query."""
    into.mkdir(parents=True, exist_ok=True)
    owner = into / _OWNER_NAME
    if not owner.exists():
        query_id = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        write_atomically(owner, json.dumps({"query": query_id}).encode())
    results.write_file(
        batch, into / f"batch-{batch_id:010d}{into.suffix.lower()}", keeps_empty=False
    )


def _raise_failure(query: StreamingQuery, sink: _Sink | None) -> None:
    if sink is not None and sink.failure is not None:
        raise sink.failure
    failure = query.exception()
    if failure is not None:
        raise cause_of(failure) from failure

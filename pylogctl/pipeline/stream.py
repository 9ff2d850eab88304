"""Runs a streaming query for a command, until it is at the end or told to stop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from broker.spark.failures import cause_of
from broker.spark.source import FORMAT
from pylogctl.cli.context import Environment
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.render import render
from pylogctl.pipeline.input import cluster_options
from pylogctl.pipeline.results import document_of, for_files, records_of, to_send
from pylogctl.pipeline.target_options import StreamChoice, TargetChoice, file_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_POLL_S = 0.2


class _Printer:
    """Writes micro-batches to standard output, the header once."""

    def __init__(self, env: Environment, table: DataFrame, name: str) -> None:
        self._env = replace(env, settings=replace(env.settings, output=env.output))
        self._document = document_of(table, name, "")
        self.failure: Exception | None = None

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = batch.collect()
        if not rows:
            return
        is_json = self._env.output == "jsonl"
        try:
            records = records_of(batch.schema, rows, is_json=is_json)
            render(self._env, self._document, records)
            self._env.flush()
        except Exception as error:
            self.failure = error  # Spark would only hand on its text
            raise
        settings = replace(self._env.settings, header=False)
        self._env = replace(self._env, settings=settings)


def run_stream(
    env: Environment, table: DataFrame, target: TargetChoice, choice: StreamChoice, name: str
) -> None:
    """Run a query until it is at the end, or a signal asks to stop.

    A micro-batch that is interrupted is run again when the query is started again: what goes to
    standard output or a topic can be there twice, files have it once.

    Args:
        env: says how standard output is written, and where the cluster is.
        table: a stream.
        target: where rows go.
        choice: has the checkpoint, and whether to stop at the end.
        name: of the document on standard output.

    Raises:
        BrokerError: the query failed.
    """
    printer = _Printer(env, table, name)
    writer = _writer(env, table, target, printer).option(
        "checkpointLocation", str(choice.checkpoint)
    )
    if choice.exit_at_end:
        writer = writer.trigger(availableNow=True)
    with graceful_stop() as stop:
        query = writer.start()
        try:
            try:
                while query.isActive and not stop.is_set:
                    stop.wait(_POLL_S)
                if not stop.is_set:
                    _raise_failure(query, printer)
            finally:
                query.stop()
        except (Py4JError, ConnectionError):
            if not stop.is_set:  # else the signal may have ended the JVM, too
                raise


def _writer(
    env: Environment, table: DataFrame, target: TargetChoice, printer: _Printer
) -> DataStreamWriter:
    if target.into is not None:
        form = file_format(target.into)
        options = {"path": str(target.into)} | ({"header": "true"} if form == "csv" else {})
        return for_files(table, form).writeStream.format(form).options(**options)
    if target.to_topic is not None:
        options = {**cluster_options(env), "topic": target.to_topic}
        return to_send(table).writeStream.format(FORMAT).options(**options)
    function: Any = printer
    return table.writeStream.foreachBatch(function)


def _raise_failure(query: StreamingQuery, printer: _Printer) -> None:
    if printer.failure is not None:
        raise printer.failure
    failure = query.exception()
    if failure is not None:
        raise cause_of(failure) from failure

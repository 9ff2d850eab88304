"""Rows to topics: batch and stream.

Delivery is at least once. A row is delivered when the broker has acknowledged it as flushed, and a
task is done when all of its rows are; so rows of a task that is tried again, and of a micro-batch
that is run again, can be in their topic twice. With a staging directory tasks only prepare, and the
driver sends what those attempts made that count: then rows are sent twice only if the driver itself
ends while it sends, at the price that one process sends all.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import BinaryType, StringType, StructType

from broker.errors import ConfigError
from broker.spark.options import WriteOptions
from broker.spark.schema import TYPES
from broker.spark.sending import Sent, send_rows, send_staged, stage_rows

logger = logging.getLogger(__name__)

_TEXT = (StringType(), BinaryType())
_ACCEPTED = {"value": _TEXT, "key": _TEXT, "topic": (StringType(),), "partition": (StringType(),)}


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task delivered, or staged at a path."""

    sent: Sent
    path: Path | None


class _TopicWriter:
    """What batches and streams do alike.

    Args:
        options: of the write.
        schema: of the rows.

    Raises:
        ConfigError: the rows have no value or topic, or a column that means nothing here.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options
        self._staging: Path | None = None
        if options.staging_path is not None:
            self._staging = options.staging_path / uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task and wait until they are delivered, or stage them."""
        if self._staging is None:
            return Written(send_rows(iterator, self._options), None)
        return Written(*stage_rows(iterator, self._options, self._staging))

    def _publish(self, messages: list[WriterCommitMessage | None]) -> None:
        written = [one for one in messages if isinstance(one, Written)]
        if self._staging is not None:
            send_staged([one.path for one in written if one.path is not None], self._options)
            self._remove_staged()
        count = sum(one.sent.message_count for one in written)
        logger.info("delivered %d messages", count)

    def _give_up(self) -> None:
        self._remove_staged()
        if self._staging is None:
            logger.warning("the write failed; its topics may have some of its messages already")

    def _remove_staged(self) -> None:
        if self._staging is not None:
            shutil.rmtree(self._staging, ignore_errors=True)


class BatchWriter(_TopicWriter, DataSourceArrowWriter):
    """Writes the rows of a table to topics."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Send what is staged, on the driver; without staging all is delivered by now."""
        self._publish(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop what is staged; a log cannot take back what was sent."""
        self._give_up()


class StreamWriter(_TopicWriter, DataSourceStreamArrowWriter):
    """Writes the rows of a stream to topics."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Send what is staged, on the driver; without staging all is delivered by now."""
        self._publish(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Drop what is staged; a log cannot take back what was sent."""
        self._give_up()


def check_columns(options: WriteOptions, schema: StructType) -> None:
    """Check that rows can be sent; columns that reading gives and sending cannot use are ignored.

    Raises:
        ConfigError: a column is missing, unknown or of a type that cannot be sent.
    """
    types = {field.name: field.dataType for field in schema}
    for name, kind in types.items():
        if name in _ACCEPTED and kind not in _ACCEPTED[name]:
            wanted = " or ".join(one.simpleString() for one in _ACCEPTED[name])
            raise ConfigError(f"column '{name}' is {kind.simpleString()}; cast it to {wanted}")
        if name not in _ACCEPTED and name not in TYPES:
            raise ConfigError(f"column '{name}' cannot be sent; select {', '.join(_ACCEPTED)}")
    if "value" not in types:
        raise ConfigError("rows to send have a column 'value', of type string or binary")
    if options.topic is None and "topic" not in types:
        raise ConfigError("no topic: set the option topic, or give rows a column 'topic'")

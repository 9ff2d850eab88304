"""Rows to topics: batch and stream.

Delivery is at least once: rows of a task that is tried again, and of a micro-batch that is run
again, can be in their topic twice. A row is delivered when the broker has acknowledged it as
flushed; a task is done when all of its rows are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
from broker.spark.sending import Sent, send_rows

logger = logging.getLogger(__name__)

_TEXT = (StringType(), BinaryType())
_ACCEPTED = {"value": _TEXT, "key": _TEXT, "topic": (StringType(),), "partition": (StringType(),)}


@dataclass(frozen=True)
class Delivered(WriterCommitMessage):
    """What one task delivered."""

    sent: Sent


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of a table to topics.

    Args:
        options: of the write.
        schema: of the rows.

    Raises:
        ConfigError: the rows have no value or topic, or a column that means nothing here.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task and wait until they are delivered, on an executor."""
        return Delivered(send_rows(iterator, self._options))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Say what was delivered; there is nothing left to do."""
        logger.info("delivered %s", total(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Say that some may be delivered: a log cannot take anything back."""
        logger.warning("the write failed; its topics may have some of its messages already")


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a stream to topics.

    Args:
        options: of the write.
        schema: of the rows.

    Raises:
        ConfigError: the rows have no value or topic, or a column that means nothing here.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task and wait until they are delivered, on an executor."""
        return Delivered(send_rows(iterator, self._options))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Say what was delivered; there is nothing left to do."""
        logger.info("batch %d: delivered %s", batchId, total(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Say that some may be delivered, and will be again when the batch is run again."""
        logger.warning("batch %d failed; topics may have some of its messages already", batchId)


def total(messages: Sequence[WriterCommitMessage | None]) -> Sent:
    """Return what all tasks of a write delivered together."""
    sent = [one.sent for one in messages if isinstance(one, Delivered)]
    return Sent(sum(one.message_count for one in sent), sum(one.payload_bytes for one in sent))


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

"""Decodes payloads by the schema whose id they start with, on executors.

A process asks the brokers for each schema once, whatever its tasks; a task asks for an id that
there is no schema of once.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from broker.client.side import Side
from broker.errors import ConfigError, InvalidMessageError, SchemaMismatchError
from broker.schemas.payloads import Decoder, remembering, split, to_json
from broker.schemas.values import RegisteredSchema
from broker.spark.options import ConnectionOptions, Crc, ReadOptions, Where
from broker.spark.reading.cluster import open_cluster
from broker.spark.reading.report import Cause, Omission, OmissionReport
from broker.tools.schemas import client_of
from broker.topic import TopicPartition

PLACES = ("offset", "next_offset")
"""Columns that `Rows.decoded` needs beside the value."""


@lru_cache(maxsize=10_000)
def registered(where: Where, connection: ConnectionOptions, schema_id: int) -> RegisteredSchema:
    """Return a schema, which never changes, from the brokers."""
    with open_cluster(where, connection) as opened:
        return client_of(Side(opened.cluster, connection.connect)).get(schema_id)


class PayloadReader:
    """Decodes payloads for one task; `InvalidMessageError` for those that cannot be.

    Args:
        options: name the brokers.
        reader: id of the schema that values are resolved to; None to keep the writer's.
    """

    value_type = None  # values are JSON

    def __init__(self, options: ReadOptions, reader: int | None) -> None:
        if options.where.paths:
            raise ConfigError("schemas are those of brokers: files are read without decode")
        find = partial(registered, options.where, options.connection)
        self._decoder = Decoder(remembering(find), None if reader is None else find(reader))

    def decode(self, payload: bytes) -> tuple[int, Any]:
        """Return the id of a payload's schema, and its value."""
        try:
            return split(payload)[0], self._decoder.decode(payload)
        except SchemaMismatchError as error:
            raise InvalidMessageError(str(error)) from error


def decoded(
    batch: pa.RecordBatch,
    reader: PayloadReader,
    partition: TopicPartition,
    crc: Crc,
    report: OmissionReport,
) -> pa.RecordBatch:
    """Return rows with JSON as their values.

    What cannot be decoded is treated as damaged messages are; with `mark` and `off` it stays as it
    is.
    """
    values: list[bytes | None] = []
    is_good: list[bool] = []
    for number, payload in enumerate(batch.column("value").to_pylist()):
        value, keeps = payload, True
        try:
            value = payload if payload is None else to_json(reader.decode(payload)[1])
        except InvalidMessageError as error:
            start, end = (batch.column(name)[number].as_py() for name in PLACES)
            text = f"the message at {start} cannot be decoded: {error}"
            if crc is Crc.FAIL:
                raise InvalidMessageError(
                    f"{partition}: {text}; crc=skip leaves it out, crc=mark shows it"
                ) from error
            if crc is Crc.SKIP:
                keeps = False
                report.add(Omission(Cause.UNDECODABLE, partition, start, end, text))
        values.append(value)
        is_good.append(keeps)
    made = batch.set_column(
        batch.schema.get_field_index("value"),
        batch.schema.field("value"),
        pa.array(values, pa.binary()),
    )
    return made if all(is_good) else made.filter(pa.array(is_good))

"""The stream reader: micro-batches of byte ranges, whose ends are stored in the checkpoint.

Runs on the driver, in one process for the life of a query, with the cluster open. An offset of the
stream is a document `{"topic": {"0-0": 123}}`; it also has the creations of topics, under a name
that no topic can have: `{.., "/creations": {"topic": {"0": "ID"}}}`. The first batch with a new
partition only records its log start offset; the next batch reads it. So both ends of every range
are in the checkpoint, and a batch that is run again reads the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from broker.client.list_offsets import Watermarks
from broker.consumer.boundaries import BoundaryFinder
from broker.errors import ConfigError
from broker.spark.options import Offsets, ReadOptions, to_document
from broker.spark.reading import loss
from broker.spark.reading.cluster import OpenCluster, open_cluster, repeated
from broker.spark.reading.columns import TaskSettings
from broker.spark.reading.planner import cut_tasks, resolve
from broker.spark.reading.ranges import ByteRange, CreationIds, Reached, ReadTask, limited_ends
from broker.spark.reading.report import Omission, report_omissions
from broker.spark.reading.task_reader import read_task
from broker.spark.schema import arrow_schema
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_CREATIONS = "/creations"
_T = TypeVar("_T")
Document = dict[str, Any]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics as they grow; returns the columns of `schema`."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._settings = TaskSettings(arrow_schema(schema), options)
        self._open: OpenCluster | None = None
        self._resources = ExitStack()
        self._target: Reached | None = None
        self._latest: Document | None = None
        self._unavailable: set[TopicPartition] = set()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that executors need, without connections."""
        return {"_options": self._options, "_settings": self._settings}

    def stop(self) -> None:
        """Close all connections."""
        self._open = None
        self._resources.close()

    def initialOffset(self) -> Document:
        """Return the offsets at which a new query starts."""
        return _to_document(self._ask(self._starts))

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options set."""
        limit_bytes = self._options.max_trigger_bytes
        return ReadAllAvailable() if limit_bytes is None else ReadMaxBytes(limit_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the current high watermarks."""
        self._target = self._ask(self._ends_now)

    def latestOffset(self, start: Document, limit: ReadLimit) -> Document:
        """Return the end offsets of the next batch, which begins at `start`."""
        limit_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        begun = self._begun(start)
        return _to_document(self._ask(lambda opened: self._next_ends(opened, begun, limit_bytes)))

    def reportLatestOffset(self) -> Document | None:
        """Return the high watermarks found by the last `latestOffset`."""
        return self._latest

    def partitions(self, start: Document, end: Document) -> Sequence[InputPartition]:
        """Return the tasks of a batch, on the driver."""
        starts, ends = self._begun(start).offsets, _from_document(end)
        ranges = [
            ByteRange(partition, starts[partition], offset)
            for partition, offset in ends.offsets.items()
            if starts.get(partition, offset) < offset
        ]
        tasks = self._ask(lambda opened: self._cut(opened, ranges, ends))
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the messages of one task, on an executor."""
        return read_task(partition.value, self._settings)

    def commit(self, end: Document) -> None:
        """Do nothing: the checkpoint stores the offsets."""

    def _begun(self, start: Document) -> Reached:
        """Return the offsets that a batch begins at; a `ConfigError` if others were selected."""
        begun, selection = _from_document(start), self._options.selection
        others = sorted(one for one in begun.offsets if not selection.has_partition(one))
        if others:
            names = ", ".join(dict.fromkeys(f"'{one.topic}'" for one in others))
            given = ", ".join(f"{key}={text}" for key, text in selection.to_options().items())
            raise ConfigError(
                f"the checkpoint has offsets of topic {names}, which {given} does not select: "
                "select what the checkpoint was made with, or give another checkpointLocation"
            )
        return begun

    def _ask(self, question: Callable[[OpenCluster], _T]) -> _T:
        """Ask the cluster, reopened for each attempt, for `timeoutMs` if errors are retriable."""
        # a killed broker stays in the registry until its session expires; one that moves or
        # restarts is missing for a while
        return repeated(
            lambda: question(self._cluster()),
            self._options.connection.timeout_s,
            is_temporary=lambda error: error.is_retriable,
            between=self.stop,
        )

    def _cluster(self) -> OpenCluster:
        if self._open is None:
            cluster = open_cluster(self._options.where, self._options.connection)
            self._open = self._resources.enter_context(cluster)
        return self._open

    def _starts(self, opened: OpenCluster) -> Reached:
        options = self._options
        found = [
            resolve(partition, options, opened.positions)
            for partition in opened.existing(options.selection)
        ]
        self._accept_loss([omission for one in found for omission in one.omissions])
        starts = {one.range.partition: one.range.start for one in found}
        return Reached(starts, opened.positions.creation_ids(starts))

    def _ends_now(self, opened: OpenCluster) -> Reached:
        ends = {key: found.high_watermark for key, found in self._watermarks(opened).items()}
        return Reached(ends, opened.positions.creation_ids(ends))

    def _watermarks(self, opened: OpenCluster) -> dict[TopicPartition, Watermarks]:
        partitions = opened.readable(self._options.selection)
        return {partition: opened.positions.watermarks(partition) for partition in partitions}

    def _next_ends(self, opened: OpenCluster, reached: Reached, limit_bytes: int | None) -> Reached:
        begun = reached.offsets
        present = self._watermarks(opened)
        creation_ids = opened.positions.creation_ids(present)
        self._latest = to_document({key: found.high_watermark for key, found in present.items()})
        ends = self._kept(opened, begun, present)
        pending: list[ByteRange] = []
        for partition, found in present.items():
            first = found.log_start
            if lost := loss.since_reached(partition, reached, found, creation_ids):
                self._accept_loss([lost])
                ends[partition] = first  # read by the next batch, which starts there
                continue
            if self._target is not None and partition not in self._target.offsets:
                if partition in begun:  # not in the target: keep its offset
                    ends[partition] = begun[partition]
                continue
            readable = self._readable(partition, found, creation_ids)
            start = begun.get(partition, first)
            ends[partition] = start
            if partition in begun and max(start, first) < readable:
                pending.append(ByteRange(partition, max(start, first), readable))
        ends |= _limited(opened.positions, pending, limit_bytes)
        return Reached(ends, {**reached.creation_ids, **creation_ids})

    def _readable(
        self, partition: TopicPartition, found: Watermarks, creation_ids: CreationIds
    ) -> int:
        """Return the end of reading: the high watermark, or the one `availableNow` began with."""
        if self._target is None:
            return found.high_watermark
        target = self._target.offsets[partition]
        is_former = bool(self._target.of_former_topics(creation_ids, [partition]))
        if self._target.is_known(partition) and not is_former:
            loss.check_reached(partition, target, found)
        return min(target, found.high_watermark)

    def _kept(
        self, opened: OpenCluster, begun: Offsets, present: Container[TopicPartition]
    ) -> Offsets:
        """Return the offsets of partitions that are absent because their broker is down."""
        missing = {key: offset for key, offset in begun.items() if key not in present}
        if not missing:
            self._unavailable.clear()
            return {}
        live = {broker.id for broker in opened.cluster.brokers()}
        absent = opened.cluster.absent_homes({one.topic for one in missing})
        kept = {
            key: offset
            for key, offset in missing.items()
            if key.home not in live or key.home in absent.get(key.topic, ())
        }
        self._accept_loss(
            [loss.vanished(key, missing[key]) for key in missing.keys() - kept.keys()]
        )
        for partition in sorted(kept.keys() - self._unavailable):
            logger.warning("%s waits for a broker that leads it", partition)
        self._unavailable = set(kept)
        return kept

    def _cut(
        self, opened: OpenCluster, wanted: Sequence[ByteRange], ends: Reached
    ) -> list[ReadTask]:
        """Return the tasks of ranges; `ends` are their last offsets, with the creations."""
        positions = opened.positions
        partitions = [one.partition for one in wanted]
        former = ends.of_former_topics(positions.creation_ids(partitions), partitions)
        gone = [one for one in wanted if one.partition in former]
        self._accept_loss([loss.range_of_former_topic(one) for one in gone])
        found = []
        for one in wanted:
            if one in gone:
                continue
            watermarks = positions.watermarks(one.partition)
            if ends.is_known(one.partition):
                loss.check_reached(one.partition, one.end, watermarks)
            found.append(loss.clip(one, watermarks))
        self._accept_loss([omission for one in found for omission in one.omissions])
        return cut_tasks([one.range for one in found], opened, self._options)

    def _accept_loss(self, omissions: Sequence[Omission]) -> None:
        """Report lost bytes; fail if `failOnDataLoss` is set."""
        loss.refuse(omissions, self._options)
        report_omissions(self._options.report_path, omissions)


def _to_document(reached: Reached) -> Document:
    offsets, created = reached.to_document().values()
    return {**offsets, _CREATIONS: created} if created else offsets


def _from_document(document: Document) -> Reached:
    offsets = {name: found for name, found in document.items() if name != _CREATIONS}
    return Reached.from_document({"offsets": offsets, "creations": document.get(_CREATIONS, {})})


def _limited(
    positions: BoundaryFinder, pending: list[ByteRange], limit_bytes: int | None
) -> Offsets:
    if limit_bytes is None:
        return {one.partition: one.end for one in pending}
    starts = {one.partition: one.start for one in pending}
    return limited_ends(
        pending,
        limit_bytes,
        lambda key, position: positions.boundary_before(key, position, known=starts[key]),
        lambda key, position: positions.boundary_after(key, position, known=starts[key]),
    )

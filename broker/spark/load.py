"""Loads: topics into files, each message once.

    options = parse_read_options({"zk": "localhost:2181", "subscribe": "web"})
    request = LoadRequest(Path("/data/lake"), options)
    manifest = run_load(spark, request)  # or without Spark: run_load(LocalProcesses(), request)
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    spark.read.parquet("/data/lake/loads")  # else the topics 007 and 7 would be one

Each run loads the messages since the last one. The offsets are stored in the output and become
visible together with the data: see `loading.output`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from broker.clock import Clock, SystemClock
from broker.errors import ConfigError
from broker.spark.jobs import OnProgress, TaskEngine, run_tasks
from broker.spark.loading.avro import SchemaRegistry
from broker.spark.loading.files import FileFormat, StoredFile, join_files, small_file_groups
from broker.spark.loading.output import LoadedFile, LoadOutput, Manifest
from broker.spark.loading.plan import LoadPlan, plan_load
from broker.spark.loading.task import LoadParameters, load_range
from broker.spark.options import ReadOptions


@dataclass(frozen=True, slots=True)
class LoadRequest(LoadParameters):
    """The parameters of a load into files, with those of `LoadParameters`.

    Attributes:
        output: directory of the loads, on a file system shared by the driver and executors.
        options: options of the read; their start applies to partitions that were never loaded.
        file_format: `parquet` and `json` store the offsets of each value, `text` only values.
        file_bytes: target size of files: smaller ones of a topic and day are joined; 0 joins none.
        rewinds: retire the loads that have data past the start in the options, and load it again.
    """

    output: Path
    options: ReadOptions
    file_format: FileFormat = "parquet"
    file_bytes: int = 16 << 20
    rewinds: bool = False

    @property
    def layout(self) -> dict[str, str]:
        """Return the properties that all loads of one output have in common."""
        return {"group": self.group, "format": self.file_format} | self.row_layout


def run_load(
    engine: TaskEngine, request: LoadRequest, on_progress: OnProgress | None = None
) -> Manifest | None:
    """Load messages that were not loaded yet, and return the manifest; None if there are none.

    `engine` is any session of Spark, or processes of this machine, which take the same time to read
    and write, and less to start. `on_progress` is called with the completed fraction. A load that
    fails commits nothing.
    """
    with prepare_load(request) as prepared:
        return None if prepared.plan.is_empty else prepared.run(engine, on_progress)


def look_at_load(request: LoadRequest) -> LoadPlan:
    """Plan a load without running it."""
    output = _checked_output(request)
    return plan_load(request.options, output, rewinds=request.rewinds)


@contextmanager
def prepare_load(request: LoadRequest, *, clock: Clock | None = None) -> Iterator[PreparedLoad]:
    """Plan a load, with its output locked until the block ends.

    Needs no Spark, so that an invalid request fails before Spark is started.
    """
    output = _checked_output(request)
    with output.locked():
        output.check_layout(request.layout)  # another load may have run meanwhile
        plan = plan_load(request.options, output, rewinds=request.rewinds)
        yield PreparedLoad(request, output, plan, clock or SystemClock())


def _checked_output(request: LoadRequest) -> LoadOutput:
    if request.file_format not in ("parquet", "json", "text"):
        raise ConfigError(f"no format '{request.file_format}'; valid: parquet, json, text")
    if request.avro_reader is not None and (
        request.schemas is None or request.file_format != "parquet"
    ):
        raise ConfigError("avro_reader needs schemas, and the format parquet")
    if request.schemas is not None:
        SchemaRegistry(request.schemas, request.avro_reader)
    output = LoadOutput(request.output)
    output.check_layout(request.layout)
    return output


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """A planned load, which may run once while its output is locked."""

    request: LoadRequest
    output: LoadOutput
    plan: LoadPlan
    clock: Clock

    def run(self, engine: TaskEngine, on_progress: OnProgress | None = None) -> Manifest:
        """Load the planned ranges, and commit the load unless a task fails."""
        started_ms = self.clock.time_ms()
        request, staged = self.request, self.output.stage()
        rows = request.row_settings(request.options, has_records=self.plan.read.has_records)
        work = partial(load_range, directory=staged, file_format=request.file_format, settings=rows)
        results = run_tasks(engine, work, self.plan.read.tasks, on_progress)
        written = [file for one in results for file in one.files]
        # the commit removes the files that were joined
        groups = small_file_groups(
            (StoredFile(staged, one) for one in sorted(written)), request.file_bytes
        )
        files = joined_files(engine, groups, staged, written)
        times_ms, parts = (started_ms, self.clock.time_ms()), [one.part for one in results]
        manifest = self.plan.manifest(request.layout, times_ms, parts, files)
        self.output.commit(staged, manifest, self.plan.retiring)
        return manifest


def joined_files(
    engine: TaskEngine,
    groups: Sequence[tuple[StoredFile, ...]],
    directory: Path,
    files: Iterable[LoadedFile],
    on_progress: OnProgress | None = None,
) -> list[LoadedFile]:
    """Join groups of files into new ones below a directory; return `files` with these instead."""
    join = partial(join_files, directory=directory)
    made = [file for some in run_tasks(engine, join, groups, on_progress) for file in some]
    gone = {one.file for group in groups for one in group}
    return [*(one for one in files if one not in gone), *made]

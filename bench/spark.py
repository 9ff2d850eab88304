"""Spark reading topics, compared with Spark reading the same rows from text files; and loads.

All runs of a round take turns in one session, after rounds that only warm up. `count` reads one
narrow column: Spark's own reader leaves out columns that a count does not need, but Spark does not
pass that information to other readers. `floor` is the same with a data source that decodes nothing
(`spark_floor`). Ratios are of processor time, of the JVM and all Python workers, as other load on
the machine changes the time by the clock more. Loads run in that session, compared with Spark
writing the lines to Parquet, and by the command, which does without Spark.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from bench.broker_process import temporary_directory
from bench.measure import ChartPosition, Goal, Measurement, Plan
from bench.spark_floor import BATCH_MESSAGES, FloorDataSource
from bench.spark_floor import FORMAT as FLOOR
from bench.workload import payloads
from broker.log.format import segment_name
from broker.protocol import codec
from broker.spark.load import LoadRequest, run_load
from broker.spark.options import parse_read_options
from broker.spark.schema import COLUMNS, TYPES
from broker.spark.session import SessionSettings, open_session
from broker.spark.source import read_messages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COMPARED = {
    "count": "text count",
    "count, floor": "text count",
    "count of all columns": "text count",
    "count of all columns, floor": "text count",
    "parquet": "text parquet",
    "parquet, floor": "text parquet",
    "load on Spark": "text parquet",
}
"""Runs, and those of Spark's own reader that they are compared with."""
_PARTITIONS = 4
_SEGMENTS = 2
_WARM_UPS = 2
_M = 1e6

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """Seconds that a run took: by the clock, and of all processors."""

    elapsed_s: float
    processor_s: float


Spendings = dict[str, list[Spent]]


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure counting and writing Parquet, on one core and on two, and the workers' memory."""
    cores = min(2, len(os.sched_getaffinity(0)))
    with temporary_directory(plan.directory) as directory:
        count = _write_inputs(directory, plan.size(2_000_000, 400_000))
        narrow, _ = _measure(plan, directory, 1, count)
        wide, memory_mb = _measure(plan, directory, cores, count)
    for name, text in _COMPARED.items():
        yield from _compared(name, wide[text], wide[name])
    yield from _loads(count, wide)
    for name in ("count", "count of all columns", "parquet"):
        rates = [count / _M / one.elapsed_s for one in wide[name]]
        position = ChartPosition("Spark reading topics", "", name)
        yield Measurement(f"spark, {name}, {cores} cores", "M msg/s", rates, position=position)
        growth = _median_s(narrow[name]) / _median_s(wide[name])
        position = ChartPosition("Spark on all cores over one", "", name)
        yield Measurement(
            f"spark, {name}, {cores} cores over one", "x", [growth], position=position
        )
    yield Measurement("spark worker's memory, at most", "MB", memory_mb, Goal(300, is_most=True))


def _median_s(spent: list[Spent]) -> float:
    return median(one.elapsed_s for one in spent)


def _compared(name: str, texts: list[Spent], ours: list[Spent]) -> Iterator[Measurement]:
    ratios = [text.processor_s / our.processor_s for text, our in zip(texts, ours, strict=True)]
    position = ChartPosition("Spark, over its own reader of text files", "", name)
    yield Measurement(f"spark {name}, over text files", "x", ratios, position=position)


def _loads(count: int, spent: Spendings) -> Iterator[Measurement]:
    for name in ("load on Spark", "load without Spark"):
        rates = [count / _M / one.elapsed_s for one in spent[name]]
        yield Measurement(name, "M msg/s", rates)


def _write_inputs(directory: Path, message_count: int) -> int:
    """Write the same messages as segments and as text; return their number."""
    messages = payloads()
    message_set = codec.encode(messages)
    text = b"".join(payload + b"\n" for payload in messages)
    blocks = message_count // len(messages) // _PARTITIONS // _SEGMENTS
    for index in range(_PARTITIONS):
        log = directory / "logs" / f"lines_{index}"
        log.mkdir(parents=True)
        for segment in range(_SEGMENTS):
            offset = segment * blocks * len(message_set)
            (log / segment_name(offset)).write_bytes(message_set * blocks)
        lines = directory / "text" / f"{index}.txt"
        lines.parent.mkdir(exist_ok=True)
        lines.write_bytes(text * blocks * _SEGMENTS)
    return blocks * _SEGMENTS * _PARTITIONS * len(messages)


def _measure(
    plan: Plan, directory: Path, cores: int, message_count: int
) -> tuple[Spendings, list[float]]:
    """Return what each run took, by name, and the peak memory of each worker."""
    conf = {"spark.sql.shuffle.partitions": str(cores)}
    settings = SessionSettings(master=f"local[{cores}]", conf=conf)
    with _only(cores), open_session(settings) as spark:
        spark.dataSource.register(FloorDataSource)
        runs = _runs(spark, directory, message_count)
        found: Spendings = {name: [] for name in runs}
        for round_number in range(-_WARM_UPS, plan.repetitions):
            for name, action in runs.items():
                started_s, before_s = time.perf_counter(), _processor_s()
                action()
                if round_number >= 0:
                    elapsed_s = time.perf_counter() - started_s
                    found[name].append(Spent(elapsed_s, _processor_s() - before_s))
        return found, list(_worker_memory_mb())


@contextmanager
def _only(cores: int) -> Iterator[None]:
    """Restrict this process and its children to some of their cores."""
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cores)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


def _runs(
    spark: SparkSession, directory: Path, message_count: int
) -> Mapping[str, Callable[[], object]]:
    text, output = str(directory / "text"), str(directory / "output")
    options = {"path": str(directory / "logs")}
    values = ["value"]
    batches = str(message_count // _PARTITIONS // BATCH_MESSAGES)

    def floor(*names: str) -> DataFrame:
        fields = [f"{name} {TYPES[name].simpleString()} NOT NULL" for name in names]
        reader = spark.read.format(FLOOR).schema(", ".join(fields))
        return reader.options(tasks=str(_PARTITIONS), batches=batches).load()

    return {
        "text count": lambda: spark.read.text(text).count(),
        "count": lambda: read_messages(spark, options, columns=["offset"]).count(),
        "count, floor": lambda: floor("offset").count(),
        "count of all columns": lambda: read_messages(spark, options).count(),
        "count of all columns, floor": lambda: floor(*COLUMNS).count(),
        "text parquet": lambda: spark.read.text(text).write.mode("overwrite").parquet(output),
        "parquet": lambda: (
            read_messages(spark, options, columns=values).write.mode("overwrite").parquet(output)
        ),
        "parquet, floor": lambda: floor("value").write.mode("overwrite").parquet(output),
        "load on Spark": lambda: _load(spark, directory),
        "load without Spark": lambda: _load_without(directory),
    }


def _load(spark: SparkSession, directory: Path) -> None:
    """Load the logs, into an output that is new each time."""
    output = _new_output(directory)
    run_load(spark, LoadRequest(output, parse_read_options({"path": str(directory / "logs")})))


def _load_without(directory: Path) -> None:
    """Load the logs by the command, its start included."""
    output = _new_output(directory)
    load = (sys.executable, "-m", "pylogctl", "pipeline", "load", "--quiet")
    paths = ("--path", directory / "logs", "--to", output)
    subprocess.run([*load, *paths], check=True, stdout=subprocess.DEVNULL)


def _new_output(directory: Path) -> Path:
    output = directory / "loads"
    shutil.rmtree(output, ignore_errors=True)
    return output


def _processor_s() -> float:
    """Return the processor time of this process and all below it, up to now."""
    total_s = 0.0
    for pid in _descendants():
        with suppress(OSError):  # it has ended meanwhile: its time is in that of its parent
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total_s += sum(map(int, fields[11:15])) * _TICK_S
    return total_s


def _descendants() -> list[int]:
    """Return this process and all processes below it."""
    children: dict[int, list[int]] = {}
    for pid in [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]:
        with suppress(OSError):  # it has ended meanwhile
            children.setdefault(int(_status(pid)["PPid"]), []).append(pid)
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return found


def _worker_memory_mb() -> Iterator[float]:
    """Yield the peak memory of each Python worker of this process's JVM."""
    for pid in _descendants():
        with suppress(OSError):
            if b"pyspark.daemon\0pyspark.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield int(_status(pid)["VmHWM"].split()[0]) * 1024 / 1e6


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value for name, _, value in (line.partition(":") for line in lines)}

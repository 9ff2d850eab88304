"""Jobs: tasks with progress, and the `BrokerError` behind a failure of Spark."""

from __future__ import annotations

import pickle
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from broker import errors
from broker.errors import BrokerError, QueryError, SparkFailedError
from broker.spark.local import LocalProcesses
from broker.threads import start_once

if TYPE_CHECKING:
    from pyspark import SparkContext, StatusTracker
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

TaskEngine: TypeAlias = "SparkSession | LocalProcesses"
"""Runs the tasks of a job: a cluster or processes of this machine, with equal results."""
Task = TypeVar("Task")
Result = TypeVar("Result")
OnProgress = Callable[[float], None]
"""Called with the completed fraction, 0 to 1; by Spark's jobs periodically, on another thread."""

_POLL_S = 0.1


def run_tasks(
    engine: TaskEngine,
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    on_progress: OnProgress | None = None,
) -> list[Result]:
    """Run a function for each task, and return the results in the order of tasks.

    `work` is a function of a module, or a `functools.partial` of one; it and the tasks are pickled.
    Spark may run it more than once for a task, also concurrently; one successful result is
    returned. On this machine, the exception of a task is raised; on Spark a `Py4JJavaError`, with
    Spark Connect a `PySparkException`: `cause_of` finds the cause.
    """
    if not tasks:
        return []
    if isinstance(engine, LocalProcesses):
        return engine.run(work, tasks, on_progress)
    if is_remote(engine):
        return _run_remotely(engine, work, tasks, on_progress)
    context, report = engine.sparkContext, on_progress or (lambda _: None)
    with _job_group(context, getattr(work, "__name__", "tasks")) as group:
        watching: AbstractContextManager[None] = nullcontext()
        if on_progress is not None:
            watching = _polled(context, group, lambda counts: report(counts.done / len(tasks)))
        with watching:
            results = context.parallelize(tasks, len(tasks)).map(work).collect()
    report(1.0)
    return results


def is_remote(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect, which has no `sparkContext`."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _run_remotely(
    spark: SparkSession,
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    on_progress: OnProgress | None,
) -> list[Result]:
    """Run tasks through Spark Connect, which knows tables only: one partition for each task."""
    import pyarrow as pa  # late: the workers of a Spark job may lack it

    def do(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            numbers = batch.column("id").to_pylist()
            results = [pickle.dumps(work(tasks[number])) for number in numbers]
            yield pa.RecordBatch.from_pydict({"id": numbers, "result": results})

    table = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(do, "id bigint, result binary")
    with _interruptible(spark), _reported(spark, len(tasks), on_progress):
        rows = sorted(table.collect(), key=lambda row: row.id)
    return [pickle.loads(row.result) for row in rows]


@contextmanager
def _interruptible(spark: SparkSession) -> Iterator[None]:
    """Interrupt the operations of the block on the server if it fails."""
    tag = uuid.uuid4().hex
    spark.addTag(tag)
    try:
        yield
    except BaseException:
        spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)


@contextmanager
def _reported(
    spark: SparkSession, task_count: int, on_progress: OnProgress | None
) -> Iterator[None]:
    if on_progress is None:
        yield
        return

    def report(
        stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        completed = sum(stage.num_completed_tasks for stage in stages or ())
        on_progress(min(1.0, completed / task_count))

    handler: Any = report  # its type in PySpark is a class
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)
    on_progress(1.0)


@contextmanager
def _job_group(context: SparkContext, description: str) -> Iterator[str]:
    """Run the block's jobs in a new group, and cancel them if the block fails."""
    from py4j.protocol import Py4JError

    group = uuid.uuid4().hex
    context.setJobGroup(group, description, interruptOnCancel=True)
    try:
        yield group
    except BaseException:
        with suppress(Py4JError):  # where the JVM is gone, so are its jobs
            context.cancelJobGroup(group)
            _leave_group(context)
        raise
    _leave_group(context)


def _leave_group(context: SparkContext) -> None:
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # removes it


@contextmanager
def _polled(
    context: SparkContext, group: str, on_tasks: Callable[[TaskCounts], None]
) -> Iterator[None]:
    """Report the tasks of a group of jobs until the block ends."""
    from py4j.protocol import Py4JError

    ended = threading.Event()

    def watch() -> None:
        with suppress(Py4JError):  # the JVM is gone, which the job itself will report
            while not ended.wait(_POLL_S):
                on_tasks(_task_counts(context.statusTracker(), group))

    watcher = start_once(watch, name="spark-progress")
    try:
        yield
    finally:
        ended.set()
        watcher.join()


class TaskCounts(NamedTuple):
    """The tasks of jobs: how many have completed, and how many are known."""

    done: int
    known: int


def _task_counts(tracker: StatusTracker, group: str) -> TaskCounts:
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    numbers = {stage for job in jobs if job for stage in job.stageIds}
    stages = [stage for stage in map(tracker.getStageInfo, sorted(numbers)) if stage]
    return TaskCounts(
        sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
    )


@contextmanager
def watched_query(spark: SparkSession, on_tasks: Callable[[TaskCounts], None]) -> Iterator[None]:
    """Report the tasks of all jobs that the block starts; cancel them if it fails.

    `on_tasks` is called periodically on another thread; more tasks become known as stages are
    planned.
    """
    context = spark.sparkContext
    with _job_group(context, "query") as group, _polled(context, group, on_tasks):
        yield


_OURS = re.compile(r"^(?:broker\.[a-z_.]+|pylogctl)\.(\w+): (.+)$", re.MULTILINE)
_LAST_LINE = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception): (.+)$", re.MULTILINE)
_CAUSE = re.compile(r"(Error|Exception): (\[[A-Z0-9_.]+\] [^\n]*?SQLSTATE: (\w+))", re.MULTILINE)
# classes of SQL states: unsupported; data that an expression cannot take; syntax; and the state of
# rows that do not fit the columns of a table
_OF_THE_QUERY = ("0A", "22", "42", "KD000")
_CODE = re.compile(r"^\s*\[[A-Z0-9_.]+\] ")
_STATE = re.compile(r" SQLSTATE: \w+")
_POSITION = re.compile(r"\bline (\d+),? (pos|position) (\d+)")


def cause_of(failure: BaseException) -> BrokerError:
    """Return the `BrokerError` that caused a failure of a plan, a task or a streaming query.

    Other failures become a `QueryError` if the query is invalid, else a `SparkFailedError` with
    Spark's first line.
    """
    from pyspark.errors import PySparkException  # late: commands load this module without it, too

    if isinstance(failure, BrokerError):
        return failure
    text = str(failure)
    kinds = {one.__name__: one for one in vars(errors).values() if isinstance(one, type)}
    for name, message in reversed(_OURS.findall(text)):
        kind = kinds.get(name)
        if kind is not None and issubclass(kind, BrokerError):
            return kind(message.strip())
    if isinstance(failure, PySparkException) and (failure.getSqlState() or "").startswith(
        _OF_THE_QUERY
    ):
        return QueryError(f"{_located(text)}{_reason_of(failure)}")
    if causes := list(_CAUSE.finditer(text)):
        # an iterator over rows raises the JVM's exception unchanged, with its stack
        located = _located(text[causes[-1].start(2) :])
        is_of_query = causes[-1][3].startswith(_OF_THE_QUERY)
        return QueryError(located) if is_of_query else SparkFailedError(located)
    if found := _LAST_LINE.findall(text):
        return SparkFailedError(found[-1].strip())
    return SparkFailedError(text.strip().partition("\n")[0] or type(failure).__name__)


def _reason_of(failure: PySparkException) -> str:
    """Return why a column is missing, if only Spark's Kafka source has it."""
    if not (failure.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
        return ""
    from broker.spark.schema import kafka_column_hint  # late: it needs PySpark

    name = (failure.getMessageParameters() or {}).get("objectName", "")
    hint = kafka_column_hint(name.rpartition(".")[2].strip("`"))
    return hint and f"; {hint}"


def _located(text: str) -> str:
    """Return the first line of Spark's message on a query, with the position in the query."""
    first = _STATE.sub("", _CODE.sub("", text)).strip().partition("\n")[0]
    sentence = _POSITION.sub("", first).rstrip(" .;,()")
    found = _POSITION.search(text)
    if found is None:
        return sentence
    column = int(found[3]) + (found[2] == "pos")  # one counts from 0, the other from 1
    return f"line {found[1]}, column {column}: {sentence}"

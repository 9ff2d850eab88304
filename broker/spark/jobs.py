"""Jobs: tasks with progress, interruptible JVM calls, and the causes of failures.

Py4J waits for responses on the calling thread. A signal handler that raises there leaves the
connection in the middle of a response, and the next calls, which clean up, would read the rest of
it. So the main thread makes its calls through the thread `spark-calls`. A signal only interrupts
the wait for that thread; the next calls use another thread and connection.
"""

from __future__ import annotations

import pickle
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from broker import errors
from broker.errors import BrokerError, QueryError, SparkFailedError
from broker.spark.local import LocalProcesses

if TYPE_CHECKING:
    from typing import TypeAlias

    from py4j.clientserver import JavaClient
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext, StatusTracker
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    TaskEngine: TypeAlias = SparkSession | LocalProcesses
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
    context = engine.sparkContext
    with (
        _job_group(context, getattr(work, "__name__", "tasks")) as group,
        _watched(context, group, len(tasks), on_progress),
    ):
        return context.parallelize(tasks, len(tasks)).map(work).collect()


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
def _watched(
    context: SparkContext, group: str, task_count: int, on_progress: OnProgress | None
) -> Iterator[None]:
    if on_progress is None:
        yield
        return

    def report(counts: TaskCounts) -> None:
        on_progress(counts.done / task_count)

    with _polled(context, group, report):
        yield
    on_progress(1.0)


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

    watcher = threading.Thread(target=watch, name="spark-progress", daemon=True)
    watcher.start()
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


def make_interruptible(gateway: JavaGateway, on_thread: Callable[[], None]) -> None:
    """Let a signal handler that raises end all calls of the main thread through a gateway.

    The JVM continues with the interrupted call; the caller has to cancel it. `on_thread` is called
    first on each thread that calls for the main one, as the JVM keeps some state for each thread.
    It must not raise.
    """
    client = gateway._gateway_client
    client.send_command = _Caller(client, on_thread)


def finished(work: Callable[[], Result], undo: Callable[[Result], None]) -> Result:
    """Run work to its end on a new thread, even if the caller is interrupted; return the result.

    `undo` reverts the result of an interrupted call.
    """
    doing: Future[Result] = Future()

    def do(doing: Future[Result]) -> None:
        if not doing.set_running_or_notify_cancel():
            return
        try:
            doing.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            doing.set_exception(error)
        finally:
            del doing  # else an error and this frame would refer to each other

    try:
        threading.Thread(target=do, args=(doing,), name="spark-start").start()
        return doing.result()
    except Exception:
        raise
    except BaseException:
        if not doing.cancel():
            undo(doing.result())
        raise
    finally:
        del doing  # likewise


class _Caller:
    """Calls the JVM: on the calling thread, or for the main thread on another one."""

    def __init__(self, client: JavaClient, on_thread: Callable[[], None]) -> None:
        self._client = client
        self._send: Callable[..., Any] = client.send_command
        self._on_thread = on_thread
        self._connection: object = None
        self._thread = self._new_thread()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return self._send(*args, **kwargs)
        try:
            return self._thread.submit(self._call, *args, **kwargs).result()
        except Exception:
            raise
        except BaseException:
            self._thread.shutdown(wait=False)  # busy until the JVM responds
            self._thread = self._new_thread()
            raise

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._send(*args, **kwargs)
        finally:
            # Py4J holds the connection for as long as the thread lives. A forked child has no
            # other thread: it would shut down the connection, which is its parent's, too.
            self._connection = self._client.get_thread_connection()

    def _new_thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "spark-calls", initializer=self._on_thread)


_OURS = re.compile(r"^(?:broker\.[a-z_.]+\.)(\w+): (.+)$", re.MULTILINE)
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
    for name, message in reversed(_OURS.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, BrokerError):
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

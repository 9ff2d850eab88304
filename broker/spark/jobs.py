"""Jobs on Spark: tasks with progress, interruptible JVM calls, and the causes of failures.

Py4J waits for responses on the calling thread. A signal handler that raises there leaves the
connection in the middle of a response, and the next calls, which clean up, would read the rest of
it. So the main thread makes its calls through the thread `spark-calls`. A signal only interrupts
the wait for that thread; the next calls use another thread and connection.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from broker import errors
from broker.errors import BrokerError, QueryError, SparkFailedError

if TYPE_CHECKING:
    from py4j.clientserver import JavaClient
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext, StatusTracker
    from pyspark.sql import SparkSession


Task = TypeVar("Task")
Result = TypeVar("Result")
OnProgress = Callable[[float], None]
"""Called periodically, on another thread, with the completed fraction, 0 to 1."""

_POLL_S = 0.1


def run_tasks(
    spark: SparkSession,
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    on_progress: OnProgress | None = None,
) -> list[Result]:
    """Run a function on Spark for each task, and return the results in the order of tasks.

    Args:
        spark: any session.
        work: a function of a module, or a `functools.partial` of one. It may run more than once
            for a task, also concurrently; one successful result is returned.
        tasks: arguments of `work`; they are pickled and sent to executors.
        on_progress: called with the completed fraction.

    Raises:
        Py4JJavaError: all attempts of a task failed; `cause_of` finds the cause.
    """
    if not tasks:
        return []
    context = spark.sparkContext
    with (
        _job_group(context, getattr(work, "__name__", "tasks")) as group,
        _watched(context, group, len(tasks), on_progress),
    ):
        return context.parallelize(tasks, len(tasks)).map(work).collect()


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
    from py4j.protocol import Py4JError

    ended = threading.Event()

    def watch() -> None:
        with suppress(Py4JError):  # the JVM is gone, which the job itself will report
            while not ended.wait(_POLL_S):
                on_progress(_done_count(context.statusTracker(), group) / task_count)

    watcher = threading.Thread(target=watch, name="spark-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    on_progress(1.0)


def _done_count(tracker: StatusTracker, group: str) -> int:
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage)


def make_interruptible(gateway: JavaGateway, on_thread: Callable[[], None]) -> None:
    """Make all calls of the main thread through a gateway end when a signal handler raises.

    The JVM continues with the interrupted call; the caller has to cancel it.

    Args:
        gateway: to the JVM.
        on_thread: called first on each thread that calls for the main one, as the JVM keeps some
            state for each thread. It must not raise.
    """
    client = gateway._gateway_client
    client.send_command = _Caller(client, on_thread)


def finished(work: Callable[[], Result], undo: Callable[[Result], None]) -> Result:
    """Return the result of work that must not be left half done.

    Args:
        work: runs to its end on a thread of its own, even if the caller is interrupted.
        undo: reverts the result of an interrupted call.
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
    """Calls the JVM: on the calling thread, or for the main thread on one beside it."""

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
# classes of SQL states: unsupported; data that an expression cannot take; syntax
_OF_THE_QUERY = ("0A", "22", "42")
_CODE = re.compile(r"^\s*\[[A-Z0-9_.]+\] ")
_STATE = re.compile(r" SQLSTATE: \w+")
_POSITION = re.compile(r"\bline (\d+),? (pos|position) (\d+)")


def cause_of(failure: BaseException) -> BrokerError:
    """Return the `BrokerError` that caused a failure of a plan, a task or a streaming query.

    A failure without one becomes a `QueryError` if the query is invalid, else a `SparkFailedError`
    with Spark's first line.
    """
    from pyspark.errors import PySparkException  # late: without PySpark commands say so

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
        return QueryError(_located(text))
    if found := _LAST_LINE.findall(text):
        return SparkFailedError(found[-1].strip())
    return SparkFailedError(text.strip().partition("\n")[0] or type(failure).__name__)


def _located(text: str) -> str:
    """Return the first line of Spark's message on a query, with the position in the query."""
    first = _STATE.sub("", _CODE.sub("", text)).strip().partition("\n")[0]
    sentence = _POSITION.sub("", first).rstrip(" .;,()")
    found = _POSITION.search(text)
    if found is None:
        return sentence
    column = int(found[3]) + (found[2] == "pos")  # one counts from 0, the other from 1
    return f"line {found[1]}, column {column}: {sentence}"

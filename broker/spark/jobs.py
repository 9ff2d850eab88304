"""Work shared out over Spark: a function, a list of tasks, and how far it is."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext, StatusTracker
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")
OnProgress = Callable[[float], None]
"""Told now and then, on another thread, which part of the work is done: from 0 to 1."""

_POLL_S = 0.1


def run_tasks(
    spark: SparkSession,
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    on_progress: OnProgress | None = None,
) -> list[Result]:
    """Do each of some tasks, on whatever machines Spark has.

    Args:
        spark: any session.
        work: a function of a module, or a `functools.partial` of one; may run more than once for
            a task, on several machines at once.
        tasks: what to do; small, as they are sent.
        on_progress: told how far it is.

    Returns:
        What came of each task, in their order, from one attempt that succeeded.

    Raises:
        Py4JJavaError: a task failed as often as Spark tries; `failures.cause_of` says why.
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
    """Have jobs in a group of their own; none of them outlives the block."""
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
        with suppress(Py4JError):  # the JVM is gone, which the work itself will find
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

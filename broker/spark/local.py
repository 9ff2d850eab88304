"""Tasks on processes of this machine, without Spark.

    with LocalProcesses(4) as engine:
        run_load(engine, request)

Processes are started when there are several tasks, and used again. They end with their parent, also
if that is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Self, TypeVar

from broker.errors import TaskProcessError
from broker.threads import start_once

Task = TypeVar("Task")
Result = TypeVar("Result")

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # names of `mallopt` in glibc's malloc.h
_MMAP_BYTES = 32 << 20  # the most that glibc takes
_KEPT_BYTES = 64 << 20


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


class _Worker(NamedTuple):
    """A process that runs one task at a time."""

    process: multiprocessing.process.BaseProcess
    connection: Connection

    def begin(self, work: Callable[[Any], Any], task: object) -> None:
        try:
            self.connection.send((work, task))
        except OSError as error:
            raise self._ended() from error

    def result(self) -> Any:
        try:
            result, error = self.connection.recv()
        except (EOFError, OSError) as failure:
            raise self._ended() from failure
        if error is not None:
            raise error
        return result

    def _ended(self) -> TaskProcessError:
        self.process.join()
        return TaskProcessError(
            f"a process of the job ended with status {self.process.exitcode}; it may have been "
            "killed for lack of memory"
        )


class LocalProcesses:
    """Runs tasks in up to `count` processes; with 1 in this process.

    `count` is at least 1; default: the number of cores that this process may use.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = core_count() if count is None else count
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        work: Callable[[Task], Result],
        tasks: Sequence[Task],
        on_progress: Callable[[float], None] | None = None,
    ) -> list[Result]:
        """Run a function for each task, and return the results in the order of tasks.

        `work` is a function of a module, or a `functools.partial` of one; it and the tasks are
        pickled. The first task that fails ends the others, and its exception is raised;
        `TaskProcessError` if a process was killed.
        """
        report = on_progress or (lambda _: None)
        if min(self._count, len(tasks)) < 2:
            results = []
            for task in tasks:
                results.append(work(task))
                report(len(results) / len(tasks))
            return results
        try:
            return self._run_on_workers(work, tasks, report)
        except BaseException:
            self.close()  # the results of running tasks are not needed
            raise

    def close(self) -> None:
        """End the processes, and the tasks that they run."""
        for worker in self._workers:
            worker.process.terminate()
        while self._workers:
            worker = self._workers.pop()
            worker.process.join()
            worker.connection.close()

    def _run_on_workers(
        self, work: Callable[[Task], Result], tasks: Sequence[Task], report: Callable[[float], None]
    ) -> list[Result]:
        while len(self._workers) < min(self._count, len(tasks)):
            self._workers.append(_start_worker())
        left = iter(enumerate(tasks))
        running: dict[Connection, tuple[_Worker, int]] = {}
        results: dict[int, Result] = {}
        free = list(self._workers)
        while len(results) < len(tasks):
            for worker, (number, task) in zip(free, left, strict=False):
                worker.begin(work, task)
                running[worker.connection] = worker, number
            free = []
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                worker, number = running.pop(connection)
                results[number] = worker.result()
                free.append(worker)
            report(len(results) / len(tasks))
        return [results[number] for number in range(len(tasks))]


def _start_worker() -> _Worker:
    # not fork: a child would inherit the locks of the caller's threads, some of them locked
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    resource_tracker.ensure_running()  # its start would unblock the signal
    with _signals_deferred(), _sigint_blocked():
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Delay signals that end the program: a child that is half started complains on stderr."""
    if threading.current_thread() is not threading.main_thread():  # handlers do not run here
        yield
        return
    received: list[int] = []
    before = {
        one: signal.signal(one, lambda number, _: received.append(number))
        for one in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(one) not in (None, signal.SIG_IGN)
    }
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        for number in dict.fromkeys(received):
            signal.raise_signal(number)


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT, also for children started in the block, which the parent ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection) -> None:
    """Run tasks from a connection until it is closed."""
    _keep_freed_memory()
    start_once(_end_with_parent, name="tether")
    while True:
        try:
            work, task = connection.recv()
        except EOFError:
            return
        try:
            result: Any = (work(task), None)
        except Exception as error:  # noqa: BLE001 - raised again by the parent
            error.add_note(traceback.format_exc())
            result = (None, error)
        connection.send(result)


def _keep_freed_memory() -> None:
    """Let the C library keep memory that is freed, if it can (glibc).

    Tasks free the batches of a row group at once. If the memory is returned to the system, the next
    row group costs a page fault for each of its pages.
    """
    import ctypes  # late: only these processes need it

    with suppress(AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)

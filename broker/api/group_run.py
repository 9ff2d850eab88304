"""Hands the messages of a group to a handler, by one thread or several; see `Group.run`."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from broker.api.values import number_of
from broker.consumer.committer import AheadCommits, AssignedPartition
from broker.consumer.offset_store import position_after
from broker.protocol.codec import Message, make_message
from broker.threads import LoopThread
from broker.tools import retry
from broker.topic import MessagePosition, share_of

Handler = Callable[[Message], object]
_QUEUED_CHUNKS = 2  # for a thread
_LOOK_S = 0.1
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """What happens to messages whose handler raises an exception: they are kept and tried again.

    Other messages go on meanwhile, so the order of these is not kept. `pylogctl retry` shows and
    changes what is kept.

    Args:
        directory: where they are kept; one process at a time can use it.
        retries: how often a message is tried again at once.
        backoff: seconds until it is tried from the store; twice as long after each failure, up to
            five minutes.
        max_attempts: after so many in all it stays in the store untried; None for no limit.
    """

    directory: str | Path
    retries: int = 3
    backoff: float = 1.0
    max_attempts: int | None = None

    def __post_init__(self) -> None:
        number_of("retries", self.retries, 0)
        number_of("backoff", self.backoff, 0)
        if self.max_attempts is not None:
            number_of("max_attempts", self.max_attempts, 1)


RetryPolicy.__module__ = "pylogctl"  # in its body it would be a field without a type


@contextmanager
def retrying(
    handler: Handler, policy: RetryPolicy, pause: Callable[[float], bool]
) -> Iterator[tuple[Handler, Callable[[], object]]]:
    """Keep messages whose handler fails; give what handles a message, and what tries one again.

    `pause` waits between attempts in place; it returns True to keep the message now.
    """
    wait_ms = round(1000 * policy.backoff)

    def attempt(kept: retry.RetryMessage) -> None:
        partition, offset, next_offset, inner, stored = kept
        handler(make_message(partition.topic, partition, offset, next_offset, stored, inner))

    with retry.RetryStore(Path(policy.directory)) as store:
        handling = retry.RetryingHandler(
            attempt,
            store,
            retry.InPlace.before(wait_ms, policy.retries),
            retry.RetryPolicy(first_wait_ms=wait_ms, max_attempts=policy.max_attempts),
            pause=pause,
        )

        def handle(one: Message) -> None:
            place = one.partition, one.offset, one.next_offset, one.inner
            stored = one.value if one.envelope is None else one.envelope.wrap(one.value)
            handling.handle(retry.RetryMessage(*place, stored))

        yield handle, handling.retry_due


class ChunkWork(NamedTuple):
    """The messages of a chunk; once all are handled, the partition is finished up to `end`."""

    assigned: AssignedPartition
    messages: list[Message]
    end: int
    seek_count: int  # of the partition


@dataclass(eq=False, repr=False)
class Workers:
    """Threads that handle messages, each those of its own partitions, in order.

    A context manager: a block that ends well waits until all is handled, one that is left by an
    exception, or after `stop`, for what is in hand.

    Args:
        handle: handles a message.
        may_handle: returns whether work is still this member's; may wait until that is known.
        finish: marks what is before a position as finished; returns whether it is this member's.
        ahead: commits messages before they are handled; None to finish them afterwards.
        count: of threads; with one, messages are handled by the thread that adds them.
    """

    handle: Callable[[Message], object]
    may_handle: Callable[[ChunkWork], bool]
    finish: Callable[[AssignedPartition, MessagePosition], bool]
    ahead: AheadCommits | None
    count: InitVar[int]

    def __post_init__(self, count: int) -> None:
        self._busy: set[AssignedPartition] = set()
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._queues: list[queue.Queue[ChunkWork | None]] = []
        self.threads: list[threading.Thread] = []
        for number in range(count if count > 1 else 0):
            works: queue.Queue[ChunkWork | None] = queue.Queue(_QUEUED_CHUNKS)
            self._queues.append(works)
            name = f"group-handler-{number}"
            thread = LoopThread(partial(self._run, works), name=name)
            self.threads.append(thread)
            thread.start()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None:
            self._stopping.set()
        for works in self._queues:
            self._put(works, None)
        for thread in self.threads:
            thread.join()
        if error is None:
            self.raise_failure()

    def stop(self) -> None:
        """Handle no more messages than those in hand."""
        self._stopping.set()

    def raise_failure(self) -> None:
        """Raise what the handler has raised, if it has."""
        if self._failure is not None:
            raise self._failure

    @property
    def is_idle(self) -> bool:
        """Return whether all that was added is handled."""
        return not any(works.unfinished_tasks for works in self._queues)

    def await_end(self, revoked: Collection[AssignedPartition]) -> None:
        """Wait until no thread handles a message of revoked partitions, or they are released."""
        while any(one in self._busy and not one.is_released for one in revoked):
            time.sleep(_POLL_S)

    def add(self, work: ChunkWork) -> None:
        """Handle messages, or queue them for the thread of their partition."""
        if not self._queues:
            self._do(work)
        else:
            self._put(self._queues[share_of(work.assigned.partition, len(self._queues))], work)
        self.raise_failure()

    def _put(self, works: queue.Queue[ChunkWork | None], work: ChunkWork | None) -> None:
        while True:
            try:
                return works.put(work, timeout=_LOOK_S)
            except queue.Full:
                if self._stopping.is_set() and work is not None:
                    return None

    def _run(self, works: queue.Queue[ChunkWork | None]) -> None:
        while (work := works.get()) is not None:
            self._busy.add(work.assigned)
            try:
                if not self._stopping.is_set():
                    self._do(work)
            except BaseException as error:  # noqa: BLE001 - raised by the thread that runs the group
                self._failure = self._failure or error
                self._stopping.set()
            finally:
                self._busy.discard(work.assigned)
                works.task_done()

    def _do(self, work: ChunkWork) -> None:
        assigned, messages, end, _ = work
        committed = 0
        for number, message in enumerate(messages):
            if self._stopping.is_set() or not self.may_handle(work):
                return
            if self.ahead is not None:
                if number == committed:
                    rest = (messages[at] for at in range(number, len(messages)))
                    bounds = ((one.offset, one.next_offset) for one in rest)
                    committed += self.ahead.commit(assigned, bounds)
                if number == committed or not self.finish(assigned, position_after(message)):
                    return
            self.handle(message)
            if self.ahead is None and (self.may_handle(work) or _may_finish(assigned)):
                assigned.finish_inner(position_after(message))
        if self.may_handle(work):
            self.finish(assigned, MessagePosition(end))


def _may_finish(assigned: AssignedPartition) -> bool:
    """Return whether a partition is being revoked, and what is handled already still counts."""
    return assigned.is_revoked and not assigned.is_released

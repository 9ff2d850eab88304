"""Answers on their way to a client: ready ones, and ones that must wait.

A connection answers its requests in the order they came, so every request that is answered gets
a place in a queue at once. What is not known yet is `Parked`: woken by a flush, by a worker or by
its deadline, on the thread of the processor that owns the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from broker.log.segment import FileSlice
from broker.protocol.primitives import Buffer

if TYPE_CHECKING:
    from broker.log.log import Log

Part = Buffer | FileSlice
"""A piece of an answer: bytes, or a stretch of a file to be sent from the page cache."""


def join_bytes(parts: list[Part]) -> list[Part]:
    """Return the parts with neighbours that are bytes made one: each part costs a system call."""
    joined: list[Part] = []
    run: list[Buffer] = []
    for part in parts:
        if isinstance(part, FileSlice):
            if run:
                joined.append(b"".join(run))
                run = []
            joined.append(part)
        else:
            run.append(part)
    if run:
        joined.append(b"".join(run))
    return joined


class Answer:
    """A place in a connection's queue of answers.

    `parts` is None until the answer is known. `bytes_in_memory` counts the parts that are no
    file slices; until they are known it is what they are expected to take.
    """

    __slots__ = ("bytes_in_memory", "parts")

    def __init__(self, *parts: Part, expected_bytes: int = 0) -> None:
        self.bytes_in_memory = expected_bytes
        self.parts: list[Part] | None = None
        if parts:
            self.complete(list(parts))

    def complete(self, parts: list[Part]) -> None:
        """Make the answer known."""
        self.bytes_in_memory = sum(len(p) for p in parts if not isinstance(p, FileSlice))
        self.parts = parts

    def in_memory(self) -> bytes:
        """Return the parts of a known answer that are no file slices, as one."""
        return b"".join(part for part in self.parts or () if not isinstance(part, FileSlice))


class Waker(Protocol):
    """The processor, as far as a parked request sees it."""

    def wake(self, parked: Parked) -> None:
        """Have `parked.attempt` called soon on the processor's thread; callable from any."""


class Parked:
    """A request whose answer must wait for logs to move on.

    Args:
        answer: its place in the queue.
        attempt: returns the parts of the answer, or None while it has to wait; is told whether
            the deadline has passed, and must then not return None, unless it has moved
            `deadline_s` on.
        deadline_s: monotonic time when it is answered in any case.
        logs: whose high watermark it waits for.
        lingers: the client wants its connection kept until the broker is gone.
        awaits_flush: what it waits for is under way, and nothing but a flush.
    """

    __slots__ = (
        "_attempt",
        "_wakeup",
        "answer",
        "awaits_flush",
        "deadline_s",
        "lingers",
        "logs",
    )

    def __init__(
        self,
        answer: Answer,
        attempt: Callable[[bool], list[Part] | None],
        deadline_s: float,
        logs: list[Log],
        *,
        lingers: bool = False,
        awaits_flush: bool = False,
    ) -> None:
        self.lingers = lingers
        self.awaits_flush = awaits_flush
        self.answer = answer
        self.deadline_s = deadline_s
        self._attempt = attempt
        self.logs = logs
        self._wakeup: Callable[[], None] | None = None

    def watch(self, waker: Waker) -> None:
        """Have the processor woken whenever one of the logs moves on."""
        self._wakeup = lambda: waker.wake(self)
        for log in self.logs:
            log.add_listener(self._wakeup)

    def attempt(self, *, is_last: bool) -> bool:
        """Try to complete the answer.

        Args:
            is_last: the deadline has passed, or the broker stops.

        Returns:
            Whether the answer is complete now (or was before).
        """
        if self.answer.parts is not None:
            return True
        parts = self._attempt(is_last)
        if parts is None:
            return False
        self.answer.complete(parts)
        self.forget()
        return True

    def forget(self) -> None:
        """Stop watching; for a completed request, and for one whose connection is gone."""
        if self._wakeup is not None:
            for log in self.logs:
                log.remove_listener(self._wakeup)
            self._wakeup = None

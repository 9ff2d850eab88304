"""The end of clients, producers and groups that a program drops, or leaves open when it ends.

Producers send what they have queued, for `LIMIT_S` at most; then one line says how many messages
are left. When the program ends `atexit` has them do so: its other threads have ended by then, and
sender threads, which are daemons, still run.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Protocol

from broker import deadlines
from broker.errors import BrokerError, DeliveryFailedError
from broker.threads import start_once

LIMIT_S = 10.0

logger = logging.getLogger("pylogctl")


class Engine(Protocol):
    """What sends the messages of a producer; it does not know the producer."""

    def drain(self, timeout_s: float) -> object:
        """Take no more messages, and wait until the queued ones are sent or have failed."""

    def left(self) -> Counter[str]:
        """Return how many messages are not sent, by topic."""

    def close(self, timeout_s: float) -> None:
        """Fail what is left, and end."""

    def take_failure(self) -> DeliveryFailedError | None:
        """Return the error for messages that failed, if the program does not know of it."""


_engines: set[Engine] = set()
_is_hooked = False  # `_end_program` is called at the end of this process


def watch(engine: Engine) -> None:
    """Have an engine send its messages when the program ends, until `forget`."""
    global _is_hooked
    if not _is_hooked:
        _is_hooked = True
        atexit.register(_end_program)
        # processes of `multiprocessing` end without `atexit` before Python 3.13
        if "multiprocessing" in sys.modules:
            from multiprocessing import parent_process, util

            if parent_process() is not None:
                util.Finalize(None, _end_program, exitpriority=0)
    _engines.add(engine)


def forget(engine: object) -> None:
    """Forget an engine that is closed, or whose messages the program knows of."""
    _engines.discard(engine)


def end(engines: Collection[Engine]) -> None:
    """Have engines send what they have queued, and close them; log how many messages are left."""
    give_up_s = time.monotonic() + LIMIT_S
    left: Counter[str] = Counter()
    failures: list[DeliveryFailedError | None] = []
    for one in engines:  # all at once
        one.drain(0)
    with suppress(KeyboardInterrupt):
        for one in engines:
            one.drain(max(0.0, give_up_s - time.monotonic()))
    for one in engines:
        left += (rest := one.left())
        limit_s = max(0.0, give_up_s - time.monotonic())
        with deadlines.Limit(limit_s):
            one.close(limit_s)
        failure = one.take_failure()  # of what is left, too
        failures.append(None if rest else failure)
    report(left, failures)


def report(left: Counter[str], failures: Iterable[DeliveryFailedError | None]) -> None:
    """Log how many messages of which topics are left, if there are any, and failures before."""
    if count := left.total():
        what = "1 message" if count == 1 else f"{count} messages"
        topics = ", ".join(f"'{topic}'" for topic in sorted(left))
        was = "was" if count == 1 else "were"
        logger.error("%s to %s %s not delivered: the producer was not closed", what, topics, was)
    for failure in filter(None, failures):
        logger.error("%s", failure)


def later(call: Callable[[], object]) -> None:
    """Make a call in a thread of its own: for finalizers, which may hold any lock."""

    def run() -> None:
        try:
            call()
        except BrokerError as error:
            logger.error("%s", error)

    if not sys.is_finalizing():  # a thread would never start
        with suppress(RuntimeError):  # from 3.12 on none does during `atexit`
            start_once(run, name="pylogctl-unclosed")


def _end_program() -> None:
    end(list(_engines))


def _forget_in_child() -> None:
    global _is_hooked
    _is_hooked = False
    _engines.clear()  # their threads and messages are the parent's


os.register_at_fork(after_in_child=_forget_in_child)

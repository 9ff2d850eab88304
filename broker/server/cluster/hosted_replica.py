"""One replica of this broker: its state machine, its log, and the lock between them."""

from __future__ import annotations

from threading import Event, RLock
from types import TracebackType

from broker.log.log import Log
from broker.replication.leader import Leader
from broker.replication.replica import Replica


class HostedReplica:
    """A replica with its log, and the lock under which its state machine is driven.

    The log's events, appends and flushes, never wait for the lock: its holder handles them when it
    releases it. So a thread that holds a lock of a log does not block here.
    """

    def __init__(self, replica: Replica, log: Log, isr_due: Event) -> None:
        self.replica = replica
        self.log = log
        self.wanted_bytes = 0
        """The least a fetch must ask for, the size of a message larger than the last fetch."""
        self._lock = RLock()
        self._has_news = False
        self._isr_due = isr_due  # set once a log that is led here has become faulty
        self._was_faulty = False
        log.add_listener(self._note_news)
        log.append_listeners.add_listener(self._note_news)

    def __enter__(self) -> HostedReplica:
        self._lock.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()
        self._take_news()

    def forget_log(self) -> None:
        """Stop listening to the log."""
        self.log.remove_listener(self._note_news)
        self.log.append_listeners.remove_listener(self._note_news)

    def _note_news(self) -> None:
        self._has_news = True
        self._take_news()

    def _take_news(self) -> None:
        while self._has_news and self._lock.acquire(blocking=False):
            try:
                self._has_news = False
                role = self.replica.role
                if isinstance(role, Leader):
                    role.flushed()
                    is_faulty = self.log.is_faulty
                    if is_faulty and not self._was_faulty:
                        self._isr_due.set()
                    self._was_faulty = is_faulty
            finally:
                self._lock.release()

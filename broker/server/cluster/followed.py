"""What a broker follows in ZooKeeper while it runs."""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod

from broker.errors import CoordinationError
from broker.threads import StoppableThread
from broker.zk.session import Session
from broker.zk.watched_reads import WatchedReads

logger = logging.getLogger(__name__)

_RETRY_S = 1.0


class ZookeeperFollower(StoppableThread):
    """Reads nodes through `_watched`, and again after each change; `name` says what they hold.

    With `period_s` it also reads them that often: ZooKeeper tells nobody of a changed ACL.
    """

    def __init__(self, name: str, session: Session, period_s: float | None = None) -> None:
        super().__init__(name)
        self._period_s = period_s
        self._changed = threading.Event()
        self._watched = WatchedReads(session, lambda _path: self._changed.set())

    @abstractmethod
    def _read(self) -> None:
        """Read the nodes, watch them, and apply them."""

    def stop(self) -> None:
        """Ask the thread to stop; it ends at once, or when its request fails with the session."""
        super().stop()
        self._changed.set()

    def _loop(self) -> None:
        """Apply changes until the thread is stopped."""
        while True:
            self._changed.wait(self._period_s)
            self._changed.clear()
            if self._stopping.is_set():
                return
            try:
                self._read()
            except CoordinationError as error:
                if not self._stopping.is_set():
                    logger.warning("%s may be out of date: %s; trying on", self.name, error)
                    self._try_later()
            except Exception:  # must not end the thread
                logger.exception("%s could not be applied", self.name)
                self._try_later()

    def _try_later(self) -> None:
        timer = threading.Timer(_RETRY_S, self._changed.set)
        timer.daemon = True
        timer.start()

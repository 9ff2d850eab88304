"""How long this process may believe that its registry session, and what it owns in it, stands.

A process can be frozen for longer than its session lasts, and then goes on as if nothing had been.
So a session counts as alive only until its last sign of life is one session timeout old, by a
clock that goes on while the process is frozen.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from broker.errors import BrokerError

logger = logging.getLogger(__name__)

_CHECKS_PER_TIMEOUT = 4


class Lease:
    """The time until which the session is certain to stand.

    Attributes:
        until_s: on the monotonic clock; read it without a lock, before anything is handed out.
    """

    __slots__ = ("_changed", "_is_closed", "until_s")

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_closed = False
        self.until_s = 0.0

    @property
    def is_valid(self) -> bool:
        """Return whether the session is certain to stand now."""
        return time.monotonic() < self.until_s

    def renew(self, until_s: float) -> None:
        """Note that the session stands until a time, if nothing more is heard of it."""
        with self._changed:
            self.until_s = until_s
            self._changed.notify_all()

    def lose(self) -> None:
        """Note that the session, or what stood in it, is gone."""
        self.until_s = 0.0

    def close(self) -> None:
        """End all waits."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until the lease is valid or closed; return whether it is one of them.

        Args:
            timeout_s: how long to wait; None for ever.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closed or self.is_valid, timeout_s)


class LeaseKeeper:
    """A thread that keeps a lease up by looking at this member's own node.

    Args:
        lease: what it keeps up.
        check: looks at the node in the registry; returns whether it stands in our session.
        session_timeout_s: how long a session lasts without a sign of life.
        on_lost: called when the node does not stand.
    """

    def __init__(
        self,
        lease: Lease,
        check: Callable[[], bool],
        session_timeout_s: Callable[[], float],
        on_lost: Callable[[], None],
    ) -> None:
        self._lease = lease
        self._check = check
        self._session_timeout_s = session_timeout_s
        self._on_lost = on_lost
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="group-lease", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Tell the thread to stop, and end all waits for the lease."""
        self._stop.set()
        self._lease.close()

    def join(self) -> None:
        """Wait for the thread's end."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._session_timeout_s() / _CHECKS_PER_TIMEOUT):
            # the server has seen us at this time or later
            asked_s = time.monotonic()
            try:
                stands = self._check()
            except BrokerError as error:
                if not self._stop.is_set():
                    logger.warning("registry session not confirmed: %s", error)
                continue
            if stands:
                self._lease.renew(asked_s + self._session_timeout_s())
            else:
                self._lease.lose()
                self._on_lost()

"""The state changes of a cluster, as an iterator."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from broker.admin import changes as admin
from broker.api.errors import public as public_error
from broker.api.errors import translated
from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.side import Side
from broker.closing import SelfClosing
from broker.errors import BrokerError
from broker.protocol.responses import BrokerAddress
from broker.state_changes import LoggedChange, merged

logger = logging.getLogger("pylogctl")


class Changes(Iterator[LoggedChange], SelfClosing):
    """Changes that brokers have logged, in the order in which they happened.

    Made by `Client.changes`; a context manager. It is for one thread at a time; `close`, from any
    thread, ends the iteration.
    """

    def __init__(
        self, side: Side, selects: admin.Selects, *, follow: bool, is_open: Callable[[], bool]
    ) -> None:
        # without `follow` it is `missing` that tells of brokers
        if follow:
            side, warn = side._replace(connect=_hasty(side.connect)), logger.warning
        else:
            warn = logger.info
        self._brokers = admin.FollowedBrokers(side, warn, logger.info)
        self._selects = selects
        self._is_open = is_open  # whether its client is
        self._order = admin.Ordering()
        self._ready: deque[LoggedChange] = deque()
        self._absent: Mapping[int, BrokerError] = {}
        self._ended = threading.Event()
        self._is_done = not follow  # nothing is left to be read
        self._reading = threading.Lock()
        try:
            first = self._brokers.read_all()
            if follow:
                self._take(self._order.take(first))
                return
            self._take(merged(first))
            self._absent = admin.absent_brokers(side)
            self.close()
        except BrokerError:
            problems = self._brokers.problems
            self.close()
            if problems:
                raise problems[max(problems)] from None  # says more than that all have failed
            raise

    @property
    def missing(self) -> dict[int, BrokerError]:
        """The brokers whose changes are missing, and why; to follow, those that are away now."""
        found = {**self._absent, **self._brokers.problems}
        return {id: public_error(error) for id, error in sorted(found.items())}

    def __del__(self) -> None:
        if hasattr(self, "_reading"):
            self.close()

    def __next__(self) -> LoggedChange:
        """Return the next change; to follow, wait for one."""
        with translated():
            while not self._ready:
                if self._is_done:
                    raise StopIteration
                self._read()
        return self._ready.popleft()

    def close(self) -> None:
        """End the iteration; changes that were read already still come."""
        self._ended.set()
        if self._reading.acquire(blocking=False):  # else the thread that reads does it
            self._brokers.close()
            self._reading.release()

    def _read(self) -> None:
        """Read what brokers have logged since the last round; the rest of it at the end."""
        with self._reading:
            if not self._ended.wait(admin.INTERVAL_S) and self._is_open():
                self._take(self._order.take(self._brokers.read()))
                return
            self._is_done = True
            self._take(self._order.take_rest())
            self._brokers.close()

    def _take(self, changes: list[LoggedChange]) -> None:
        self._ready.extend(filter(self._selects, changes))


def _hasty(connect: Connect) -> Connect:
    """Return what makes connections on which a broker that hangs does not hold up the others."""

    def make(address: BrokerAddress) -> Connection:
        connection = connect(address)
        connection.timeout_s = min(connection.timeout_s, admin.REQUEST_TIMEOUT_S)
        return connection

    return make

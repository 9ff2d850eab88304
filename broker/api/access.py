"""What all calls of a client use: the cluster, connections, ZooKeeper, the time limit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar

from broker import deadlines
from broker.api.errors import Closed, NoZooKeeper, translated
from broker.api.values import UNSET, Timeout, Unset, seconds_of
from broker.client import backoff
from broker.client.cluster import Cluster, Connect
from broker.client.counts import ClientCounts
from broker.client.side import Side
from broker.errors import BrokerError, RegistryUnreachableError
from broker.protocol.responses import HIDDEN_CLUSTER, BrokerAddress

if TYPE_CHECKING:
    from broker.zk.registry import Registry
    from broker.zk.security import ZooKeeperSecurity

_T = TypeVar("_T")
logger = logging.getLogger("pylogctl")
_ATTEMPT_S = 0.1
# beyond the limit that the work of a call is given: it says what was waited for, if it can
_GRACE_S = 0.5
CLOSE_AFTER_ERROR_S = 1.0
LAST_LOOK_S = 1.0
"""Beyond the limit of a wait on purpose: whether it was for nothing, also of a wait of 0 s."""
_NO_TIMEOUT_S = 3600.0  # of one response, where calls have no limit


def limit_of(timeout: float | None) -> float:
    """Return a timeout in seconds where there has to be one."""
    return _NO_TIMEOUT_S if timeout is None else timeout


def repeated(action: Callable[[], _T], retries: int | None) -> _T:
    """Return what an action does, repeated after failures that may pass, until the deadline."""
    failures = 0
    while True:
        try:
            return action()
        except BrokerError as error:
            failures += 1
            wait_s = backoff.wait_s(failures)
            # an attempt that has no time would only say so, and not what is wrong
            needed_s = wait_s + _ATTEMPT_S
            is_last = retries is not None and failures > retries
            if not error.is_retriable or is_last or deadlines.left_s() < needed_s:
                raise
        time.sleep(wait_s)


class ClosedAtEnd:
    """Is closed at the end of a `with` block; within a second after an error, which is raised."""

    def close(self, timeout: Timeout = UNSET) -> None:
        """Close it within `timeout` seconds."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: object, *exc_info: object) -> None:
        if exc_type is None:
            self.close()
            return
        try:
            self.close(CLOSE_AFTER_ERROR_S)
        except BrokerError as error:
            logger.error("%s", error)  # another error is on its way to the program


@dataclass(eq=False, kw_only=True)
class Reach:
    """What a client reaches its cluster by; `timeout_s` and `retries` are of its calls."""

    cluster: Cluster
    connect: Connect
    timeout_s: float | None
    retries: int | None
    registry: Registry | None
    security: ZooKeeperSecurity | None
    resources: ExitStack


class AnyClient:
    """A client, for threads or for an event loop, as another one can be given it."""

    @property
    def _blocking(self) -> Access:
        """The client whose calls are made in threads."""
        raise NotImplementedError


class Access(ClosedAtEnd, AnyClient):
    """A cluster as the calls of a client reach it; each group of calls is a class on top."""

    def __init__(self, reach: Reach) -> None:
        self.closed: bool = False
        self._counts = ClientCounts()
        self._cluster = reach.cluster
        self._connect = reach.connect
        self._timeout_s = reach.timeout_s
        self._retries = reach.retries
        self._registry = reach.registry
        self._security = reach.security
        self._resources = reach.resources
        self._lock = threading.RLock()  # guards the fields of the client
        self._opening_registry = threading.RLock()  # not the other one: it can take long

    @property
    def _blocking(self) -> Access:
        return self

    def _raise_if_closed(self) -> None:
        if self.closed:
            raise Closed("the client is closed")

    @contextmanager
    def _call(self, timeout: Timeout = UNSET) -> Iterator[None]:
        """Run a call: the client must be open, it ends in time, and errors are those of the API."""
        self._raise_if_closed()
        with translated(), deadlines.Limit(self._seconds(timeout)):
            yield

    @contextmanager
    def _asking(self, timeout: Timeout) -> Iterator[Side]:
        """Run a call on the cluster as it is reached within the call's timeout."""
        with self._call(timeout):
            yield self._side(timeout)

    @contextmanager
    def _waiting(self, timeout: Timeout) -> Iterator[float | None]:
        """Run a call that waits for brokers to finish; give the seconds that it may wait."""
        seconds = self._seconds(timeout)
        with self._call(None if seconds is None else seconds + LAST_LOOK_S):
            yield seconds

    def _side(self, timeout: Timeout, wait_s: float = 0.0) -> Side:
        """Return the cluster for the present call: each response may take as long as that may.

        The call is held to its timeout. `wait_s` is what it waits for on purpose, besides.
        """
        limit_s = limit_of(self._seconds(timeout)) + wait_s
        if (call := deadlines.current()) is not None:
            call.set_limit(limit_s + _GRACE_S)
            limit_s = max(0.0, call.started_s + limit_s - time.monotonic())
        response_s = max(limit_s - wait_s, 0.001)  # a socket with 0 would not block

        make = self._connect
        return Side(self._cluster, lambda at: make(at).limited_to(response_s), limit_s)

    def _seconds(self, timeout: Timeout) -> float | None:
        """Return the seconds that a call may take, by default the client's; None for no limit."""
        return seconds_of(self._timeout_s if isinstance(timeout, Unset) else timeout)

    def _repeated(self, action: Callable[[], _T]) -> _T:
        """Return what an action of the present call does, repeated after failures that may pass."""
        return repeated(action, self._retries)

    def _ask(self, ask: Callable[[Side], _T], timeout: Timeout) -> _T:
        """Call `ask` within the timeout of a call; repeat it after failures that may pass."""
        with self._asking(timeout) as side:
            return self._repeated(lambda: ask(side))

    def _zookeeper(self) -> Registry:
        """Return the registry, opened by the first call that needs it; `NoZooKeeper` if none is."""
        with deadlines.holding(self._opening_registry, "ZooKeeper"):
            if self._registry is None:
                address = self._cluster_id()
                if not address:
                    raise NoZooKeeper("these brokers have no ZooKeeper, which this call needs")
                if address == HIDDEN_CLUSTER:
                    raise NoZooKeeper(
                        "this call needs the brokers' ZooKeeper, of which they tell only clients "
                        "that log in: give its address: connect(zookeeper=...)"
                    )
                from broker.zk.registry import Registry  # late: loads kazoo

                of_brokers = self._connect(BrokerAddress(-1, "", 0)).security  # never opened
                registry = Registry(
                    address,
                    security=self._security,
                    speaks_tls=of_brokers is not None and of_brokers.has_tls,
                )
                try:
                    registry.start(
                        deadlines.left_s(limit_of(self._timeout_s)), retries_refused=False
                    )
                except RegistryUnreachableError as error:
                    raise NoZooKeeper(
                        f"the brokers' ZooKeeper, {address}, cannot be reached from here: {error}; "
                        "give its address: connect(zookeeper=...)"
                    ) from error
                with self._lock:
                    if not self.closed:
                        self._resources.callback(registry.stop)
                        self._registry = registry
                        return registry
                registry.stop()
                raise Closed("the client is closed")
            return self._registry

    def _cluster_id(self) -> str:
        """Return the brokers' address of ZooKeeper, or `HIDDEN_CLUSTER`; empty if there is none."""
        failure: BrokerError | None = None
        for address in self._cluster.brokers():
            connection = self._connect(address)
            try:
                if (hello := connection.hello()) is not None:
                    return hello.cluster_id
            except BrokerError as error:
                failure = error  # another one may respond
            finally:
                connection.close()
        if failure is not None:
            raise failure
        return ""

"""The way of a producer to one broker, wherever that broker is: connect, move, reconnect.

A broker is known by its id; where it listens is asked again for every attempt to connect, so that
one that comes back at another address is found there. One thread at a time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.errors import BrokerError, BrokerUnreachableError
from broker.protocol.extension_requests import Acks, HelloRequest
from broker.protocol.requests import FetchRequest
from broker.protocol.responses import BrokerAddress

_FIRST_PAUSE_S = 0.02
_MAX_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class ReconnectRule:
    """When a connection is given up for a new one, so that load balancers get their turn.

    Args:
        requests: after so many requests; 0 for never.
        interval_s: after so many seconds; negative for never. The first time comes at random
            within it, so that producers started together do not reconnect together.

    Source: Kafka 0.7 `reconnect.interval` and `reconnect.time.interval.ms` of `SyncProducer`.
    """

    requests: int = 0
    interval_s: float = -1.0


NO_RECONNECT = ReconnectRule()


@dataclass(frozen=True, slots=True)
class SendRules:
    """How a producer sends, in whichever thread.

    Args:
        acks: when a broker acknowledges.
        retries: how often a set is sent again.
        backoff_s: how long to wait before the first of these times; see `retry_wait_s`.
        timeout_s: how long a broker may take to commit a set.
        connect_timeout_s: how long a broker may be nowhere, or refuse connections, until an
            attempt to send to it has failed, on top of what one `Connection` takes.
        reconnect: when connections are made anew.
    """

    acks: Acks = Acks.COMMITTED
    retries: int = 3
    backoff_s: float = 0.1
    timeout_s: float = 30.0
    connect_timeout_s: float = 0.0
    reconnect: ReconnectRule = NO_RECONNECT


def retry_wait_s(backoff_s: float, failures: int) -> float:
    """Return how long to wait before sending again: the backoff, then 4 and 16 times as long.

    Args:
        backoff_s: the first wait.
        failures: in a row so far, at least 1.
    """
    return backoff_s * 4.0 ** min(failures - 1, 2)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


class Link:
    """A connection to whichever address a broker has.

    Args:
        find: says where the broker is; raises `BrokerUnreachableError` if it is nowhere.
        connect: makes the connections.
        home: the broker's id; -1 if any broker will do.
        rule: when to reconnect.
    """

    def __init__(
        self,
        find: Callable[[], BrokerAddress],
        connect: Connect,
        *,
        home: int = -1,
        rule: ReconnectRule = NO_RECONNECT,
    ) -> None:
        self._find = find
        self._connect = connect
        self._home = home
        self._rule = rule
        self._connection: Connection | None = None
        self._is_07 = False
        self._request_count = 0
        self._marked_s = time.monotonic() - random.random() * max(0.0, rule.interval_s)

    def open(
        self, patience_s: float = 0.0, pause: Callable[[float], bool] | None = None
    ) -> Connection:
        """Return an open connection to the broker, wherever it is now.

        Args:
            patience_s: for how long a broker that is nowhere, or refuses, is tried again, on top
                of what a `Connection` does.
            pause: waits for so many seconds, or less if something has changed, and says whether
                there is any use in going on.

        Raises:
            BrokerUnreachableError: it is not there, or another broker is.
            BrokerError: see `Connection.hello`; or the registry cannot say where it is.
        """
        connection = self._connection
        if connection is not None and connection.is_open:
            return connection
        last_s = time.monotonic() + patience_s
        pause_s = _FIRST_PAUSE_S
        while (connection := self._try_open(is_last=time.monotonic() + pause_s >= last_s)) is None:
            if not (pause or _sleep)(pause_s):
                last_s = time.monotonic()
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)
        return connection

    def _try_open(self, *, is_last: bool) -> Connection | None:
        """Return a connection; None if the broker cannot be reached, an error the last time."""
        try:
            connection = self._connection = self._connect_again(self._connection)
            self._check_identity(connection)
        except BrokerUnreachableError:
            if is_last:
                raise
            return None
        return connection

    def _check_identity(self, connection: Connection) -> None:
        """Refuse another broker: the address of one that went away can become that of another."""
        hello = connection.hello()
        self._is_07 = hello is None
        if hello is not None and self._home not in (-1, hello.broker_id):
            connection.close()
            raise BrokerUnreachableError(
                f"{connection.name} calls itself broker {hello.broker_id}: "
                f"broker {self._home} is elsewhere"
            )

    def _connect_again(self, former: Connection | None) -> Connection:
        """Return a connection to where the broker is now.

        Who a connection leads to is asked once, which costs a broker of 0.7 a connection: there
        the former one is kept.
        """
        address = self._find()
        if former is not None and self._is_07 and former.address == address:
            return former
        return self._connect(address)

    @property
    def current(self) -> Connection:
        """Return the connection as it is, to receive the answers of requests sent on it.

        Raises:
            BrokerUnreachableError: there never was one.
        """
        if self._connection is None:
            raise BrokerUnreachableError(f"there is no connection to broker {self._home}")
        return self._connection

    def note_request(self) -> None:
        """Count a request for the rule."""
        self._request_count += 1

    @property
    def is_reconnect_due(self) -> bool:
        """Return whether the rule asks for another connection."""
        rule = self._rule
        if rule.requests and self._request_count >= rule.requests:
            return True
        return rule.interval_s >= 0 and time.monotonic() - self._marked_s >= rule.interval_s

    def reconnect(self) -> None:
        """Give the connection up as the rule asks for; with no answer to come on it.

        First the broker must have read all that was sent there: what is not acknowledged could be
        overtaken by what comes on the next connection.
        """
        self._request_count = 0
        self._marked_s = time.monotonic()
        connection = self._connection
        if connection is not None and connection.is_open:
            with suppress(BrokerError):  # it breaks: then there is nothing to wait for
                if self._is_07:
                    connection.send_request(FetchRequest("hello", 0, 0, 0))
                    connection.receive()
                else:
                    connection.call(HelloRequest())
            connection.close()

    def close(self) -> None:
        """Close the connection; the next `open` makes another one."""
        if self._connection is not None:
            self._connection.close()

    def interrupt_if_moved(self) -> None:
        """Make a request fail that waits for an address where the broker is no more; see below."""
        connection = self._connection
        with suppress(BrokerError):  # it is nowhere, or nobody can say: that is no other address
            if connection is not None and self._find() != connection.address:
                connection.interrupt()

    def interrupt(self) -> None:
        """Make a request that waits in the thread of the link fail at once; from any thread."""
        connection = self._connection
        if connection is not None:
            connection.interrupt()

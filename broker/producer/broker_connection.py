"""The connection of a producer to one broker: found by its id at its present address."""

from __future__ import annotations

import random
import time
from contextlib import nullcontext, suppress
from functools import partial

from broker import deadlines
from broker.client.cluster import Patience
from broker.client.connection import Connection
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    ProducerClosedError,
    UnsupportedVersionError,
)
from broker.producer.parts import Parts
from broker.protocol.client_requests import HelloRequest, StampedPublishRequest
from broker.protocol.requests import FetchRequest
from broker.protocol.responses import BrokerAddress

# attempts to reach a broker where others answer: the choice of a load balancer is its own
MAX_ADDRESSES = 16


class _OtherBrokerError(BrokerUnreachableError):
    """Another broker than expected answers at an address."""

    def __init__(self, message: str, broker_id: int) -> None:
        super().__init__(message)
        self.broker_id = broker_id


class BrokerConnection:
    """The connection to one broker, at its present address.

    Its address is read for every attempt to connect, so that a broker that comes back at another
    address is found there. If another broker answers there, as behind a load balancer, that is
    noted, and the next address is tried at once, or the same again. After each attempt the
    partitions of the producer learn whether the broker is there. Attempts are short if the producer
    has retries: it asks who leads after each.
    """

    def __init__(self, parts: Parts, broker_id: int) -> None:
        self.parts = parts
        self.broker_id = broker_id
        is_brief = parts.settings.retries != 0
        self._attempt = Patience().attempt if is_brief else partial(nullcontext, None)
        self._connection: Connection | None = None
        self._is_07 = False
        self._rule = parts.settings.reconnect
        self.request_count = 0  # for the rule
        self._marked_s = time.monotonic() - random.random() * max(0.0, self._rule.interval_s)
        self._is_aborted = False

    def open(self) -> Connection:
        """Return an open connection to the broker; a refused one is not tried again."""
        # `ProducerClosedError` after `abort`; `BrokerUnreachableError` also if another broker is
        # there
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = self._connect_at_any_address()
        if self._is_aborted:
            raise ProducerClosedError("the producer was closed")
        return connection

    def _find_address(self) -> BrokerAddress:
        return self.parts.cluster.address(self.broker_id)

    def _connect_at_any_address(self) -> Connection:
        for attempt in range(MAX_ADDRESSES):
            address = None
            try:
                address = self._find_address()
                connection = self._connect_to(address)
            except BrokerUnreachableError as error:
                is_last = attempt + 1 == MAX_ADDRESSES or self._is_aborted
                if address is not None and self.is_elsewhere(address, error) and not is_last:
                    continue
                self.parts.partitions.note_presence(self.broker_id, False)
                raise
            self.parts.partitions.note_presence(self.broker_id, True)
            return connection
        raise AssertionError("the last attempt returns or raises")

    def is_elsewhere(self, address: BrokerAddress, error: BrokerUnreachableError) -> bool:
        """Return whether to retry at once: at another address, or as another broker answered."""
        other = error.broker_id if isinstance(error, _OtherBrokerError) else -1
        self.parts.cluster.note_answer(address, other)
        if other >= 0:
            return True
        with suppress(BrokerError):  # an absent broker has no other address
            return self._find_address() != address
        return False

    def _connect_to(self, address: BrokerAddress) -> Connection:
        former = self._connection
        # `hello` costs a broker of 0.7 a connection, so the `Connection` with its result is reused
        if former is None or not self._is_07 or former.address != address:
            former = None
        connection = former or self.parts.connect(address)
        connection.retries_refused = False
        self._connection = connection
        with self._attempt() as limit_s, deadlines.Limit(limit_s):
            self._is_07 = connection.hello() is None
            self._validate(connection)
        return connection

    def _validate(self, connection: Connection) -> None:
        """Close a connection to another broker, and raise."""
        hello = connection.hello()
        if self.parts.settings.is_idempotent and not connection.understands(StampedPublishRequest):
            connection.close()
            raise UnsupportedVersionError(
                f"{connection.name} is too old for enable.idempotence on topics of format 0.7: it "
                "has no version 1 of PUBLISH; upgrade it, or turn the setting off"
            )
        if hello is not None and self.broker_id != hello.broker_id:
            # the address of a broker that is gone can become that of another one
            connection.close()
            raise _OtherBrokerError(
                f"{connection.name} calls itself broker {hello.broker_id}: "
                f"broker {self.broker_id} is elsewhere",
                hello.broker_id,
            )

    @property
    def current(self) -> Connection:
        """Return the connection that requests were sent on; an error if there never was one."""
        if self._connection is None:
            raise BrokerUnreachableError(f"there is no connection to broker {self.broker_id}")
        return self._connection

    @property
    def is_reconnect_due(self) -> bool:
        """Return whether the rule requires a new connection."""
        rule = self._rule
        if rule.requests and self.request_count >= rule.requests:
            return True
        return rule.interval_s >= 0 and time.monotonic() - self._marked_s >= rule.interval_s

    def reconnect(self) -> None:
        """Close the connection, with no response outstanding, as the rule requires."""
        # First the broker must have read all requests: those without acknowledgements could be
        # overtaken by requests on the next connection.
        self.request_count = 0
        self._marked_s = time.monotonic()
        connection = self._connection
        if connection is not None and connection.is_open:
            with suppress(BrokerError):  # a broken connection has nothing to wait for
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

    def retry_now(self) -> None:
        """Make a request to a former address of the broker fail; from any thread."""
        connection = self._connection
        with suppress(BrokerError):  # an absent broker has no other address
            if connection is not None and self._find_address() != connection.address:
                connection.interrupt()

    def abort(self) -> None:
        """Make a request under way, and every later one, fail at once; from any thread."""
        self._is_aborted = True
        connection = self._connection
        if connection is not None:
            connection.interrupt()

"""How the engine of producers reaches brokers in an event loop, where nothing may wait.

A broker that is not connected to has no room for sets until it is, or until the attempt has failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from broker import errors
from broker.aio.connection import AsyncConnection
from broker.client.connection import Connection
from broker.producer.broker_connection import MAX_ADDRESSES, BrokerConnection
from broker.producer.broker_sender import BrokerSender
from broker.producer.parts import Parts
from broker.protocol.client_connection import MAX_RESPONSE_BYTES
from broker.protocol.client_requests import Acks
from broker.protocol.primitives import Buffer
from broker.protocol.responses import BrokerAddress, HelloResponse

logger = logging.getLogger(__name__)

InThread = Callable[..., Coroutine[Any, Any, Any]]
"""Runs a function with arguments in a thread, and returns its result."""


class LoopConnection(Connection):
    """An open connection whose `send` only buffers, and whose `receive` takes what has come.

    `wake` is called when there is something to receive, or room to send.
    """

    def __init__(
        self, wire: AsyncConnection, wake: Callable[[], object], *, has_responses: bool
    ) -> None:
        super().__init__(wire.address, client_id=wire.client_id)
        self.wire = wire
        self._wake = wake
        self._has_responses = has_responses and wire.hello is not None
        self._responses: deque[asyncio.Future[memoryview]] = deque()
        self._end: errors.BrokerError | None = None  # why it was lost, until it is raised
        wire.on_lost = self._note_end
        wire.on_writable = wake

    def _note_end(self, error: errors.BrokerError) -> None:
        self._end = error
        self._wake()

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open."""
        return self.wire.is_open

    def hello(self) -> HelloResponse | None:
        """Return the broker's response to a hello, or None if it knows only 0.7's requests."""
        return self.wire.hello

    def send(self, *parts: Buffer) -> None:
        """Send a frame, given in parts; an error if the connection is lost."""
        if self._has_responses:
            response = self.wire.expect_frame()
            response.add_done_callback(lambda _: self._wake())
            self._responses.append(response)
        self.wire.send(*parts)

    def has_received(self, within_s: float = 0.0) -> bool:
        """Return whether `receive` gives a response, or says why there is none."""
        return self._responses[0].done() if self._responses else self._end is not None

    def receive(self, max_bytes: int = MAX_RESPONSE_BYTES) -> memoryview:
        """Return the next response, which has come."""
        if self._responses:
            return self._responses.popleft().result()
        end, self._end = self._end, None
        raise end or errors.BrokerUnreachableError(f"the connection to {self.name} is closed")

    def close(self) -> None:
        """Close the connection once what is buffered is sent; responses are dropped."""
        for response in self._responses:
            if not response.cancel() and not response.cancelled():
                response.exception()  # else the event loop logs that nobody has read it
        self._responses.clear()
        self._end = None
        self.wire.close()


class LoopBroker(BrokerConnection):
    """The connection to one broker, made by a task when it is first wanted."""

    _connection: LoopConnection | None

    def __init__(
        self, parts: Parts, broker_id: int, wake: Callable[[], object], in_thread: InThread
    ) -> None:
        super().__init__(parts, broker_id)
        self._wake = wake
        self._in_thread = in_thread
        self._has_responses = parts.settings.acks is not Acks.NONE
        self._connecting: asyncio.Task[None] | None = None
        self._failure: errors.BrokerError | None = None  # of the last attempt, until it is raised

    @property
    def wire(self) -> AsyncConnection | None:
        """Return the connection in the event loop, if there was one."""
        return None if self._connection is None else self._connection.wire

    def is_ready(self) -> bool:
        """Return whether a set may be sent, or `open` says why not; else connect."""
        wire = self.wire
        if wire is not None and wire.is_open:
            return wire.is_writable
        if self._failure is not None:
            return True
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect_in_loop())
        return False

    def open(self) -> Connection:
        """Return the connection, which `is_ready` has found; else why there is none."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return self.current

    async def _connect_in_loop(self) -> None:
        try:
            self._connection = await self._find()
            self.parts.partitions.note_presence(self.broker_id, True)
        except errors.BrokerError as error:
            self._failure = error
            self.parts.partitions.note_presence(self.broker_id, False)
        except Exception as error:  # a bug costs the messages, not the producer
            logger.exception("failure while connecting to broker %d", self.broker_id)
            self._failure = errors.BrokerError(f"failure while connecting: {error!r}")
        finally:
            self._connecting = None
            self._wake()

    async def _find(self) -> LoopConnection:
        """Connect at any address, as `BrokerConnection` does."""
        attempts = 0
        while True:
            attempts += 1
            address = None
            try:
                address = await self._in_thread(self._find_address)
                return await self._connect_at(address)
            except errors.BrokerUnreachableError as error:
                if address is None or attempts == MAX_ADDRESSES:
                    raise
                if not await self._in_thread(self.is_elsewhere, address, error):
                    raise

    async def _connect_at(self, address: BrokerAddress) -> LoopConnection:
        wire = self.wire
        # `hello` costs a broker of 0.7 a connection, so the one that has its result is reused
        if wire is None or wire.hello is not None or wire.address != address:
            like = self.parts.connect(address)  # never opened
            wire = AsyncConnection(
                address,
                timeout_s=like.timeout_s,
                connect_timeout_s=like.connect_timeout_s,
                client_id=like.client_id,
                security=like.security,
            )
        with self._attempt() as limit_s:
            await wire.open(limit_s)
        connection = LoopConnection(wire, self._wake, has_responses=self._has_responses)
        self._validate(connection)
        return connection

    def close(self) -> None:
        """Close the connection, and give up an attempt to make one."""
        if self._connecting is not None:
            self._connecting.cancel()
        super().close()


class LoopSender(BrokerSender):
    """Sends message sets to one broker once it is connected to."""

    notes_ends_07 = False
    connection: LoopBroker

    def has_room(self, size_bytes: int) -> bool:
        """Return whether a set may be sent now."""
        if self.must_reconnect and self.is_idle:
            self.connection.close()
            self.must_reconnect = False
        return self.connection.is_ready() and super().has_room(size_bytes)

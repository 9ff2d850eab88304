"""What all parts of an asyncio client use: its loop, its threads, connections to brokers.

What is not the data path (metadata, leaders, places in partitions, ZooKeeper, orders) is done by a
client for threads, in threads of this client: not in the loop's default ones, so that a program
that uses those up does not stop it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from broker.aio.connection import AsyncConnection
from broker.aio.send_loop import SendLoop
from broker.api.access import limit_of
from broker.api.client import Client
from broker.api.errors import Closed
from broker.api.values import Timeout, number_of
from broker.client.cluster import Cluster, Connect
from broker.producer import unclosed
from broker.protocol.responses import BrokerAddress

_LOOK_UPS = 4
_CONNECT_S = 5.0
TURN_MESSAGES = 1000
"""Given out before other tasks of the loop have their turn."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")


class AsyncAccess:
    """A cluster as the tasks of one loop reach it; `client` makes the calls in threads."""

    def __init__(
        self,
        client: Client,
        threads: ThreadPoolExecutor,
        client_id: str,
    ) -> None:
        self.client = client
        self.timeout_s: float | None = client._timeout_s
        self._client_id = client_id
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        # these block: for threads
        self.cluster: Cluster = client._cluster
        self.connect_blocking: Connect = client._connect
        self._threads = threads
        self.sendings: set[SendLoop] = set()  # of producers, until they have ended
        self._is_dropped = False  # it is to be closed once they have
        self.is_closed: bool = False
        # of their own, so that calls that take long hold up no reader
        self._look_ups = ThreadPoolExecutor(_LOOK_UPS, thread_name_prefix="pylogctl-aio-look-up")

    def check(self) -> None:
        """Raise if the client is closed, or if another loop runs than the one it was made in."""
        if self.is_closed:
            raise Closed("the client is closed")
        loop = asyncio.get_running_loop()
        if loop is not self.loop:
            raise RuntimeError(f"the client belongs to {self.loop!r}, and {loop!r} is running")

    async def in_thread(self, call: Callable[_P, _R], /, *args: _P.args, **named: _P.kwargs) -> _R:
        """Return the result of a call in a thread; if this is cancelled, the call continues."""
        self.check()
        return await self.loop.run_in_executor(self._threads, partial(call, *args, **named))

    async def look_up(self, call: Callable[_P, _R], /, *args: _P.args, **named: _P.kwargs) -> _R:
        """Return what a call asks brokers in a thread, in the client's time."""

        def made() -> _R:
            with self.client._call():
                return call(*args, **named)

        return await self._looked_up(made)

    async def repeated(self, timeout: Timeout, call: Callable[[], _R]) -> _R:
        """Return the same, in the time of a call, repeated after failures that may pass."""

        def made() -> _R:
            with self.client._call(timeout):
                return self.client._repeated(call)

        return await self._looked_up(made)

    async def _looked_up(self, made: Callable[[], _R]) -> _R:
        self.check()
        return await self.loop.run_in_executor(self._look_ups, made)

    def seconds(self, timeout: Timeout) -> float | None:
        """Return the seconds that a timeout means."""
        return self.client._seconds(timeout)

    @property
    def may_retry(self) -> bool:
        """Return whether calls are repeated."""
        return self.client._retries != 0

    async def connect(
        self,
        address: BrokerAddress,
        timeout_s: float | None = None,
        limit_s: float | None = None,
    ) -> AsyncConnection:
        """Return a connection to a broker, with a timeout or the client's, opened in `limit_s`."""
        self.check()
        timeout_s = limit_of(self.timeout_s) if timeout_s is None else timeout_s
        connection = AsyncConnection(
            address,
            timeout_s=timeout_s,
            connect_timeout_s=min(timeout_s, _CONNECT_S),
            client_id=self._client_id,
            security=self.connect_blocking(address).security,  # of one that is never opened
        )
        await connection.open(limit_s)
        return connection

    async def close(self, timeout: Timeout) -> None:
        """Close the client for threads, and end its threads; if this is cancelled, they do it."""
        await asyncio.shield(asyncio.wrap_future(self._close(timeout)))

    def drop(self) -> None:
        """End what the program has not closed; in the loop, which does not wait for it."""
        self._is_dropped = True
        for sending in list(self.sendings):
            sending.finish()
        self._close_dropped()

    def _note_end(self, sending: SendLoop) -> None:
        """Note that the messages of a producer are sent, or given up."""
        self.sendings.discard(sending)
        self._close_dropped()

    def _close_dropped(self) -> None:
        if self._is_dropped and not self.is_closed and not self.sendings:  # these use threads
            self._close(unclosed.LIMIT_S)

    def _close(self, timeout: Timeout) -> Future[None]:
        self.is_closed = True
        closed = self._threads.submit(self.client.close, timeout)
        self._threads.shutdown(wait=False)
        self._look_ups.shutdown(wait=False)
        return closed


async def polled(messages: AsyncIterator[_T], timeout: float) -> _T | None:
    """Return the next message; None after so many seconds, or at the end."""
    number_of("timeout", timeout, 0)
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await anext(messages, None)
    except TimeoutError:
        if limit.expired():
            return None
        raise


class OneTask:
    """A context for one task at a time: `RuntimeError` for a second one."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_in_use = False

    def __enter__(self) -> None:
        if self._is_in_use:
            raise RuntimeError(f"another task uses this {self._what} at this moment")
        self._is_in_use = True

    def __exit__(self, *exc_info: object) -> None:
        self._is_in_use = False

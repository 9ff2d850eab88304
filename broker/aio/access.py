"""What all parts of an asyncio client use: its loop and its threads.

What does not send messages (reads, metadata, leaders, ZooKeeper, orders) is done by a client for
threads, in threads of this client: not in the loop's default ones, so that a program
that uses those up does not stop it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar

from broker.aio.send_loop import SendLoop
from broker.api.access import CLOSE_AFTER_ERROR_S
from broker.api.client import Client
from broker.api.errors import Closed
from broker.api.values import UNSET, Timeout
from broker.errors import BrokerError
from broker.producer import unclosed

_LOOK_UPS = 4

logger = logging.getLogger("pylogctl")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class AsyncClosedAtEnd:
    """Is closed at the end of an `async with` block, as `ClosedAtEnd`."""

    async def close(self, timeout: Timeout = UNSET) -> None:
        """Close it within `timeout` seconds."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: object, *exc_info: object) -> None:
        if exc_type is None:
            await self.close()
            return
        try:
            await self.close(CLOSE_AFTER_ERROR_S)
        except BrokerError as error:
            logger.error("%s", error)  # another error is on its way to the program


class Opened:
    """Is opened by `await` or `async with`."""

    async def _open(self) -> object:
        raise NotImplementedError

    def __await__(self) -> Generator[Any, None, Self]:
        """Begin, and return this object."""
        yield from self._open().__await__()
        return self

    async def __aenter__(self) -> Self:
        await self._open()
        return self


class AsyncAccess:
    """A cluster as the tasks of one loop reach it; `client` makes the calls in threads."""

    def __init__(self, client: Client, threads: ThreadPoolExecutor) -> None:
        self.client = client
        self.timeout_s: float | None = client._timeout_s
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
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

        self.check()
        return await self.loop.run_in_executor(self._look_ups, made)

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

"""Messages that a thread takes from brokers, chunk by chunk, and a task gives out in the loop."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from broker.aio.access import AsyncAccess, Opened
from broker.api.errors import Closed
from broker.api.values import number_of
from broker.protocol.codec import Message

TURN_MESSAGES = 1000
"""Given out before other tasks of the loop have their turn."""

_S = TypeVar("_S")
_T = TypeVar("_T")


class Loading(Opened, AsyncIterator[Message], Generic[_S]):
    """The messages of a source for threads; `async for`, `async with` or `await` opens it.

    The source is used by a thread of its own, one call at a time. A call whose task is cancelled
    continues, and the next one takes its result: no chunk is lost.
    """

    _what: str
    _closed_text: str

    def __init__(self, access: AsyncAccess) -> None:
        self._access = access
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"pylogctl-aio-{self._what}")
        self._source: _S | None = None
        self._beginning: asyncio.Task[None] | None = None
        self._loading: asyncio.Future[Any] | None = None
        self._left: Iterator[Message | None] = iter(())
        self._in_hand: Message | None = None
        self._is_in_use = False
        self._is_closed = False

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """End the iteration; by any task."""

    @abstractmethod
    async def _made(self) -> _S:
        """Return the source, which a thread opens."""

    @abstractmethod
    async def _load(self) -> bool:
        """Take the messages of the next chunk in hand; return False at the end."""

    async def _open(self) -> _S:
        """Return the source once it is open."""
        self._access.check()
        source = await self._begun()
        if source is None:
            raise Closed(self._closed_text)
        return source

    async def _begun(self) -> _S | None:
        """Return the source once it is open, None if this was closed; cancellation ends nothing."""
        if self._source is None and not self._is_closed:
            self._access.check()
            beginning = self._beginning = self._beginning or asyncio.create_task(self._begin())
            try:
                await asyncio.shield(beginning)
            finally:
                if beginning.done():
                    self._beginning = None
        return None if self._is_closed else self._source

    async def _begin(self) -> None:
        try:
            if not self._is_closed:
                self._source = await self._made()
        finally:
            if self._is_closed:  # meanwhile
                self._beginning = None
                await self.close()

    async def __anext__(self) -> Message:
        """Return the next message; see the class."""
        while True:
            for message in self._left:
                if message is not None:
                    self._in_hand = message
                    return message
                break
            else:
                if not await self._load():
                    raise StopAsyncIteration
                continue
            await self._pause()

    async def poll(self, timeout: float) -> Message | None:
        """Return the next message; None after so many seconds without one, and at the end at once.

        Raises:
            Closed: it was closed.
        """
        number_of("timeout", timeout, 0)
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                await self._open()
                return await anext(self, None)
        except TimeoutError:
            if limit.expired():
                return None
            raise

    async def _pause(self) -> None:
        """Give other tasks their turn."""
        await asyncio.sleep(0)

    async def _loaded(self, load: Callable[[_S], _T | tuple[()] | None]) -> _T | None:
        """Return the next thing that `load` returns in the thread; None at the end.

        If nothing came for a moment, it returns something empty and is called again, so that other
        calls have their turn in the thread.
        """
        with self._alone():
            while (source := await self._begun()) is not None:
                if self._loading is None:
                    self._loading = self._access.loop.run_in_executor(self._thread, load, source)
                    self._loading.add_done_callback(take_error)
                if not self._loading.done():  # else `poll` of 0 s takes what is there
                    await asyncio.wait([self._loading])
                if self._is_closed:
                    break
                loaded, self._loading = self._loading, None
                found: _T | tuple[()] | None = loaded.result()
                if found is None or found:
                    return found or None
            return None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one task at a time in: `RuntimeError` for a second one."""
        if self._is_in_use:
            raise RuntimeError(f"another task uses this {self._what} at this moment")
        self._is_in_use = True
        try:
            yield
        finally:
            self._is_in_use = False

    def end(self) -> None:
        """End the iteration, also for a task that waits; the source is still to be closed."""
        self._is_closed = True
        self._left = iter(())
        if self._loading is not None:
            self._loading.cancel()


def take_error(loaded: asyncio.Future[Any]) -> None:
    """Take an error that no task waits for any more, so that it is not reported as unseen."""
    if not loaded.cancelled():
        loaded.exception()

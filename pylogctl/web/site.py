"""What all requests share: the client of the cluster, threads for its calls, and what is allowed.

A `Route` is a row of the table that the application serves. Its handler is a coroutine of the
request; it gets at the cluster through `site_of(request)`:

    async def show(request: Request) -> Response:
        topics = await site_of(request).read(lambda client: client.topics())
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from broker.api.client import Client
from pylogctl.web.problems import ProblemError
from pylogctl.web.sampler import Sampler

logger = logging.getLogger("pylogctl.web")

_T = TypeVar("_T")
_THREADS = 8
_SCANS = 4

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """A row of the table of routes; `request` and `response` are of JSON bodies, for OpenAPI.

    `query` has the parameters in its fields; statuses besides `status` with the same body are in
    `also`. The docstring of the handler is the summary. A route that `changes` is served only if
    changes are allowed, and only to scripts of the own pages or to programs; one that
    `shows_messages` only if messages are not hidden.
    """

    method: str
    path: str
    handler: Handler
    changes: bool = False
    shows_messages: bool = False
    query: type[msgspec.Struct] | None = None
    request: type[msgspec.Struct] | None = None
    response: type[msgspec.Struct] | None = None
    status: int = 200
    also: tuple[int, ...] = ()
    media_type: str = "application/json"


@dataclass(slots=True)
class Site:
    """The cluster that is served; calls of `client` block, so they run in a few threads."""

    client: Client
    allow_changes: bool = False
    hides_messages: bool = False
    sampler: Sampler = field(init=False)
    pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_THREADS, thread_name_prefix="web")
    )
    _scans: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_SCANS))

    def __post_init__(self) -> None:
        self.sampler = Sampler(self.client)

    async def read(self, work: Callable[[Client], _T]) -> _T:
        """Return what `work` does with the client in a thread; it changes nothing."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, work, self.client)

    async def scan(self, work: Callable[[Client], _T]) -> _T:
        """Do as `read` what may take seconds, and leave threads for the others."""
        async with self._scans:
            return await self.read(work)

    async def change(self, request: Request, what: str, work: Callable[[Client], _T]) -> _T:
        """Do what changes the cluster in a thread; `what` goes to the log with its outcome.

        Raises:
            ProblemError: changes are not allowed.
        """
        if not self.allow_changes:
            raise read_only()
        who = f"{request.state.user} request {request.state.request_id}"
        try:
            result = await self.read(work)
        except BaseException as error:
            logger.warning("%s: %s failed: %s", who, what, error)
            raise
        logger.warning("%s: %s: %.1000r", who, what, result)
        return result


def read_only() -> ProblemError:
    """Return the problem of a change where none is allowed."""
    return ProblemError(
        403,
        "this server is read-only",
        code="READ_ONLY",
        hints=("pylogctl web --allow-changes allows changes",),
    )


def site_of(request: Request) -> Site:
    """Return what is served."""
    site: Site = request.app.state.site
    return site

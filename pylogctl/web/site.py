"""What all requests share: the client of the cluster, threads for its calls, and what is allowed.

A handler is a coroutine of a `Call`, of what the route declares as its query or body, and of the
parameters of its path; the table of a module adds it:

    @ROUTES.at("/topics/{topic}", response=TopicDocument)
    async def topic(call: Call, topic: str) -> Struct:
        found = await call.read(lambda client: client.describe(topic))
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from broker.api.client import Client
from pylogctl.web.sampler import StatusSampler

logger = logging.getLogger("pylogctl.web")

_T = TypeVar("_T")
_THREADS = 8
_SCANS = 4

Handler = Callable[..., Awaitable[Any]]  # a response, or what becomes its JSON
_H = TypeVar("_H", bound=Handler)


@dataclass(frozen=True, slots=True)
class WebRoute:
    """A row of the table of routes; `request` and `response` are of JSON bodies.

    `query` has the parameters in its fields; statuses besides `status` with the same body are in
    `also`. The docstring of the handler is the summary. A route that `changes` is served only if
    changes are allowed, and only to scripts of the own pages or to programs; one that
    `shows_messages` only if messages are not hidden. One that only `asks` changes nothing, though
    its question is a body.
    """

    method: str
    path: str
    handler: Handler
    shows_messages: bool = False
    asks: bool = False
    query: type[Struct] | None = None
    request: type[Struct] | None = None
    response: Any = None  # a type
    status: int = 200
    also: tuple[int, ...] = ()
    media_type: str = "application/json"

    @property
    def changes(self) -> bool:
        """Whether it changes the cluster."""
        return self.method != "GET" and not self.asks


@dataclass
class WebRoutes:
    """The routes of a module, whose handlers its decorators add."""

    base: str = ""  # before each path
    common: dict[str, Any] = field(default_factory=dict)  # fields of all routes, unless given
    rows: list[WebRoute] = field(default_factory=list)

    def at(self, path: str, method: str = "GET", **given: Any) -> Callable[[_H], _H]:
        """Return the decorator of a handler; `given` are other fields of its route."""

        def added(handler: _H) -> _H:
            route = WebRoute(method, self.base + path, handler, **(self.common | given))
            self.rows.append(route)
            return handler

        return added


@dataclass(slots=True)
class Site:
    """The cluster that is served; calls of `client` block, so they run in a few threads."""

    client: Client
    allow_changes: bool = False
    hides_messages: bool = False
    sampler: StatusSampler = field(init=False)
    pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_THREADS, thread_name_prefix="web")
    )
    scans: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_SCANS))

    def __post_init__(self) -> None:
        self.sampler = StatusSampler(self.client)


class Call(Request):
    """A request to a route, with what is served."""

    @property
    def site(self) -> Site:
        """The cluster."""
        site: Site = self.app.state.site
        return site

    @property
    def sampler(self) -> StatusSampler:
        """What was seen of the cluster in the last hour."""
        return self.site.sampler

    async def read(self, work: Callable[[Client], _T]) -> _T:
        """Return what `work` does with the client in a thread; it changes nothing."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.site.pool, work, self.site.client)

    async def scan(self, work: Callable[[Client], _T]) -> _T:
        """Do as `read` what may take seconds, and leave threads for the others."""
        async with self.site.scans:
            return await self.read(work)

    async def change(self, what: str, work: Callable[[Client], _T]) -> _T:
        """Do what changes the cluster in a thread; `what` goes to the log with its outcome."""
        who = f"{self.state.user} request {self.state.request_id}"
        try:
            result = await self.read(work)
        except BaseException as error:
            logger.warning("%s: %s failed: %s", who, what, error)
            raise
        logger.warning("%s: %s: %.1000r", who, what, result)
        return result


def respond(
    document: Any,
    status: int = 200,
    headers: Mapping[str, str] = MappingProxyType({}),
    media_type: str = "application/json",
) -> Response:
    """Return a response with a document as JSON."""
    return Response(msgspec.json.encode(document), status, dict(headers), media_type)

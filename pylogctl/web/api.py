"""The JSON API below `/api/v1`: its handlers, and their rows in the table of routes."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pylogctl.web.site import Route, site_of

BASE = "/api/v1"


class HealthCheckDocument(msgspec.Struct):
    """A check of the cluster."""

    name: str
    result: str
    found: list[str]


class HealthDocument(msgspec.Struct):
    """The checks of the cluster; `ok` if none fails."""

    ok: bool
    checks: list[HealthCheckDocument]


def respond(document: msgspec.Struct, status: int = 200) -> Response:
    """Return a response with a document as JSON."""
    return Response(msgspec.json.encode(document), status, media_type="application/json")


async def health(request: Request) -> Response:
    """Check the cluster; 503 if a check fails."""
    found = await site_of(request).read(lambda client: client.health())
    checks = [HealthCheckDocument(one.name, one.result, list(one.found)) for one in found.checks]
    return respond(HealthDocument(found.ok, checks), 200 if found.ok else 503)


class LiveDocument(msgspec.Struct):
    """The server responds."""

    ok: bool


async def live(request: Request) -> Response:
    """Respond, whatever the cluster does."""
    return respond(LiveDocument(ok=True))


ROUTES = (
    Route("GET", f"{BASE}/health", health, "Checks of the cluster.", response=HealthDocument),
    Route(
        "GET", f"{BASE}/health/live", live, "Whether the server responds.", response=LiveDocument
    ),
)

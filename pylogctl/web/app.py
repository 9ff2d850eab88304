"""The application: its table of routes, served behind the guard."""

from __future__ import annotations

import logging
from collections.abc import Collection

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp

from pylogctl.web import api, changes, events, pages
from pylogctl.web.problems import MEDIA_TYPE, ProblemError, problem_error
from pylogctl.web.security import Guard, TokenAuthentication, check_change
from pylogctl.web.site import Handler, Route, Site, read_only, site_of

logger = logging.getLogger("pylogctl.web")

ROUTES: tuple[Route, ...] = (*api.ROUTES, *events.ROUTES, *changes.ROUTES, *pages.ROUTES)


def make_app(
    site: Site, hosts: Collection[str], authenticate: TokenAuthentication | None = None
) -> ASGIApp:
    """Return the ASGI application.

    Args:
        site: the cluster.
        hosts: the exact values of `Host` by which it is reached, with ports.
        authenticate: None if everybody who reaches it may ask.
    """
    by_path: dict[str, dict[str, Route]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, {})[route.method] = route
    app = Starlette(
        routes=[
            StarletteRoute(path, _dispatcher(routes), methods=list(routes))
            for path, routes in by_path.items()
        ],
        exception_handlers={HTTPException: _on_http_error},
    )
    app.router.redirect_slashes = False
    app.state.site = site
    app.state.plans = {}
    app.state.streams = events.Streams()
    app.state.routes = [one for one in ROUTES if one.path.startswith(f"{api.BASE}/")]
    return Guard(app, error_response, hosts, authenticate)


def _dispatcher(routes: dict[str, Route]) -> Handler:
    async def dispatch(request: Request) -> Response:
        route = routes["GET" if request.method == "HEAD" else request.method]
        try:
            if route.changes:
                if not site_of(request).allow_changes:
                    raise read_only()
                check_change(request)
            if route.shows_messages and site_of(request).hides_messages:
                raise ProblemError(403, "this server hides messages", code="MESSAGES_HIDDEN")
            return await route.handler(request)
        except HTTPException:
            raise
        except Exception as error:
            found = problem_error(error)
            if found is None:
                logger.exception("request %s failed", request.state.request_id)
                found = ProblemError(500, "an error that was not expected; the log has it")
            return error_response(request, found)

    return dispatch


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Answer for the router: no such path, or no such method on it."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        detail = f"{request.method} is not possible here"
    elif error.status_code == 404:
        detail = f"there is nothing at {request.url.path}"
    else:
        detail = error.detail
    return error_response(
        request, ProblemError(error.status_code, detail, headers=error.headers or {})
    )


def error_response(request: Request, error: ProblemError) -> Response:
    """Return a problem document, for browsers outside the API a page."""
    problem = msgspec.structs.replace(error.problem, instance=request.state.request_id)
    if not request.url.path.startswith("/api/") and _wants_page(request):
        return HTMLResponse(pages.render_error(problem), problem.status, error.headers)
    body = msgspec.json.encode(problem)
    return Response(body, problem.status, error.headers, MEDIA_TYPE)


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")

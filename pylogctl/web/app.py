"""The application: its table of routes, served behind the guard."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar
from urllib.parse import unquote

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from pylogctl.web import api, changes, events, registry
from pylogctl.web.pages import messages_view, rendering, views
from pylogctl.web.problems import (
    MEDIA_TYPE,
    REGISTRY_MEDIA_TYPE,
    FieldError,
    ProblemError,
    problem_error,
    registry_error,
)
from pylogctl.web.security import Guard, TokenAuthentication, check_change
from pylogctl.web.site import Call, Site, WebRoute, respond

logger = logging.getLogger("pylogctl.web")

_S = TypeVar("_S", bound=msgspec.Struct)
_AT = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_MODULES = (api, events, changes, registry, views, messages_view, rendering)

ROUTES = tuple(route for module in _MODULES for route in module.ROUTES.rows)
DESCRIBED = tuple(
    one
    for one in ROUTES
    if one.path.startswith(f"{api.BASE}/") or registry.is_registry_path(one.path)
)
"""The routes of the JSON API, and of the schema registry."""


def make_app(
    site: Site, hosts: Collection[str], authenticate: TokenAuthentication | None = None
) -> ASGIApp:
    """Return the ASGI application.

    Args:
        site: the cluster.
        hosts: the exact values of `Host` by which it is reached, with ports.
        authenticate: None if everybody who reaches it may ask.
    """
    by_path: dict[str, dict[str, WebRoute]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, {})[route.method] = route
    app = Starlette(
        routes=[
            Route(path, _dispatcher(routes), methods=list(routes))
            for path, routes in by_path.items()
        ],
        exception_handlers={HTTPException: _on_http_error},
    )
    app.router.redirect_slashes = False
    app.state.site = site
    app.state.plans = {}
    app.state.streams = events.EventStreams()
    app.state.routes = DESCRIBED
    return Guard(registry.with_raw_paths(app), error_response, hosts, authenticate)


def _dispatcher(routes: dict[str, WebRoute]) -> Callable[[Request], Awaitable[Response]]:
    async def dispatch(request: Request) -> Response:
        route = routes["GET" if request.method == "HEAD" else request.method]
        call = Call(request.scope, request.receive)
        try:
            _check(route, call)
            given: list[msgspec.Struct] = []
            if route.query is not None:
                given.append(_query_of(call, route.query))
            if route.request is not None:
                given.append(await _body_of(call, route.request))
            wanted = [one for one in given if one.__struct_fields__]
            found = await route.handler(call, *wanted, **_path_params(call))
            if isinstance(found, Response):
                return found
            return respond(found, route.status, media_type=route.media_type)
        except HTTPException:
            raise
        except Exception as error:
            problem = problem_error(error)
            if problem is None:
                logger.exception("request %s failed", call.state.request_id)
                problem = ProblemError(500, "an error that was not expected; the log has it")
            return error_response(request, problem)

    return dispatch


def _path_params(call: Call) -> dict[str, object]:
    """Return the parameters in the path; those of the schema registry are still quoted."""
    if not registry.is_registry_path(call.url.path):
        return call.path_params
    try:
        return {
            name: unquote(one, errors="strict") if isinstance(one, str) else one
            for name, one in call.path_params.items()
        }
    except UnicodeDecodeError as error:
        raise ProblemError(400, f"the path is no UTF-8: {error}") from error


def _check(route: WebRoute, call: Call) -> None:
    """Raise the problem of a request that is not allowed here."""
    if route.changes:
        if not call.site.allow_changes:
            raise ProblemError(
                403,
                "this server is read-only",
                code="READ_ONLY",
                hints=("pylogctl web --allow-changes allows changes",),
            )
        check_change(call)
    if route.shows_messages and call.site.hides_messages:
        raise ProblemError(403, "this server hides messages", code="MESSAGES_HIDDEN")


def _query_of(request: Request, kind: type[_S]) -> _S:
    """Return the parameters of a request; a problem names the one that is wrong."""
    lists = {
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if isinstance(field.default, list) or field.default_factory is list
    }
    given: dict[str, str | list[str]] = {}
    try:
        for name in request.query_params:
            values = request.query_params.getlist(name)
            if name not in lists and len(values) > 1:
                raise msgspec.ValidationError(f"given twice - at `$.{name}`")
            given[name] = values if name in lists else values[0]
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid("parameter", error) from error


async def _body_of(request: Request, kind: type[_S]) -> _S:
    """Return the body of a request; a problem says where it is wrong."""
    body = await request.body()
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _invalid("body", error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProblemError(400, f"the body is no JSON: {error}") from error


def _invalid(what: str, error: msgspec.ValidationError) -> ProblemError:
    match = _AT.fullmatch(str(error))
    message, path = match.groups() if match else (str(error), "")
    pointer = re.sub(r"[.\[]", "/", path.replace("]", ""))
    return ProblemError(
        422,
        f"the {what} {pointer or 'given'} is not valid: {message}",
        errors=(FieldError(pointer, message),),
    )


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
    if registry.is_registry_path(request.url.path):
        body = msgspec.json.encode(registry_error(problem))
        return Response(body, problem.status, error.headers, REGISTRY_MEDIA_TYPE)
    is_page = "text/html" in request.headers.get("accept", "")
    if is_page and not request.url.path.startswith("/api/"):
        return HTMLResponse(rendering.render_error(problem), problem.status, error.headers)
    body = msgspec.json.encode(problem)
    return Response(body, problem.status, error.headers, MEDIA_TYPE)

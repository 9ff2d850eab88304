"""The description of the API, OpenAPI 3.1, made from the table of routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pylogctl import __version__
from pylogctl.web.problems import MEDIA_TYPE, REGISTRY_MEDIA_TYPE, Problem, RegistryError
from pylogctl.web.site import WebRoute

_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")
_REFERENCE = "#/components/schemas/{name}"


def description(routes: Sequence[WebRoute]) -> dict[str, Any]:
    """Return the document about these routes."""
    kinds = {one for route in routes for one in (route.request, route.response) if one}
    found = sorted({*kinds, Problem, RegistryError}, key=str)
    bodies, schemas = msgspec.json.schema_components(found, ref_template=_REFERENCE)
    by_kind = dict(zip(found, bodies, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = _PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {"title": "pylogctl web", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(route: WebRoute, schemas: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    problem = {
        "description": "A problem (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": schemas[Problem]}},
    }
    if route.media_type == REGISTRY_MEDIA_TYPE:
        problem = {
            "description": "An error of a schema registry.",
            "content": {REGISTRY_MEDIA_TYPE: {"schema": schemas[RegistryError]}},
        }
    good: dict[str, Any] = {"description": "Done."}
    if route.response is not None:
        good["content"] = {route.media_type: {"schema": schemas[route.response]}}
    else:
        good["content"] = {route.media_type: {}}
    responses: dict[str, Any] = {str(one): good for one in (route.status, *route.also)}
    responses |= {"4XX": problem, "5XX": problem}
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 0} if kind == "int" else {"type": "string"},
        }
        for name, kind in _PARAMETER.findall(route.path)
    ]
    parameters += _query_parameters(route)
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": inspect.cleandoc(route.handler.__doc__ or ""),
        "parameters": parameters,
        "responses": responses,
        "x-changes": route.changes,
    }
    if route.request is not None:
        content = {route.media_type: {"schema": schemas[route.request]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _query_parameters(route: WebRoute) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    schema = msgspec.json.schema(route.query)["$defs"][route.query.__name__]
    return [
        {"name": name, "in": "query", "required": False, "schema": one}
        for name, one in schema["properties"].items()
    ]

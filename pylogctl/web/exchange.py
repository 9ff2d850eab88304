"""Requests to structs, structs to responses, and cursors of lists."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pylogctl.web.documents import ListQuery, from_query
from pylogctl.web.problems import FieldError, ProblemError

_S = TypeVar("_S", bound=msgspec.Struct)
_T = TypeVar("_T")
_AT = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_secret = secrets.token_bytes(32)  # of this process; cursors of another one are refused


def respond(
    document: msgspec.Struct, status: int = 200, headers: Mapping[str, str] = MappingProxyType({})
) -> Response:
    """Return a response with a document as JSON."""
    return Response(
        msgspec.json.encode(document), status, dict(headers), media_type="application/json"
    )


def query_of(request: Request, kind: type[_S]) -> _S:
    """Return the parameters of a request; a problem names the one that is wrong."""
    try:
        return from_query(kind, request.query_params.multi_items())
    except msgspec.ValidationError as error:
        raise _invalid("parameter", error) from error


async def body_of(request: Request, kind: type[_S]) -> _S:
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


def listed(
    query: ListQuery, items: Iterable[_T], name_of: Callable[[_T], str]
) -> tuple[list[_T], str | None, int]:
    """Return the rows that a query asks for, the cursor of what follows, and how many match."""
    is_down = query.sort.startswith("-")
    found = [one for one in items if query.filter.casefold() in name_of(one).casefold()]
    found.sort(key=name_of, reverse=is_down)
    rest = found
    if query.cursor:
        last = _read_cursor(query.cursor)
        rest = [one for one in found if (name_of(one) < last if is_down else name_of(one) > last)]
    page = rest[: query.limit]
    following = _write_cursor(name_of(page[-1])) if len(rest) > len(page) else None
    return page, following, len(found)


def _write_cursor(key: str) -> str:
    data = key.encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(_sign(data) + data).decode()


def _read_cursor(cursor: str) -> str:
    try:
        signed = base64.b64decode(cursor.encode(), b"-_", validate=True)
    except ValueError:
        signed = b""
    mark, data = signed[:16], signed[16:]
    if not hmac.compare_digest(mark, _sign(data)):
        raise ProblemError(
            422,
            "the cursor is not of this server since it started",
            hints=("begin again without it",),
            errors=(FieldError("/cursor", "not valid any more"),),
        )
    return data.decode("utf-8", "surrogatepass")


def _sign(data: bytes) -> bytes:
    return hmac.digest(_secret, data, hashlib.sha256)[:16]

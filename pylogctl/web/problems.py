"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

import http
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.report import failure_of

MEDIA_TYPE = "application/problem+json"
REGISTRY_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
DOCS = "operations/web/#problems"
_STATUSES = {
    ExitStatus.USAGE: 422,
    ExitStatus.NOT_FOUND: 404,
    ExitStatus.CONFLICT: 409,
    ExitStatus.NOT_ALLOWED: 403,
    ExitStatus.TIMEOUT: 504,
    ExitStatus.CONFIG: 501,
    ExitStatus.UNSUPPORTED: 501,
    ExitStatus.FAILED: 500,
}
_OF_BROKERS = 502


class FieldError(msgspec.Struct):
    """What is wrong in a request; the pointer (RFC 6901) says where."""

    pointer: str
    message: str


class Problem(msgspec.Struct, omit_defaults=True):
    """An error; `code` is a word for programs, `instance` the id of the request in the log."""

    status: int
    title: str
    detail: str
    type: str = ""
    code: str = ""
    instance: str = ""
    hints: list[str] = []
    errors: list[FieldError] = []
    retry_after: int | None = None


class RegistryError(msgspec.Struct):
    """An error as a schema registry tells it; the status, and two digits of its own for some."""

    error_code: int
    message: str


_REGISTRY_CODES = {"INVALID_SCHEMA": 42201, "SCHEMA_NOT_FOUND": 40403}


def registry_error(problem: Problem) -> RegistryError:
    """Return a problem as a schema registry tells it."""
    code = problem.code
    number = int(code) if code.isdecimal() else _REGISTRY_CODES.get(code, problem.status)
    return RegistryError(number, problem.detail)


class ProblemError(Exception):
    """Ends a request with a problem."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str = "",
        hints: tuple[str, ...] = (),
        errors: tuple[FieldError, ...] = (),
        retry_after_s: int | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(detail)
        title = http.HTTPStatus(status).phrase
        self.headers = dict(headers)
        if retry_after_s is not None:
            self.headers["Retry-After"] = str(retry_after_s)
        self.problem = Problem(
            status=status,
            title=title,
            detail=detail,
            type=DOCS,
            code=code or title.upper().replace(" ", "_").replace("-", "_"),
            hints=list(hints),
            errors=list(errors),
            retry_after=retry_after_s,
        )


def problem_error(error: BaseException) -> ProblemError | None:
    """Return the problem for an error of the library, None if it is a bug."""
    if isinstance(error, ProblemError):
        return error
    failure = failure_of(error)
    if failure is None:
        return None
    status = _STATUSES.get(failure.status, _OF_BROKERS)
    return ProblemError(status, failure.message, code=failure.code, hints=failure.hints[:3])

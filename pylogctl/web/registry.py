"""The paths of Confluent's schema registry, so that its serializers and tools work with brokers.

Paths reach the handlers as they were sent, and parameters are unquoted here: a subject may have
slashes. Errors have the numbers that clients know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.api.client import Client
from broker.errors import UnknownSchemaError
from broker.schemas.values import Compatibility, RegisteredSchema, SchemaType
from pylogctl.web.problems import REGISTRY_MEDIA_TYPE, ProblemError
from pylogctl.web.site import Call, WebRoutes

ROUTES = WebRoutes("", {"media_type": REGISTRY_MEDIA_TYPE})
_PATH = re.compile(r"/(subjects|schemas|compatibility|config|mode)(/|$)")
_LAST_VERSION = 2**31 - 1
_SUBJECT_NOT_FOUND, _VERSION_NOT_FOUND, _SCHEMA_NOT_FOUND = 40401, 40402, 40403
_INVALID_SCHEMA, _INVALID_VERSION, _INVALID_LEVEL = 42201, 42202, 42203


class GivenSchema(Struct, rename="camel"):
    """A schema in a request."""

    schema: Annotated[str, Meta(min_length=1)]
    schema_type: SchemaType = SchemaType.AVRO
    references: list[Any] | None = None
    metadata: Any = None
    rule_set: Any = None


class FoundSchema(Struct, rename="camel", omit_defaults=True):
    """A schema of an id; Avro's has no type, as of registries before there were others."""

    schema: str
    schema_type: SchemaType = SchemaType.AVRO


class FoundVersion(Struct, rename="camel", omit_defaults=True):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: str
    schema_type: SchemaType = SchemaType.AVRO


class SchemaId(Struct):
    """The id of a schema."""

    id: int


class SubjectVersion(Struct):
    """A subject, and one of its versions."""

    subject: str
    version: int


class Fitness(Struct):
    """Whether a schema fits, and why not."""

    is_compatible: bool
    messages: list[str]


class Level(Struct):
    """A level of compatibility, in a request and in its response."""

    compatibility: str


class PresentLevel(Struct):
    """The level of compatibility in effect."""

    level: str = field(name="compatibilityLevel")


class Mode(Struct):
    """Whether schemas can be registered."""

    mode: str


class DeleteQuery(Struct):
    """How to delete."""

    permanent: bool = False


class SubjectsQuery(Struct, rename="camel"):
    """Which subjects to list."""

    subject_prefix: str = ""


def is_registry_path(path: str) -> bool:
    """Return whether a path is one of a schema registry."""
    return _PATH.match(path) is not None


def with_raw_paths(app: ASGIApp) -> ASGIApp:
    """Return an application that routes these paths as they were sent, with `%2F` in subjects."""

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if is_registry_path(scope["path"]):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await app(scope, receive, send)

    return routed


def _numbered(status: int, number: int, text: str) -> ProblemError:
    return ProblemError(status, text, code=str(number))


@contextmanager
def _unknown_is(number: int) -> Iterator[None]:
    """Raise what is unknown with its number."""
    try:
        yield
    except UnknownSchemaError as error:
        raise _numbered(404, number, str(error)) from error


def _known(client: Client, subject: str) -> None:
    if subject not in client.subjects():
        raise _numbered(404, _SUBJECT_NOT_FOUND, f"there is no subject '{subject}'")


def _number_of(version: str) -> int | None:
    """Return the number of a version; None for the latest."""
    if version in ("latest", "-1"):
        return None
    if version.isascii() and version.isdecimal() and 1 <= int(version[:11]) <= _LAST_VERSION:
        return int(version)
    raise _numbered(422, _INVALID_VERSION, f"'{version}' is neither a version nor 'latest'")


def _version_of(client: Client, subject: str, number: int | None) -> RegisteredSchema:
    try:
        return client.subject_schema(subject, number)
    except UnknownSchemaError:
        _known(client, subject)
        raise _numbered(
            404, _VERSION_NOT_FOUND, f"subject '{subject}' has no version {number}"
        ) from None


def _supported(given: GivenSchema) -> GivenSchema:
    for name in ("references", "metadata", "rule_set"):
        if getattr(given, name):
            raise _numbered(422, _INVALID_SCHEMA, f"schemas have no {name} here")
    return given


def _document(found: RegisteredSchema) -> FoundVersion:
    return FoundVersion(found.subject, found.version, found.id, found.text, found.type)


@ROUTES.at("/subjects", query=SubjectsQuery, response=list[str])
async def subjects(call: Call, query: SubjectsQuery) -> list[str]:
    """List the subjects."""
    found = await call.read(lambda client: client.subjects())
    return [one for one in found if one.startswith(query.subject_prefix)]


@ROUTES.at("/subjects/{subject}", "POST", asks=True, request=GivenSchema, response=FoundVersion)
async def find_schema(call: Call, given: GivenSchema, subject: str) -> FoundVersion:
    """Find the version of a subject that has a schema."""
    _supported(given)

    def work(client: Client) -> FoundVersion:
        with _unknown_is(_SCHEMA_NOT_FOUND):
            try:
                return _document(client.find_schema(subject, given.schema, given.schema_type))
            except UnknownSchemaError:
                _known(client, subject)
                raise

    return await call.read(work)


@ROUTES.at("/subjects/{subject}", "DELETE", query=DeleteQuery, response=list[int])
async def delete_subject(call: Call, query: DeleteQuery, subject: str) -> list[int]:
    """Delete a subject; ids stay readable."""
    _refuse_permanent(query)

    def work(client: Client) -> list[int]:
        _known(client, subject)
        return client.delete_schema(subject)

    return await call.change(f"delete subject {subject!r}", work)


def _refuse_permanent(query: DeleteQuery) -> None:
    if query.permanent:
        raise ProblemError(422, "ids stay readable, as messages have them: nothing more goes")


@ROUTES.at("/subjects/{subject}/versions", response=list[int])
async def versions(call: Call, subject: str) -> list[int]:
    """List the versions of a subject."""

    def work(client: Client) -> list[int]:
        with _unknown_is(_SUBJECT_NOT_FOUND):
            return client.schema_versions(subject)

    return await call.read(work)


@ROUTES.at("/subjects/{subject}/versions", "POST", request=GivenSchema, response=SchemaId)
async def register_schema(call: Call, given: GivenSchema, subject: str) -> SchemaId:
    """Register a schema as the next version of a subject; one that it has keeps its id."""
    _supported(given)
    found = await call.change(
        f"register a schema of subject {subject!r}",
        lambda client: client.register_schema(subject, given.schema, given.schema_type),
    )
    return SchemaId(found.id)


@ROUTES.at("/subjects/{subject}/versions/{version}", response=FoundVersion)
async def subject_version(call: Call, subject: str, version: str) -> FoundVersion:
    """Tell of a version of a subject."""
    number = _number_of(version)
    return _document(await call.read(lambda client: _version_of(client, subject, number)))


@ROUTES.at("/subjects/{subject}/versions/{version}", "DELETE", query=DeleteQuery, response=int)
async def delete_version(call: Call, query: DeleteQuery, subject: str, version: str) -> int:
    """Delete a version of a subject; its id stays readable."""
    _refuse_permanent(query)
    number = _number_of(version)

    def work(client: Client) -> list[int]:
        return client.delete_schema(subject, _version_of(client, subject, number).version)

    return (await call.change(f"delete version {version!r} of subject {subject!r}", work))[0]


@ROUTES.at("/subjects/{subject}/versions/{version}/schema")
async def version_text(call: Call, subject: str, version: str) -> Response:
    """Return the text of a version."""
    number = _number_of(version)
    found = await call.read(lambda client: _version_of(client, subject, number))
    return Response(found.text, media_type=REGISTRY_MEDIA_TYPE)


@ROUTES.at("/schemas/types", response=list[str])
async def schema_types(call: Call) -> list[str]:
    """List the types of schemas."""
    return list(SchemaType)


@ROUTES.at("/schemas/ids/{id:int}", response=FoundSchema)
async def schema(call: Call, id: int) -> FoundSchema:
    """Return the schema of an id."""
    with _unknown_is(_SCHEMA_NOT_FOUND):
        found = await call.read(lambda client: client.schema(_id_of(id)))
    return FoundSchema(found.text, found.type)


@ROUTES.at("/schemas/ids/{id:int}/versions", response=list[SubjectVersion])
async def schema_versions(call: Call, id: int) -> list[SubjectVersion]:
    """List the subjects and versions that have the schema of an id."""
    with _unknown_is(_SCHEMA_NOT_FOUND):
        found = await call.read(lambda client: client.schema_uses(_id_of(id)))
    return [SubjectVersion(one.subject, one.version) for one in found]


def _id_of(number: int) -> int:
    if not 1 <= number <= _LAST_VERSION:
        raise _numbered(404, _SCHEMA_NOT_FOUND, f"there is no schema {number}")
    return number


@ROUTES.at(
    "/compatibility/subjects/{subject}/versions",
    "POST",
    asks=True,
    request=GivenSchema,
    response=Fitness,
)
async def check_schema(call: Call, given: GivenSchema, subject: str) -> Fitness:
    """Say whether a schema fits as the next version of a subject, as its level says."""
    return await call.read(lambda client: _fitness(client, given, subject, None))


@ROUTES.at(
    "/compatibility/subjects/{subject}/versions/{version}",
    "POST",
    asks=True,
    request=GivenSchema,
    response=Fitness,
)
async def check_version(call: Call, given: GivenSchema, subject: str, version: str) -> Fitness:
    """Say whether a schema fits one version of a subject."""
    number = _number_of(version)

    def work(client: Client) -> Fitness:
        found = _version_of(client, subject, number)
        return _fitness(client, given, subject, found.version)

    return await call.read(work)


def _fitness(client: Client, given: GivenSchema, subject: str, number: int | None) -> Fitness:
    text, kind = _supported(given).schema, given.schema_type
    reasons = client.check_schema(subject, text, kind, version=number)
    return Fitness(not reasons, reasons)


@ROUTES.at("/config", response=PresentLevel)
async def default_level(call: Call) -> PresentLevel:
    """Return the level of subjects without one of their own."""
    return PresentLevel(await call.read(lambda client: client.compatibility()))


@ROUTES.at("/config", "PUT", request=Level, response=Level)
async def set_default_level(call: Call, wanted: Level) -> Level:
    """Set the level of subjects without one of their own."""
    return await _set_level(call, "", wanted)


@ROUTES.at("/config/{subject}", response=PresentLevel)
async def level(call: Call, subject: str) -> PresentLevel:
    """Return the level of a subject: its own, or the default."""
    return PresentLevel(await call.read(lambda client: client.compatibility(subject)))


@ROUTES.at("/config/{subject}", "PUT", request=Level, response=Level)
async def set_level(call: Call, wanted: Level, subject: str) -> Level:
    """Set the level of a subject."""
    return await _set_level(call, subject, wanted)


@ROUTES.at("/config/{subject}", "DELETE", response=PresentLevel)
async def delete_level(call: Call, subject: str) -> PresentLevel:
    """Remove the level of a subject, and return it: the default holds then."""

    def work(client: Client) -> Compatibility:
        before = client.compatibility(subject)
        client.set_compatibility(subject, None)
        return before

    return PresentLevel(await call.change(f"remove the level of subject {subject!r}", work))


async def _set_level(call: Call, subject: str, wanted: Level) -> Level:
    try:
        found = Compatibility(wanted.compatibility.upper())
    except ValueError:
        raise _numbered(
            422, _INVALID_LEVEL, f"the level is one of {', '.join(Compatibility)}"
        ) from None
    await call.change(
        f"set the level of subject {subject!r} to {found}",
        lambda client: client.set_compatibility(subject, found),
    )
    return Level(found)


@ROUTES.at("/mode", response=Mode)
async def mode(call: Call) -> Mode:
    """Say whether this server takes schemas."""
    return Mode("READWRITE" if call.site.allow_changes else "READONLY")

"""Handles requests to the registry of schemas, off the network threads.

What reads goes to the workers; what may have a schema judged, which takes up to seconds, to a
thread of its own. A client learns of no subject that it may not describe.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker import errors
from broker.protocol.client_requests import SchemaOperation as Asked
from broker.protocol.client_requests import SchemasRequest
from broker.protocol.layouts import DATA
from broker.schemas.values import Compatibility, RegisteredSchema, SchemaType
from broker.security.rules import Operation, Resource, ResourceType
from broker.server.requests.broker_parts import BrokerParts
from broker.server.requests.judge import RequestContext, Rights
from broker.server.requests.purgatory import Response
from broker.topic import validate_topic_name

_MAX_ARGUMENT_BYTES = 1 << 20
_NEEDS = {
    Asked.VERSIONS: Operation.DESCRIBE,
    Asked.VERSION: Operation.DESCRIBE,
    Asked.FIND: Operation.DESCRIBE,
    Asked.CHECK: Operation.DESCRIBE,
    Asked.COMPATIBILITY: Operation.DESCRIBE,
    Asked.REGISTER: Operation.WRITE,
    Asked.DELETE: Operation.DELETE,
    Asked.SET_COMPATIBILITY: Operation.ALTER,
}
"""The right to a subject; without one here, the answer leaves out what may not be described."""
_JUDGED = (Asked.REGISTER, Asked.CHECK)


@dataclass(eq=False)
class SchemaHandler:
    """Handles requests to the registry of schemas."""

    broker: BrokerParts

    def handle(self, request: SchemasRequest, context: RequestContext) -> Future[list[Response]]:
        """Answer on another thread; rights to a subject are checked at once."""
        if len(request.arguments) > _MAX_ARGUMENT_BYTES:
            raise errors.InvalidSchemaError(
                f"the request has {len(request.arguments)} bytes; the limit is "
                f"{_MAX_ARGUMENT_BYTES}"
            )
        rights, need = context.rights, _NEEDS.get(request.operation)
        is_of_all = request.operation is Asked.COMPATIBILITY and not request.name
        if rights is not None and need is not None and not is_of_all:
            if request.name:
                rights.check_schemas(need, request.name)
            else:
                rights.operation = need
                rights.check_cluster()
        work = partial(self._respond, request, context)
        if request.operation in _JUDGED:
            return self.broker.judges.submit(context.client.turn_of, work)
        return self.broker.workers.submit(work)

    def _respond(self, request: SchemasRequest, context: RequestContext) -> list[Response]:
        try:
            arguments = json.loads(request.arguments or b"{}")
            answer = self._answer(request, _Arguments(arguments), context.rights)
        except (ValueError, RecursionError, AttributeError) as error:
            raise errors.InvalidRequestError(f"a malformed request for schemas: {error}") from error
        except (KeyError, TypeError) as error:
            raise errors.SchemasUnavailableError(
                f"the registry of schemas is damaged, restore a copy of it: {error!r}"
            ) from error
        except errors.ConfigError as error:  # a package that the broker lacks
            text = "; ".join((str(error), *error.hints))
            raise errors.UnknownServerError(text) from error
        body = json.dumps(answer, ensure_ascii=False).encode()
        return [context.respond(DATA.encode(body))]

    def _answer(self, request: SchemasRequest, given: _Arguments, rights: Rights | None) -> object:
        store, name = self.broker.schemas, request.name
        may = _may(rights)
        match request.operation:
            case Asked.GET:
                found = store.schema(given.number("id"))
                if rights is not None and not self._may_get(found, may):
                    raise errors.UnknownSchemaError(f"there is no schema {found.id}")
                return found
            case Asked.SAME_IDS:
                return [one for one in store.same_ids(given.number("id")) if may(one.subject)]
            case Asked.SUBJECTS:
                return [one for one in store.subjects() if may(one)]
            case Asked.VERSIONS:
                return [*store.versions(name)]
            case Asked.VERSION:
                return store.version(name, given.optional("version"))
            case Asked.REGISTER:
                schema_id = given.optional("id") or 0
                return store.register(name, given.text, given.kind, schema_id=schema_id)
            case Asked.FIND:
                return store.find(name, given.text, given.kind)
            case Asked.CHECK:
                return store.check(name, given.text, given.kind, given.optional("version"))
            case Asked.DELETE:
                return [*store.delete(name, given.optional("version"))]
            case Asked.COMPATIBILITY:
                own = store.own_compatibility(name) if name else None
                return {"effective": store.compatibility(name), "own": own}
            case Asked.SET_COMPATIBILITY:
                store.set_compatibility(name, given.level)
                return None
            case Asked.CONTRACT:
                return self._contract(name, rights)
        raise errors.InvalidRequestError(f"{request.operation} is unknown")

    def _may_get(self, schema: RegisteredSchema, may: Callable[[str], bool]) -> bool:
        """Return whether a client may describe a subject that has, or had, a schema."""
        return any(may(one) for one in self.broker.schemas.subjects_of(schema.id))

    def _contract(self, topic: str, rights: Rights | None) -> object:
        validate_topic_name(topic)
        if rights is not None:
            topic_resource = Resource(ResourceType.TOPIC, topic)
            if not rights.may(Operation.DESCRIBE, topic_resource):
                raise errors.UnknownTopicError(f"there is no topic '{topic}'")
        return self.broker.contract(topic)


def _may(rights: Rights | None) -> Callable[[str], bool]:
    """Return whether a client may describe a subject."""
    if rights is None:
        return lambda _: True
    return lambda name: rights.may(Operation.DESCRIBE, Resource(ResourceType.SCHEMA, name))


@dataclass(frozen=True)
class _Arguments:
    """The arguments of a request; a `ValueError` for one that is missing or malformed."""

    values: Any

    def optional(self, name: str) -> int | None:
        found = self.values.get(name)
        if found is not None and (not isinstance(found, int) or not 0 <= found < 1 << 31):
            raise ValueError(f"'{name}' is no number from 0 to {(1 << 31) - 1}")
        return found

    def number(self, name: str) -> int:
        found = self.optional(name)
        if found is None:
            raise ValueError(f"'{name}' is missing")
        return found

    @property
    def text(self) -> str:
        found = self.values.get("text")
        if not isinstance(found, str):
            raise ValueError("'text' is missing")
        return found

    @property
    def kind(self) -> SchemaType:
        return SchemaType(self.values.get("type", SchemaType.AVRO))

    @property
    def level(self) -> Compatibility | None:
        found = self.values.get("level")
        return None if found is None else Compatibility(found)

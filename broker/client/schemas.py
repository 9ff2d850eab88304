"""The registry of schemas, as clients see it: any broker of the cluster answers."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from broker import errors
from broker.client.cluster import Cluster, Connect
from broker.client.controller_client import ask_any
from broker.protocol.client_requests import SchemaOperation, SchemasRequest
from broker.schemas.values import (
    Compatibility,
    RegisteredSchema,
    SchemaType,
    TopicContract,
    Validation,
)

_KEPT = 1000  # schemas in memory


class SchemaClient:
    """Asks brokers for schemas, and has them register new ones; for any thread if its cluster is.

    All methods raise `UnknownSchemaError` for what is not there, `SchemasUnavailableError` if no
    broker can reach the registry, `BrokerUnreachableError` if none responds, and
    `UnsupportedVersionError` if those that do have no registry.

    Args:
        cluster: knows the live brokers.
        connect: makes connections.
    """

    def __init__(self, cluster: Cluster, connect: Connect) -> None:
        self._cluster, self._connect = cluster, connect
        self._known: OrderedDict[int, RegisteredSchema] = OrderedDict()
        self._lock = threading.Lock()

    def _ask(self, operation: SchemaOperation, name: str = "", **arguments: object) -> Any:
        request = SchemasRequest(operation, name, json.dumps(arguments).encode())
        try:
            body = ask_any(self._cluster.brokers(), self._connect, request)
        except errors.UnsupportedVersionError as error:
            raise errors.UnsupportedVersionError(
                "no broker that answers has a registry of schemas: they are of an older version"
            ) from error
        return json.loads(SchemasRequest.RESPONSE.decode(body))

    def get(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of an id; asked for once, as schemas never change."""
        if not 0 < schema_id < 1 << 31:  # garbage that starts with a zero byte has any
            raise errors.UnknownSchemaError(f"there is no schema {schema_id}")
        with self._lock:
            found = self._known.get(schema_id)
        if found is None:
            found = _schema(self._ask(SchemaOperation.GET, id=schema_id))
            with self._lock:
                self._known[schema_id] = found
                if len(self._known) > _KEPT:
                    self._known.popitem(last=False)
        return found

    def subjects(self) -> list[str]:
        """Return the subjects that have versions, sorted."""
        return [str(one) for one in self._ask(SchemaOperation.SUBJECTS)]

    def versions(self, subject: str) -> list[int]:
        """Return the numbers of a subject's versions, in their order."""
        return [int(one) for one in self._ask(SchemaOperation.VERSIONS, subject)]

    def version(self, subject: str, number: int | None = None) -> RegisteredSchema:
        """Return one version of a subject, by default the latest."""
        return _schema(self._ask(SchemaOperation.VERSION, subject, version=number))

    def register(
        self, subject: str, text: str, type: SchemaType = SchemaType.AVRO, *, id: int = 0
    ) -> RegisteredSchema:
        """Add a version to a subject, unless it has the schema; return it.

        Args:
            subject: its name.
            text: JSON.
            type: its language.
            id: for a copy of another registry: the id to keep. 0 for the next one.

        Raises:
            InvalidSchemaError: the text is no schema, or beyond the bounds.
            IncompatibleSchemaError: it does not fit the versions before it.
            SchemaIdTakenError: another schema has the id, or this one another id.
        """
        given = {"text": text, "type": type, "id": id}
        return _schema(self._ask(SchemaOperation.REGISTER, subject, **given))

    def find(self, subject: str, text: str, type: SchemaType = SchemaType.AVRO) -> RegisteredSchema:
        """Return the version of a subject that has a text."""
        return _schema(self._ask(SchemaOperation.FIND, subject, text=text, type=type))

    def check(
        self,
        subject: str,
        text: str,
        type: SchemaType = SchemaType.AVRO,
        number: int | None = None,
    ) -> list[str]:
        """Return why a schema cannot be the next version of a subject; nothing if it can.

        With a number it is held against that version only.
        """
        given = {"text": text, "type": type, "version": number}
        return [str(one) for one in self._ask(SchemaOperation.CHECK, subject, **given)]

    def delete(self, subject: str, number: int | None = None) -> list[int]:
        """Delete a subject, or one version; return the deleted ones. Ids stay readable."""
        return [int(one) for one in self._ask(SchemaOperation.DELETE, subject, version=number)]

    def compatibility(self, subject: str = "") -> Compatibility:
        """Return the level that a subject's next version must hold; "" is the registry's."""
        return Compatibility(self._ask(SchemaOperation.COMPATIBILITY, subject)["effective"])

    def own_compatibility(self, subject: str) -> Compatibility | None:
        """Return the level that a subject has of its own; None if it has the registry's."""
        own = self._ask(SchemaOperation.COMPATIBILITY, subject)["own"]
        return None if own is None else Compatibility(own)

    def set_compatibility(self, subject: str, level: Compatibility | None) -> None:
        """Set the level of a subject, or with "" the registry's; None takes it away."""
        self._ask(SchemaOperation.SET_COMPATIBILITY, subject, level=level)

    def contract(self, topic: str) -> TopicContract:
        """Return which schemas, and whether envelopes, the messages of a topic have."""
        subject, validation, has_envelopes = self._ask(SchemaOperation.CONTRACT, topic)[:3]
        return TopicContract(subject, Validation(validation), has_envelopes)

    def same_ids(self, schema_id: int) -> list[RegisteredSchema]:
        """Return the versions of all subjects that have an id."""
        return [_schema(one) for one in self._ask(SchemaOperation.SAME_IDS, id=schema_id)]


def _schema(values: Sequence[Any]) -> RegisteredSchema:
    try:
        schema_id, kind, text, subject, version = values
        return RegisteredSchema(int(schema_id), SchemaType(kind), text, subject, int(version))
    except (ValueError, TypeError) as error:
        raise errors.ProtocolError(f"a malformed schema in a response: {error}") from error

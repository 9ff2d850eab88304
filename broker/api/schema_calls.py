"""The calls of a client on schemas: of subjects, their versions, and ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from broker.api.access import Access
from broker.api.values import UNSET, Timeout, text_of, whole_of
from broker.errors import ArgumentError

if TYPE_CHECKING:  # what does the work is imported by the calls, as most programs make none of them
    from collections.abc import Callable

    from broker.client.schemas import SchemaClient
    from broker.schemas.payloads import Decoder, Encoder
    from broker.schemas.values import Compatibility, RegisteredSchema, SchemaType

    SchemaTypeLike = SchemaType | Literal["AVRO", "JSON"]

_T = TypeVar("_T")


class SchemaCalls(Access):
    """The calls of a client on schemas, which brokers keep by subject and version.

    The id of a schema stands in front of each message that was encoded by it.
    """

    _schema_client: SchemaClient | None = None

    def _ask_schemas(self, ask: Callable[[SchemaClient], _T], timeout: Timeout = UNSET) -> _T:
        from broker.client.schemas import SchemaClient

        with self._call(timeout):
            if self._schema_client is None:
                self._schema_client = SchemaClient(self._cluster, self._connect)
            schemas = self._schema_client
            return self._repeated(lambda: ask(schemas))

    def subjects(self, *, timeout: Timeout = UNSET) -> list[str]:
        """Return the names of all subjects."""
        return self._ask_schemas(lambda schemas: schemas.subjects(), timeout)

    def schema_versions(self, subject: str, *, timeout: Timeout = UNSET) -> list[int]:
        """Return the numbers of the versions of a subject; `UnknownSchema` if there is none."""
        text_of("subject", subject)
        return self._ask_schemas(lambda schemas: schemas.versions(subject), timeout)

    def schema(self, id: int, *, timeout: Timeout = UNSET) -> RegisteredSchema:
        """Return the schema of an id, which is remembered; `UnknownSchema` if there is none."""
        whole_of("id", id, 1)
        return self._ask_schemas(lambda schemas: schemas.get(id), timeout)

    def schema_uses(self, id: int, *, timeout: Timeout = UNSET) -> list[RegisteredSchema]:
        """Return the subjects and versions that have the schema of an id."""
        whole_of("id", id, 1)
        return self._ask_schemas(lambda schemas: schemas.same_ids(id), timeout)

    def subject_schema(
        self, subject: str, version: int | None = None, *, timeout: Timeout = UNSET
    ) -> RegisteredSchema:
        """Return a version of a subject, by default the latest; `UnknownSchema` if it has none."""
        text_of("subject", subject)
        if version is not None:
            whole_of("version", version, 1)
        return self._ask_schemas(lambda schemas: schemas.version(subject, version), timeout)

    def register_schema(
        self, subject: str, text: str, type: SchemaTypeLike = "AVRO", *, timeout: Timeout = UNSET
    ) -> RegisteredSchema:
        """Register a schema as the next version of a subject; one that it has keeps its version.

        Raises:
            InvalidSchema: the text is no schema of its type.
            IncompatibleSchema: it does not fit the versions before it.
        """
        kind = _type_of(subject, text, type)
        return self._ask_schemas(lambda schemas: schemas.register(subject, text, kind), timeout)

    def find_schema(
        self, subject: str, text: str, type: SchemaTypeLike = "AVRO", *, timeout: Timeout = UNSET
    ) -> RegisteredSchema:
        """Return the version of a subject that has a schema; `UnknownSchema` if none has."""
        kind = _type_of(subject, text, type)
        return self._ask_schemas(lambda schemas: schemas.find(subject, text, kind), timeout)

    def check_schema(
        self,
        subject: str,
        text: str,
        type: SchemaTypeLike = "AVRO",
        *,
        version: int | None = None,
        timeout: Timeout = UNSET,
    ) -> list[str]:
        """Return why a schema does not fit as the next version of a subject; empty if it does.

        Args:
            subject: its compatibility says how the schema is compared, and with which versions.
            text: of the schema.
            type: of the text.
            version: compare it with this version alone.
            timeout: seconds; by default the client's.
        """
        kind = _type_of(subject, text, type)
        return self._ask_schemas(
            lambda schemas: schemas.check(subject, text, kind, version), timeout
        )

    def delete_schema(
        self, subject: str, version: int | None = None, *, timeout: Timeout = UNSET
    ) -> list[int]:
        """Delete a subject, or one version; return the numbers. Their ids stay readable."""
        text_of("subject", subject)
        if version is not None:
            whole_of("version", version, 1)
        return self._ask_schemas(lambda schemas: schemas.delete(subject, version), timeout)

    def compatibility(self, subject: str = "", *, timeout: Timeout = UNSET) -> Compatibility:
        """Return how new versions of a subject have to fit; without one, the default of all."""
        return self._ask_schemas(lambda schemas: schemas.compatibility(subject), timeout)

    def set_compatibility(
        self, subject: str, level: Compatibility | str | None, *, timeout: Timeout = UNSET
    ) -> None:
        """Set how new versions of a subject have to fit; None removes the subject's own level.

        The subject "" is the default of all others.
        """
        from broker.schemas.values import Compatibility

        try:
            wanted = None if level is None else Compatibility(level)
        except ValueError:
            valid = ", ".join(Compatibility)
            raise ArgumentError(f"there is no compatibility {level!r}; valid: {valid}") from None
        self._ask_schemas(lambda schemas: schemas.set_compatibility(subject, wanted), timeout)

    def decoder(
        self, schema: int | RegisteredSchema | None = None, *, timeout: Timeout = UNSET
    ) -> Decoder:
        """Return what makes values of messages, by the schemas whose ids stand in front of them.

            decoder = client.decoder()
            for message in client.read("orders"):
                print(decoder.decode(message.value))

        Args:
            schema: Avro values are resolved to this one, so that all have its fields.
            timeout: seconds to look up `schema`; by default the client's, which also limits the
                look-up of each id by `decode`.
        """
        from broker.schemas.payloads import Decoder

        reader = self.schema(schema, timeout=timeout) if isinstance(schema, int) else schema
        return Decoder(self.schema, reader)


SchemaLike = int | Literal["auto"]


class Encoders:
    """Encodes the values of a producer: by one schema, or by the contract of each topic."""

    def __init__(self, client: SchemaCalls, schema: RegisteredSchema | SchemaLike) -> None:
        from broker.schemas.values import RegisteredSchema

        is_one = isinstance(schema, int | RegisteredSchema) and not isinstance(schema, bool)
        if not is_one and schema != "auto":
            raise TypeError(f"give schema as 'auto', an id or a schema, not {schema!r}")
        self._client = client
        self._schema = schema
        self._by_topic: dict[str, Encoder] = {}

    def known(self, topic: str) -> Encoder | None:
        """Return the encoder for a topic if it was looked up already."""
        return self._by_topic.get(topic if self._schema == "auto" else "")

    def find(self, topic: str) -> Encoder:
        """Return the encoder for a topic; its schema stays the same until the producer ends."""
        found = self.known(topic)
        if found is None:
            from broker.schemas.payloads import Encoder

            found = Encoder(
                self._client._ask_schemas(lambda schemas: self._schema_of(schemas, topic))
            )
            self._by_topic[topic if self._schema == "auto" else ""] = found
        return found

    def _schema_of(self, schemas: SchemaClient, topic: str) -> RegisteredSchema:
        if isinstance(self._schema, int):
            return schemas.get(self._schema)
        if self._schema != "auto":
            return self._schema
        return schemas.version(schemas.contract(topic).subject or f"{topic}-value")


def _type_of(subject: object, text: object, kind: SchemaType | str) -> SchemaType:
    from broker.schemas.values import SchemaType

    text_of("subject", subject)
    text_of("text", text)
    try:
        return SchemaType(kind)
    except ValueError:
        raise ArgumentError(f"there is no type {kind!r}; valid: {', '.join(SchemaType)}") from None

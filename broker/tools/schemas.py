"""The schemas of topics that are copied to another cluster, whose messages have their ids."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from broker.client.schemas import SchemaClient
from broker.client.side import Side
from broker.errors import BrokerError, ConflictError, UnknownSchemaError
from broker.json_fields import read_json
from broker.schemas.values import RegisteredSchema


def client_of(side: Side) -> SchemaClient:
    """Return what asks the brokers of a cluster for schemas."""
    return SchemaClient(side.cluster, side.connect)


def subject_of(client: SchemaClient, topic: str) -> str:
    """Return the subject of a topic's contract, or the one that Confluent's clients take."""
    return client.contract(topic).subject or f"{topic}-value"


def carry_schemas(
    source: SchemaClient,
    target: SchemaClient,
    topics: Iterable[str],
    known: set[tuple[str, int]] | None = None,
) -> list[RegisteredSchema]:
    """Register all versions of the topics' subjects in the target, under their ids.

    Args:
        source: has the schemas.
        target: gets them.
        topics: of the source.
        known: subjects and versions that the target has already; those found here are added.

    Returns:
        The schemas that the target did not have, as registered.

    Raises:
        ConflictError: An id has another schema in the target; then nothing was registered.
    """
    known, missing, seen = known if known is not None else set(), [], set()
    for subject in sorted({subject_of(source, topic) for topic in topics}):
        for number in _versions(source, subject):
            if (subject, number) in known:
                continue
            seen.add((subject, number))
            schema = source.version(subject, number)
            _check_free(target, schema)
            if not _has(target, schema):
                missing.append(schema)
    missing.sort(key=lambda one: (one.subject, one.version))
    made = [target.register(one.subject, one.text, one.type, id=one.id) for one in missing]
    known |= seen
    return made


def _versions(client: SchemaClient, subject: str) -> list[int]:
    try:
        return client.versions(subject)
    except UnknownSchemaError:
        return []


def _check_free(target: SchemaClient, schema: RegisteredSchema) -> None:
    try:
        there = target.get(schema.id)
    except UnknownSchemaError:
        return
    if there.type is schema.type and read_json(there.text) == read_json(schema.text):
        return
    subjects = ", ".join(sorted({one.subject for one in target.same_ids(schema.id)}))
    raise ConflictError(
        f"id {schema.id} is the schema of '{schema.subject}', version {schema.version}, in the "
        f"source, and another one in the target ({subjects or 'of a deleted subject'})",
        "SCHEMA_ID_TAKEN",
        hints=["messages of both cannot be in one cluster: write those of one again by its schema"],
    )


def _has(target: SchemaClient, schema: RegisteredSchema) -> bool:
    try:
        return target.find(schema.subject, schema.text, schema.type).id == schema.id
    except UnknownSchemaError:
        return False


def contracts(client: SchemaClient, topics: Iterable[str]) -> dict[str, str]:
    """Return the subjects of those topics that have a contract, as far as brokers tell it."""
    found = {}
    for topic in topics:
        with suppress(BrokerError):  # of earlier versions, or it may not be seen
            found[topic] = client.contract(topic).subject
    return {topic: subject for topic, subject in found.items() if subject}

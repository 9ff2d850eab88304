"""Schemas carried to another registry: all of a subject, under their ids, or none."""

from __future__ import annotations

from typing import cast

import pytest

from broker.client.schemas import SchemaClient
from broker.errors import ConflictError, UnknownSchemaError, UnsupportedVersionError
from broker.schemas.values import RegisteredSchema, SchemaType, TopicContract
from broker.tools.schemas import carry_schemas, contracts


class Registry:
    """A registry in memory, and the subjects of topics' contracts."""

    def __init__(self, *rows: tuple[int, str, str], topics: dict[str, str] | None = None) -> None:
        self.rows: list[RegisteredSchema] = []
        self.topics = topics or {}
        self.asked = 0
        for schema_id, subject, text in rows:
            self.register(subject, text, id=schema_id)

    def contract(self, topic: str) -> TopicContract:
        if topic == "old":
            raise UnsupportedVersionError("brokers have no registry")
        return TopicContract(self.topics.get(topic, ""))

    def versions(self, subject: str) -> list[int]:
        if found := [one.version for one in self.rows if one.subject == subject]:
            return found
        raise UnknownSchemaError(subject)

    def version(self, subject: str, number: int) -> RegisteredSchema:
        self.asked += 1
        return self._one(subject=subject, version=number)

    def get(self, id: int) -> RegisteredSchema:
        return self._one(id=id)

    def find(self, subject: str, text: str, type: SchemaType) -> RegisteredSchema:
        return self._one(subject=subject, text=text, type=type)

    def same_ids(self, id: int) -> list[RegisteredSchema]:
        return [one for one in self.rows if one.id == id]

    def register(
        self, subject: str, text: str, type: SchemaType = SchemaType.AVRO, *, id: int
    ) -> RegisteredSchema:
        version = 1 + sum(one.subject == subject for one in self.rows)
        self.rows.append(RegisteredSchema(id, type, text, subject, version))
        return self.rows[-1]

    def _one(self, **fields: object) -> RegisteredSchema:
        for one in self.rows:
            if one._asdict().items() >= fields.items():
                return one
        raise UnknownSchemaError(str(fields))


def carried(
    source: Registry,
    target: Registry,
    *topics: str,
    known: set[tuple[str, int]] | None = None,
) -> list[tuple[int, str]]:
    clients = cast(SchemaClient, source), cast(SchemaClient, target)
    return [(one.id, one.text) for one in carry_schemas(*clients, topics, known)]


def test_carrying_takes_all_versions_of_the_topics_subjects_and_no_others() -> None:
    source = Registry(
        (3, "s", '"int"'), (5, "s", '"long"'), (6, "b-value", '"bytes"'), (7, "other", '"string"'),
        topics={"a": "s"},
    )  # fmt: skip
    target = Registry((5, "mine", '"long"'))
    known: set[tuple[str, int]] = set()

    assert carried(source, target, "a", "b", "c", known=known) == [
        (6, '"bytes"'), (3, '"int"'), (5, '"long"'),
    ]  # fmt: skip
    assert carried(source, target, "a", "b") == []
    asked = source.asked
    assert carried(source, target, "a", "b", known=known) == []
    assert source.asked == asked


def test_carrying_registers_nothing_if_an_id_is_taken() -> None:
    source = Registry((3, "s", '"int"'), (5, "s", '"long"'), topics={"a": "s"})
    target = Registry((5, "mine", '"double"'))
    with pytest.raises(ConflictError, match=r"id 5 is the schema of 's', version 2, .*\(mine\)"):
        carried(source, target, "a")
    assert len(target.rows) == 1


def test_contracts_are_those_that_brokers_tell() -> None:
    source = Registry(topics={"a": "s", "b": ""})
    assert contracts(cast(SchemaClient, source), ["a", "b", "old"]) == {"a": "s"}

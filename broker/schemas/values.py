"""Schemas of messages, their compatibility, and the contract of a topic."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class SchemaType(StrEnum):
    """The languages of schemas."""

    AVRO = "AVRO"
    JSON = "JSON"


class Compatibility(StrEnum):
    """What a subject's new version must fit, by the names of Confluent's registry.

    Backward: it reads what earlier versions wrote. Forward: earlier ones read what it writes. Full:
    both. Transitive: of all versions, else of the latest one.
    """

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


class RegisteredSchema(NamedTuple):
    """A schema with its id, and a subject and version that it has."""

    id: int
    type: SchemaType
    text: str
    subject: str = ""
    version: int = 0


class Validation(StrEnum):
    """What brokers look at of the messages of a topic."""

    NONE = "none"
    ID = "id"
    FULL = "full"


class TopicContract(NamedTuple):
    """What a topic's messages are: the subject of their schemas, and what brokers look at.

    `has_envelopes`: whether producers put envelopes in front of them.
    """

    subject: str = ""
    validation: Validation = Validation.NONE
    has_envelopes: bool = False

"""The rows that the commands on schemas write."""

from __future__ import annotations

from typing import Annotated

from broker.schemas.values import RegisteredSchema
from pylogctl.cli.columns import HIDDEN, Document, Fit, Integer, Row, Text


class SubjectRow(Row):
    """A subject with its latest schema."""

    subject: Annotated[Text, "name", Fit.WHOLE]
    versions: Annotated[tuple[int, ...], "numbers of its versions"]
    id: Annotated[Integer, "id of the latest version, which stands in front of messages"]
    type: Annotated[Text, "AVRO or JSON", Fit.WHOLE]
    compatibility: Annotated[Text, "how a new version has to fit those before it", Fit.WHOLE]


class SchemaRow(Row):
    """A schema, and under which subject and version it is registered."""

    subject: Annotated[Text | None, "name; none if its version was deleted", Fit.WHOLE]
    version: Annotated[Integer, "number in the subject"]
    id: Annotated[Integer, "id, which stands in front of messages"]
    type: Annotated[Text, "AVRO or JSON", Fit.WHOLE]
    schema: Annotated[str, "text", HIDDEN]


class ChangeRow(Row):
    """A version that was registered or deleted."""

    subject: Annotated[Text, "name", Fit.WHOLE]
    version: Annotated[Integer, "number in the subject"]
    id: Annotated[Integer, "id, which stands in front of messages"]
    action: Annotated[Text, "registered, exists, deleted, or what would be done", Fit.WHOLE]


class ReasonRow(Row):
    """Why a schema does not fit a version of its subject."""

    subject: Annotated[Text, "name", Fit.WHOLE]
    reason: Annotated[str, "which field does not fit, and why", Fit.WRAP]


class CompatibilityRow(Row):
    """How new versions of a subject have to fit those before them."""

    subject: Annotated[Text, "name; <default> is each subject without a level of its own"]
    compatibility: Annotated[Text, "BACKWARD: new schemas read old messages, and so on", Fit.WHOLE]


SUBJECTS = Document("schema.list/1", SubjectRow, empty="no schemas; try: pylogctl schema add")
SCHEMA = Document("schema.show/1", SchemaRow, empty="no schema")
CHANGE = Document("schema.change/1", ChangeRow, empty="nothing changed")
REASONS = Document("schema.check/1", ReasonRow, empty="")
COMPATIBILITY = Document("schema.compat/1", CompatibilityRow, empty="")


def schema_row(found: RegisteredSchema) -> SchemaRow:
    """Return the row of a schema; one that was got by id may have no subject."""
    subject, version = found.subject or None, found.version or None
    return SchemaRow(subject, version, found.id, str(found.type), found.text)

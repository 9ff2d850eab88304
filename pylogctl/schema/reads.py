"""Lists, shows and checks schemas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.client.schemas import SchemaClient
from broker.schemas.values import SchemaType
from pylogctl.cli.connections import Absence, open_for_requests
from pylogctl.cli.decoding import read_schema
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.schema.document import (
    COMPATIBILITY,
    REASONS,
    SCHEMA,
    SUBJECTS,
    CompatibilityRow,
    ReasonRow,
    SubjectRow,
    schema_row,
)

DEFAULT = "<default>"
"""Stands for subjects without a level of their own, as in the quotas of users."""
LAST_NUMBER = 2**31 - 1
"""The largest id, and number of a version."""


@contextmanager
def open_schemas(env: Environment) -> Iterator[SchemaClient]:
    """Open the schemas of a cluster; any broker of it answers."""
    with open_for_requests(env, absence=Absence.WARN) as side:
        yield SchemaClient(side.cluster, side.connect)


def parse_version(text: str | None) -> int | None:
    """Return the number of a version; None for the latest."""
    if text is None or text == "latest":
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:11]) <= LAST_NUMBER):
        raise UsageError(f"--version is '{text}'", f"valid: 1 to {LAST_NUMBER}, or latest")
    return int(text)


def read_file(env: Environment, file: str, kind: str | None) -> tuple[str, SchemaType]:
    """Return the text and language of a schema in a file, `-` for standard input."""
    if file != "-":
        with Path(file).open("rb") as source:
            text, found = read_schema(source, file)
    elif env.streams.stdin is None:
        raise UsageError("stdin is closed, and FILE is -")
    else:
        text, found = read_schema(env.streams.stdin, file)
    return text, found if kind is None else SchemaType(kind.upper())


def list_subjects(env: Environment) -> None:
    """Render the subjects."""
    with open_schemas(env) as schemas:
        render(env, SUBJECTS, [_subject_row(schemas, one) for one in schemas.subjects()])


def _subject_row(schemas: SchemaClient, subject: str) -> SubjectRow:
    versions, latest = schemas.versions(subject), schemas.version(subject)
    level = str(schemas.compatibility(subject))
    return SubjectRow(subject, tuple(versions), latest.id, str(latest.type), level)


def show_schema(
    env: Environment, subject: str | None, version: int | None, schema_id: int | None
) -> None:
    """Write the text of a schema, or render all of it if a format was chosen."""
    with open_schemas(env) as schemas:
        if subject is not None:
            found = [schemas.version(subject, version)]
        else:
            assert schema_id is not None  # one of both
            found = schemas.same_ids(schema_id) or [schemas.get(schema_id)]
    if env.settings.output or env.settings.columns:
        render(env, SCHEMA, map(schema_row, found))
    else:
        env.write_line(found[0].text)


def check_schema(
    env: Environment, subject: str, file: str, kind: str | None, version: str | None
) -> None:
    """Render why a schema does not fit a subject, and end with CORRUPT; a note if it fits."""
    (text, type_), number = read_file(env, file, kind), parse_version(version)
    with open_schemas(env) as schemas:
        if version == "latest":
            number = schemas.version(subject).version
        reasons = schemas.check(subject, text, type_, number)
        level = schemas.compatibility(subject)
    render(env, REASONS, [ReasonRow(subject, one) for one in reasons])
    env.flush()
    if reasons:
        raise CliError(
            ExitStatus.CORRUPT,
            f"'{file}' does not fit '{subject}', whose compatibility is {level}",
            code="INCOMPATIBLE_SCHEMA",
            details={"reasons": reasons},
        )
    env.note(f"'{file}' fits '{subject}', whose compatibility is {level}")


def show_compatibility(env: Environment, subject: str | None) -> None:
    """Render the levels of all subjects, or that of one."""
    with open_schemas(env) as schemas:
        if subject is None:
            names = ["", *schemas.subjects()]
        else:
            names = ["" if subject == DEFAULT else subject]
        rows = [CompatibilityRow(one or DEFAULT, str(schemas.compatibility(one))) for one in names]
    render(env, COMPATIBILITY, rows)

"""Registers and deletes schemas, and sets compatibility; with `--dry-run`, only the plan."""

from __future__ import annotations

from broker.client.schemas import SchemaClient
from broker.errors import IncompatibleSchemaError, UnknownSchemaError
from broker.schemas.values import Compatibility, RegisteredSchema, SchemaType
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.render import render
from pylogctl.schema.document import CHANGE, COMPATIBILITY, ChangeRow, CompatibilityRow
from pylogctl.schema.reads import DEFAULT, open_schemas, read_file

_UNCHANGED = "nothing changed; this was a dry run"


def add_schema(env: Environment, subject: str, file: str, kind: str | None) -> None:
    """Register the schema in a file, and render its id and version."""
    text, type_ = read_file(env, file, kind)
    with open_schemas(env) as schemas:
        found = _present(schemas, subject, text, type_)
        if found is not None:
            action = "exists"
        elif env.settings.dry_run:
            if reasons := schemas.check(subject, text, type_):
                raise IncompatibleSchemaError("\n".join([f"it does not fit '{subject}'", *reasons]))
            action = "register"
        else:
            found, action = schemas.register(subject, text, type_), "registered"
    version, id_ = (None, None) if found is None else (found.version, found.id)
    render(env, CHANGE, [ChangeRow(subject, version, id_, action)])
    if action == "exists":
        env.note(f"'{subject}' has this schema already: nothing changed")
    elif env.settings.dry_run:
        env.note(_UNCHANGED)


def _present(
    schemas: SchemaClient, subject: str, text: str, kind: SchemaType
) -> RegisteredSchema | None:
    try:
        return schemas.find(subject, text, kind)
    except UnknownSchemaError:
        return None


def delete_schema(env: Environment, subject: str, is_one_version: bool, number: int | None) -> None:
    """Delete a subject, or one version of it, after a question; the latest one without a number."""
    with open_schemas(env) as schemas:
        numbers = schemas.versions(subject)
        if is_one_version:
            numbers = [schemas.version(subject, number).version]
        rows = [(one, schemas.version(subject, one).id) for one in numbers]
        if env.settings.dry_run:
            render(env, CHANGE, [ChangeRow(subject, *one, "delete") for one in rows])
            env.note(_UNCHANGED)
            return
        what = f"version {numbers[0]}" if is_one_version else f"all {len(numbers)} versions"
        confirm(env, "schema delete", f"delete {what} of '{subject}'?")
        schemas.delete(subject, numbers[0] if is_one_version else None)
    render(env, CHANGE, [ChangeRow(subject, *one, "deleted") for one in rows])
    env.note("messages with these ids stay readable")


def set_compatibility(env: Environment, subject: str, level: str) -> None:
    """Set the level of a subject, or of those without one; `default` removes the subject's own."""
    name = "" if subject == DEFAULT else subject
    wanted = None if level == "default" else _level_of(level)
    if wanted is None and not name:
        raise UsageError(f"{DEFAULT} has no other default", "valid: backward, none, ..")
    with open_schemas(env) as schemas:
        if env.settings.dry_run:
            before = schemas.compatibility(name)
            env.note(f"'{subject}' is {before}, and would be {level}; {_UNCHANGED}")
            return
        schemas.set_compatibility(name, wanted)
        now = str(schemas.compatibility(name))
    render(env, COMPATIBILITY, [CompatibilityRow(subject, now)])


def _level_of(text: str) -> Compatibility:
    try:
        return Compatibility(text.upper().replace("-", "_"))
    except ValueError:
        known = ", ".join(one.lower() for one in Compatibility)
        raise UsageError(f"'{text}' is no compatibility", f"valid: {known}, default") from None

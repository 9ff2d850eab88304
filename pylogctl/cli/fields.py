"""`--help-fields`: the fields of what a command writes, from the JSON Schemas in this package."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Annotated, Any

from pylogctl.cli.columns import Document, Fit, Row
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.render import render

# Commands that write documents of others, or several.
_OTHERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("acl.add", "acl.remove"), ("acl.change",)),
    **dict.fromkeys(("config.set", "config.unset"), ("config.change",)),
    **dict.fromkeys(("log.merge", "log.split"), ("log.segments",)),
    **dict.fromkeys(("zk.create", "zk.import", "zk.rm", "zk.set"), ("zk.change",)),
    **dict.fromkeys(("zk.open", "zk.secure"), ("zk.acls",)),
    "acl.list": ("acl.rules",),
    "broker.decommission": ("topic.reassign-plan",),
    "config.diff": ("config.topic", "config.broker-diff", "config.brokers-diff"),
    "config.list": ("config.overrides", "config.topic", "config.broker"),
    "context.show": ("context.list",),
    "group.import": ("group.reset",),
    "log.grep": ("log.dump",),
    "mirror.run": ("mirror.run", "mirror.plan"),
    "pipeline.compact": ("pipeline.load", "pipeline.compact.plan"),
    "top": (
        *("top.brokers", "top.topics", "top.groups", "top.replication", "top.requests"),
        *("top.broker", "top.partitions", "top.group"),  # --into
    ),
    **dict.fromkeys(("schema.add", "schema.delete"), ("schema.change",)),
    "topic.alter": ("topic.create",),
    "user.quota": ("user.quotas",),
}


class FieldRow(Row):
    """A field of a document."""

    document: Annotated[str, "schema of the document", Fit.WHOLE]
    field: Annotated[str, "name", Fit.WHOLE]
    type: Annotated[str, "type of its values in JSON", Fit.WHOLE]
    doc: Annotated[str, "meaning", Fit.WRAP]


FIELDS = Document("fields/1", FieldRow, empty="")


def schemas_of(command_path: str) -> list[dict[str, Any]]:
    """Return the schemas of what a command such as `pylogctl topic list` writes."""
    command = ".".join(command_path.split()[1:])
    wanted = _OTHERS.get(command, (command,))
    found = []
    folder = resources.files("pylogctl") / "schemas"
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        name = file.name.rpartition("-")[0]  # without the number of the version
        is_variant = command not in _OTHERS and name.startswith((f"{command}-", f"{command}."))
        if name in wanted or is_variant:
            found.append(json.loads(file.read_text()))
    return found


def show_fields(env: Environment, command_path: str) -> None:
    """Write the fields of the documents of a command."""
    found = schemas_of(command_path)
    if not found:
        raise UsageError(
            f"what '{command_path}' writes has the fields of its query", "--columns help lists them"
        )
    render(env, FIELDS, [row for schema in found for row in _rows(schema)])


def _rows(schema: dict[str, Any]) -> Iterator[FieldRow]:
    document = schema["title"].removeprefix("pylogctl.")
    for name, field in schema["properties"]["data"]["items"]["properties"].items():
        yield FieldRow(document, name, _type(field), field["description"])


def _type(field: dict[str, Any]) -> str:
    """Return a type for people, such as `array of integer, or null`."""
    if "type" not in field:
        return "any"
    names = field["type"] if isinstance(field["type"], list) else [field["type"]]
    text = [_named(name, field) for name in names if name != "null"]
    return " or ".join(text) + (", or null" if "null" in names else "")


def _named(name: str, field: dict[str, Any]) -> str:
    inner: Sequence[Any] = [field[key] for key in ("items", "additionalProperties") if key in field]
    if "format" in field:
        return "time"
    return f"{name} of {_type(inner[0])}" if inner else name

"""What `-X list` and `-X dump` show: all properties, or the values in effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from broker.config import BrokerConfig, ConsumerConfig, ProducerConfig, Settings
from pylogctl.context import Environment
from pylogctl.options import parse_properties
from pylogctl.render import Column, Document, render

LIST = Document(
    "properties.list/1",
    (
        Column("property", "name for -X and configuration files"),
        Column("scope", "producer, consumer or broker"),
        Column("type", "how its text is read"),
        Column("default", "value when nothing else is said"),
        Column("doc", "meaning"),
    ),
    empty="no properties",
)
DUMP = Document(
    "properties.dump/1",
    (
        Column("property", "name for -X and configuration files"),
        Column("scope", "producer, consumer or broker"),
        Column("value", "value in effect"),
        Column("origin", "-X, PYLOGCTL_X or default"),
    ),
    empty="no properties",
)

_SCOPES: dict[str, type[Settings]] = {
    "producer": ProducerConfig,
    "consumer": ConsumerConfig,
    "broker": BrokerConfig,
}
_SCOPE_OF_WORD = {"produce": "producer", "consume": "consumer", "broker": "broker"}


def show_properties(env: Environment, command_path: str) -> None:
    """Write the properties that a command takes, or all for the program itself.

    Args:
        env: its properties hold `list` or `dump`.
        command_path: such as `pylogctl perf produce`.

    Raises:
        ConfigError: a property given beside `dump` is unknown or malformed.
    """
    words = [word for word in command_path.split() if word in _SCOPE_OF_WORD]
    scopes = [_SCOPE_OF_WORD[words[-1]]] if words else list(_SCOPES)
    if "list" in env.settings.properties:
        render(env, LIST, [record for scope in scopes for record in _listed(scope)])
    else:
        is_alone = len(scopes) == 1
        dumped = [_dumped(env, scope, is_alone=is_alone) for scope in scopes]
        render(env, DUMP, [record for records in dumped for record in records])


def _listed(scope: str) -> Iterator[dict[str, Any]]:
    kind = _SCOPES[scope]
    defaults = kind()
    for prop in kind.PROPERTIES:
        yield {
            "property": prop.name,
            "scope": scope,
            "type": "|".join(prop.choices) or prop.kind.value,
            "default": defaults.value_text(prop),
            "doc": prop.doc,
        }


def _dumped(env: Environment, scope: str, *, is_alone: bool) -> Iterator[dict[str, Any]]:
    kind = _SCOPES[scope]
    known = {prop.name for prop in kind.PROPERTIES}
    # With several scopes a property is another scope's business; alone, an unknown one is wrong.
    chosen = {
        name: text
        for name, text in env.settings.properties.items()
        if name != "dump" and (is_alone or name in known)
    }
    effective = kind.from_properties(chosen)
    from_environment = parse_properties(None)
    for prop in kind.PROPERTIES:
        is_given = prop.name in chosen
        is_from_environment = is_given and from_environment.get(prop.name) == chosen[prop.name]
        origin = "PYLOGCTL_X" if is_from_environment else "-X" if is_given else "default"
        value = effective.value_text(prop)
        yield {"property": prop.name, "scope": scope, "value": value, "origin": origin}

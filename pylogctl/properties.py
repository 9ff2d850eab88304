"""What `-X list` and `-X dump` show: all properties, or the values in effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from broker.config import BrokerConfig, ConsumerConfig, ProducerConfig, Settings
from pylogctl.context import Environment
from pylogctl.options import ASKS_FOR_PROPERTIES, parse_properties
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
        Column("origin", "option, -X, PYLOGCTL_X, a file, or default"),
    ),
    empty="no properties",
)

_SCOPES: dict[str, type[Settings]] = {
    "producer": ProducerConfig,
    "consumer": ConsumerConfig,
    "broker": BrokerConfig,
}
_SCOPE_OF_WORD = {
    "produce": "producer",
    "e2e": "producer",
    "consume": "consumer",
    "simple": "consumer",
    "broker": "broker",
}


class Layer(NamedTuple):
    """Properties from one source."""

    origin: str
    properties: Mapping[str, str]


def given_layers(env: Environment) -> list[Layer]:
    """Return what the environment variable and `-X` set, the one that goes first last."""
    given = {
        name: text
        for name, text in env.settings.properties.items()
        if name not in ASKS_FOR_PROPERTIES
    }
    below = parse_properties(None)
    above = {name: text for name, text in given.items() if below.get(name) != text}
    return [Layer("PYLOGCTL_X", below), Layer("-X", above)]


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
        return
    records: list[dict[str, Any]] = []
    for scope in scopes:
        layers = given_layers(env)
        if len(scopes) > 1:
            # A property is then another scope's business; alone, an unknown one is wrong.
            layers = [_only_known(layer, _SCOPES[scope]) for layer in layers]
        records += _in_effect(scope, layers)
    render(env, DUMP, records)


def dump_properties(env: Environment, scope: str, layers: Sequence[Layer]) -> None:
    """Write the properties in effect, with where each comes from.

    Args:
        env: where they are written.
        scope: `producer`, `consumer` or `broker`.
        layers: later ones go before earlier ones.

    Raises:
        ConfigError: a property is unknown or malformed.
    """
    render(env, DUMP, list(_in_effect(scope, layers)))


def _only_known(layer: Layer, kind: type[Settings]) -> Layer:
    known = {prop.name for prop in kind.PROPERTIES}
    chosen = {name: text for name, text in layer.properties.items() if name in known}
    return layer._replace(properties=chosen)


def _in_effect(scope: str, layers: Sequence[Layer]) -> Iterator[dict[str, Any]]:
    kind = _SCOPES[scope]
    origins = {name: layer.origin for layer in layers for name in layer.properties}
    effective = kind.from_properties(*(layer.properties for layer in layers))
    for prop in kind.PROPERTIES:
        yield {
            "property": prop.name,
            "scope": scope,
            "value": effective.value_text(prop),
            "origin": origins.get(prop.name, "default"),
        }


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

"""What `-X list` and `-X dump` show: all properties, or the values in effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from broker.config import BrokerConfig, ConsumerConfig, ProducerConfig, Property, Settings
from pylogctl.context import Environment
from pylogctl.property_use import Layer, Use, given_layers, use_of
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


def show_properties(env: Environment, command_path: str) -> None:
    """Write the properties that a command takes, or all for the program itself.

    Args:
        env: its properties hold `list` or `dump`.
        command_path: such as `pylogctl perf produce`.

    Raises:
        ConfigError: a property given beside `dump` is unknown or malformed.
    """
    use = use_of(command_path)
    uses = [Use(scope) for scope in _SCOPES] if use is None else [use]
    if "list" in env.settings.properties:
        render(env, LIST, [record for one in uses for record in _listed(one)])
        return
    if use is not None:
        dump_properties(env, use, [Layer("default", use.defaults), *given_layers(env)])
        return
    # A property is then another scope's business; alone, an unknown one is wrong.
    layers = {
        one.scope: [_only_known(layer, _SCOPES[one.scope]) for layer in given_layers(env)]
        for one in uses
    }
    render(env, DUMP, [record for one in uses for record in _in_effect(one, layers[one.scope])])


def dump_properties(env: Environment, use: Use, layers: Sequence[Layer]) -> None:
    """Write the properties in effect, with where each comes from.

    Args:
        env: where they are written.
        use: what the command makes of them.
        layers: later ones go before earlier ones.

    Raises:
        ConfigError: a property is unknown or malformed.
    """
    render(env, DUMP, list(_in_effect(use, layers)))


def _only_known(layer: Layer, kind: type[Settings]) -> Layer:
    known = {prop.name for prop in kind.PROPERTIES}
    chosen = {name: text for name, text in layer.properties.items() if name in known}
    return layer._replace(properties=chosen)


def _in_effect(use: Use, layers: Sequence[Layer]) -> Iterator[dict[str, Any]]:
    kind = _SCOPES[use.scope]
    origins = {name: layer.origin for layer in layers for name in layer.properties}
    effective = kind.from_properties(*(layer.properties for layer in layers))
    for prop in _properties_of(use):
        yield {
            "property": prop.name,
            "scope": use.scope,
            "value": effective.value_text(prop),
            "origin": origins.get(prop.name, "default"),
        }


def _listed(use: Use) -> Iterator[dict[str, Any]]:
    kind = _SCOPES[use.scope]
    defaults = kind.from_properties(use.defaults)
    for prop in _properties_of(use):
        yield {
            "property": prop.name,
            "scope": use.scope,
            "type": "|".join(prop.choices) or prop.kind.value,
            "default": defaults.value_text(prop),
            "doc": prop.doc,
        }


def _properties_of(use: Use) -> Iterator[Property]:
    for prop in _SCOPES[use.scope].PROPERTIES:
        if prop.name not in use.refused:
            yield prop

"""`-X list` and `-X dump`: the properties of a command, or of all, and those in effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from broker.properties import BaseConfig, Property
from pylogctl.cli.columns import Document, Fit, Rank, Row, Text
from pylogctl.cli.environment import Environment
from pylogctl.cli.properties import SCOPES, Layer, Use, given_layers, kind_of, use_of
from pylogctl.cli.render import render

_Property = Annotated[str, "name for -X and configuration files", Fit.WHOLE]
_Scope = Annotated[str, "producer, consumer or broker"]


class PropertyRow(Row):
    """A property."""

    property: _Property
    scope: _Scope
    type: Annotated[str, "how its text is read", Rank(2), Fit.WRAP]
    default: Annotated[str, "value when nothing else is said", Rank(1), Fit.WRAP]
    alias: Annotated[Text, "name in Kafka 0.8, if that is another one", Rank(3), Fit.WHOLE]
    doc: Annotated[str, "meaning", Fit.WRAP]


class SettingRow(Row):
    """A property in effect."""

    property: _Property
    scope: Annotated[_Scope, Rank(1)]
    value: Annotated[str, "value in effect", Fit.WRAP]
    origin: Annotated[str, "option, -X, PYLOGCTL_X, a file, or default"]


LIST = Document("properties.list/1", PropertyRow, empty="no properties")
DUMP = Document("properties.dump/1", SettingRow, empty="no properties")


def show_properties(env: Environment, command_path: str) -> None:
    """Write the properties of a command such as `pylogctl perf produce`, or the program's."""
    use = use_of(command_path)
    uses = [Use(scope) for scope in SCOPES] if use is None else [use]
    if "list" in env.settings.properties:
        render(env, LIST, [row for one in uses for row in _listed(one)])
        return
    if use is not None:
        dump_properties(
            env, use, [Layer("default", use.defaults), *given_layers(env, kind_of(use.scope))]
        )
        return
    # Without a command each scope takes the properties that it knows.
    layers = {
        one.scope: [_only_known(layer, kind_of(one.scope)) for layer in given_layers(env)]
        for one in uses
    }
    render(env, DUMP, [row for one in uses for row in _in_effect(one, layers[one.scope])])


def dump_properties(env: Environment, use: Use, layers: Sequence[Layer]) -> None:
    """Write the properties in effect, each with the layer that it comes from."""
    render(env, DUMP, list(_in_effect(use, layers)))


def _only_known(layer: Layer, kind: type[BaseConfig]) -> Layer:
    known = {prop.name for prop in kind.PROPERTIES}
    chosen = {
        name: text for name, text in layer.properties.items() if kind.name_in_07(name) in known
    }
    return layer._replace(properties=chosen)


def _in_effect(use: Use, layers: Sequence[Layer]) -> Iterator[SettingRow]:
    kind = kind_of(use.scope)
    origins = {kind.name_in_07(name): layer.origin for layer in layers for name in layer.properties}
    effective = kind.from_properties(*(layer.properties for layer in layers))
    for prop in _properties_of(use):
        origin = origins.get(prop.name, "default")
        yield SettingRow(prop.name, use.scope, effective.value_text(prop), origin)


def _listed(use: Use) -> Iterator[PropertyRow]:
    kind = kind_of(use.scope)
    defaults = kind.from_properties(use.defaults)
    aliases = {name: alias for alias, name in kind.aliases().items()}
    for prop in _properties_of(use):
        yield PropertyRow(
            prop.name,
            use.scope,
            "|".join(prop.choices) or prop.kind.value,
            defaults.value_text(prop),
            aliases.get(prop.name),
            prop.doc,
        )


def _properties_of(use: Use) -> Iterator[Property]:
    for prop in kind_of(use.scope).PROPERTIES:
        if prop.name not in use.refused:
            yield prop

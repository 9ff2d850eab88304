"""The settings of a command's client, from its options, properties and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import typer

from broker.errors import ConfigError
from broker.properties import BaseConfig
from pylogctl.cli.environment import DEFAULT_ZOOKEEPER, Environment, UsageError
from pylogctl.cli.properties import Layer, Use, given_layers, kind_of
from pylogctl.cli.security import security_layers, zookeeper_properties

_S = TypeVar("_S", bound=BaseConfig)


def _client_layers(env: Environment, use: Use, options: Mapping[str, str | None]) -> list[Layer]:
    """Return the layers of a client's settings; a later one overrides those before it."""
    settings = env.settings
    given = given_layers(env, kind_of(use.scope))
    shared = {
        "broker.list": ",".join(settings.brokers) or None,
        "zk.connect": settings.zookeeper,
        "socket.timeout.ms": None
        if settings.timeout_s is None
        else str(max(1, round(settings.timeout_s * 1000))),
    }
    defaults = dict(use.defaults)
    shared |= zookeeper_properties(env)
    name_in_07 = kind_of(use.scope).name_in_07
    named = {name_in_07(name) for layer in given for name in layer.properties}
    if not settings.brokers and "broker.list" not in named:
        defaults["zk.connect"] = DEFAULT_ZOOKEEPER
    on_top = {name: text for name, text in (shared | dict(options)).items() if text is not None}
    context, options_of_security = security_layers(env)
    return [
        Layer("default", defaults),
        Layer("context", context),
        *given,
        Layer("option", on_top | options_of_security),
    ]


def client_settings(
    env: Environment, use: Use, kind: type[_S], options: Mapping[str, str | None]
) -> _S:
    """Return the settings of a command's client; with `-X dump` print them and end the command."""
    layers = _client_layers(env, use, options)
    try:  # `kind` is the settings class of the use's scope
        found = kind.from_properties(*(layer.properties for layer in layers))
    except ConfigError as error:
        raise UsageError(f"-X: {error}", hints=["try: -X list"]) from error
    if "dump" in env.settings.properties:
        from pylogctl.cli.property_lists import dump_properties  # late: few runs ask for it

        dump_properties(env, use, layers)
        raise typer.Exit
    return found

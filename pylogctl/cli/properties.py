"""Client properties (`-X`): which each command takes, their layers, and the settings made of them.

`-X list` shows the properties of a command, or of all; `-X dump` those in effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, NamedTuple, TypeVar

import typer

from broker.errors import ConfigError
from broker.properties import BaseConfig, Property
from pylogctl.cli import environment
from pylogctl.cli.columns import Document, Fit, Rank, Row, Text
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.security import security_layers, zookeeper_properties

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Use(NamedTuple):
    """The properties of producer, consumer or broker that a command takes."""

    scope: str
    refused: Mapping[str, str] = _NOTHING  # by name, the reason why it has no effect
    defaults: Mapping[str, str] = _NOTHING  # the command's


class Layer(NamedTuple):
    """Properties from one source."""

    origin: str
    properties: Mapping[str, str]


_NO_QUEUE = "nothing is queued, messages are sent as they come"
_NO_HANDLER = "a command handles no events; a program does, with Producer.from_config"
_NO_GROUP = "no group is joined"
_HANDLERS = [
    *("callback.handler", "callback.handler.props"),
    *("event.handler", "event.handler.props"),
]
_OWN_MESSAGES = dict.fromkeys(
    ("partitioner.class", "serializer.class"), "it makes its own messages, of all partitions"
)
_CLIENT_DEFAULTS = {"zk.connectiontimeout.ms": "10000"}


def _without_queues(batch: str, linger: str) -> dict[str, str]:
    """Return the refused properties of a command that sends without a producer's queue."""
    return {
        "producer.type": _NO_QUEUE,
        "queue.size": _NO_QUEUE,
        "queue.time": linger,
        "batch.size": batch,
        "queue.enqueueTimeout.ms": _NO_QUEUE,
        **dict.fromkeys(_HANDLERS, _NO_HANDLER),
        "topic.metadata.refresh.interval.ms": "partitions are asked for at the start, and when a "
        "broker is lost",
    }


PRODUCE = Use(
    "producer",
    _without_queues(
        "--batch-messages says how many messages go together",
        "--linger says how long a message waits for others",
    ),
    _CLIENT_DEFAULTS | {"request.required.acks": "auto"},
)
PERF_PRODUCE = Use(
    "producer",
    _without_queues("--batch says how many messages go together", _NO_QUEUE) | _OWN_MESSAGES,
    _CLIENT_DEFAULTS,
)
PERF_E2E = Use("producer", _without_queues(_NO_QUEUE, _NO_QUEUE) | _OWN_MESSAGES, _CLIENT_DEFAULTS)
CONSUME = Use(
    "consumer",
    {
        "groupid": "--group names the group",
        "autocommit.enable": "--commit says when offsets are stored",
        "autooffset.reset": "--offset says where a group starts",
        "autooffset.outofrange.reset": "--strict-offset refuses offsets out of range",
        "consumer.timeout.ms": "--idle-timeout says when to end",
    },
    _CLIENT_DEFAULTS,
)
_OF_GROUPS = (
    *("groupid", "consumerid", "autocommit.enable", "autocommit.interval.ms", "autooffset.reset"),
    *("autooffset.outofrange.reset", "queuedchunks.max", "fetcher.backoff.ms"),
    *("rebalance.retries.max", "rebalance.backoff.ms"),
)
PERF_CONSUME = Use(
    "consumer",
    dict.fromkeys(_OF_GROUPS, _NO_GROUP)
    | {"num.consumer.fetchers": "--threads says how many threads read"},
    _CLIENT_DEFAULTS,
)
MIRROR = Use(
    "consumer",
    {
        "groupid": "--group names the group",
        "zk.connect": "--from names the source's ZooKeeper",
        "broker.list": "--from names the source's ZooKeeper",
        "autocommit.enable": "offsets are committed once the target has acknowledged",
        "consumer.timeout.ms": "only a signal ends a mirror",
    },
    {"autocommit.interval.ms": "1000"},
)
BROKER = Use("broker")
_USES = {
    "produce": PRODUCE,
    "consume": CONSUME,
    "perf produce": PERF_PRODUCE,
    "perf e2e": PERF_E2E,
    "perf consume": PERF_CONSUME,
    "mirror run": MIRROR,
    "broker start": BROKER,
}


def use_of(command_path: str) -> Use | None:
    """Return the properties of a command such as `pylogctl perf produce`, None of the program."""
    return _USES.get(command_path.partition(" ")[2])


def validate_given(env: Environment, command_path: str) -> None:
    """Raise UsageError if a given property has no effect in a command."""
    use = use_of(command_path)
    if use is None:
        return
    for name, text in env.settings.properties.items():
        reason = use.refused.get(kind_of(use.scope).name_in_07(name))
        if reason is not None and (name, text) != ("producer.type", "sync"):
            raise UsageError(f"-X {name} has no effect here: {reason}")


def given_layers(env: Environment, kind: type[BaseConfig] | None = None) -> list[Layer]:
    """Return the properties of PYLOGCTL_X, then those of `-X`, which override them.

    With `kind` the variable, which all programs see, gives only what no other kind alone knows.
    """
    given = {
        name: text
        for name, text in env.settings.properties.items()
        if name not in environment.ASKS_FOR_PROPERTIES
    }
    below = environment.parse_properties(None)
    above = {name: text for name, text in given.items() if below.get(name) != text}
    if kind is not None:
        below = {name: text for name, text in below.items() if not _is_of_others(name, kind)}
    return [Layer("PYLOGCTL_X", below), Layer("-X", above)]


def _is_of_others(name: str, kind: type[BaseConfig]) -> bool:
    """Return whether settings of other kinds have a property, and these have not."""
    knowing = [
        one
        for one in map(kind_of, SCOPES)
        if one.name_in_07(name) in {prop.name for prop in one.PROPERTIES}
    ]
    return bool(knowing) and kind not in knowing


SCOPES = ("producer", "consumer", "broker")


def kind_of(scope: str) -> type[BaseConfig]:
    """Return the settings class of a scope; only that is imported."""
    if scope == "producer":
        from broker.producer.config import ProducerConfig

        return ProducerConfig
    if scope == "consumer":
        from broker.consumer.config import ConsumerConfig

        return ConsumerConfig
    from broker.config import BrokerConfig

    return BrokerConfig


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
        defaults["zk.connect"] = environment.DEFAULT_ZOOKEEPER
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
        raise UsageError(f"-X: {error}", "try: -X list") from error
    if "dump" in env.settings.properties:
        dump_properties(env, use, layers)
        raise typer.Exit
    return found


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
    from pylogctl.cli.render import render  # late: few runs show them

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
    from pylogctl.cli.render import render  # late: as above

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

"""Client properties (`-X`): which each command takes, by its name, and their layers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from broker.properties import BaseConfig
from pylogctl.cli.environment import ASKS_FOR_PROPERTIES, Environment, UsageError, parse_properties

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
_NO_GROUP = "no group is joined"
_CLIENT_DEFAULTS = {"zk.connectiontimeout.ms": "10000"}


def _without_queues(batch: str, linger: str) -> dict[str, str]:
    """Return the refused properties of a command that sends without a producer's queue."""
    return {
        "producer.type": _NO_QUEUE,
        "queue.size": _NO_QUEUE,
        "queue.time": linger,
        "batch.size": batch,
        "queue.enqueueTimeout.ms": _NO_QUEUE,
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
    _without_queues("--batch says how many messages go together", _NO_QUEUE),
    _CLIENT_DEFAULTS,
)
PERF_E2E = Use("producer", _without_queues(_NO_QUEUE, _NO_QUEUE), _CLIENT_DEFAULTS)
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
PERF_CONSUME = Use(
    "consumer",
    {
        "groupid": _NO_GROUP,
        "consumerid": _NO_GROUP,
        "autocommit.enable": _NO_GROUP,
        "autocommit.interval.ms": _NO_GROUP,
        "autooffset.reset": _NO_GROUP,
        "autooffset.outofrange.reset": _NO_GROUP,
        "queuedchunks.max": _NO_GROUP,
        "num.consumer.fetchers": "--threads says how many threads read",
        "fetcher.backoff.ms": _NO_GROUP,
        "rebalance.retries.max": _NO_GROUP,
        "rebalance.backoff.ms": _NO_GROUP,
    },
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
        if name not in ASKS_FOR_PROPERTIES
    }
    below = parse_properties(None)
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

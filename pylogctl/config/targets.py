"""The topic or broker that a command is about, and the settings that brokers report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.admin.brokers import StatusResponse, request_status
from broker.client.connection import parse_broker_list
from broker.client.registry_cluster import RegistryCluster
from broker.client.selection import topic_not_found
from broker.config import BrokerConfig
from broker.errors import ConfigError, InvalidTopicError, ProtocolError
from broker.protocol.responses import BrokerAddress
from broker.topic_settings import normalize
from broker.zk import paths
from broker.zk.settings import SettingsNode, node_of_broker, node_of_topic
from pylogctl.cli.connections import connector
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError

if TYPE_CHECKING:
    from broker.zk.registry import Registry


class Target(NamedTuple):
    """A topic or a broker; one of the two is None."""

    topic: str | None
    broker_id: int | None
    node: SettingsNode

    @property
    def options(self) -> str:
        """Return the options that name it."""
        return f"--broker {self.broker_id}" if self.topic is None else f"--topic {self.topic}"

    def normalize(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return settings under the names that are stored; ConfigError if one cannot be set."""
        return BrokerConfig.normalize_overrides(texts) if self.topic is None else normalize(texts)


def target_of_topic(topic: str) -> Target:
    """Return a topic as a target; an invalid name is a UsageError."""
    try:
        return Target(topic, None, node_of_topic(topic))
    except InvalidTopicError as error:
        raise UsageError(str(error)) from error


def target_of_broker(broker_id: int) -> Target:
    """Return a broker as a target."""
    return Target(None, broker_id, node_of_broker(broker_id))


def validate_exists(registry: Registry, target: Target) -> None:
    """Validate that there is such a topic, or that such a broker is registered."""
    if target.topic is not None:
        known = registry.topics()
        is_replicated = registry.session.exists(paths.replicated_topic(target.topic)) is not None
        if target.topic not in known and not is_replicated:
            raise topic_not_found(target.topic, known)
        return
    ids = [broker.id for broker in registry.brokers()]
    if target.broker_id not in ids:
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"broker '{target.broker_id}' not found",
            hints=[f"known brokers: {', '.join(map(str, ids)) or 'none'}"],
            code="BROKER_NOT_FOUND",
        )


class BrokerSettings(NamedTuple):
    """The settings that a broker reports."""

    id: int
    now: BrokerConfig  # in effect
    start: BrokerConfig  # of its start, from file and options
    overridden: frozenset[str]  # fields that are set in ZooKeeper
    topics: Mapping[str, Mapping[str, str]]  # overrides in effect, by topic and name
    problems: Mapping[str, str]  # why nodes in ZooKeeper are not used, by path
    has_zookeeper: bool  # whether it follows settings there

    def origin(self, field: str) -> str:
        """Return where the value of a field is from: broker, start or default."""
        if field in self.overridden:
            return "broker"
        is_default = getattr(self.now, field) == getattr(BrokerConfig(), field)
        return "default" if is_default else "start"


def settings_in(document: Mapping[str, Any]) -> BrokerSettings | None:
    """Return the settings in a status document; None if an older broker does not report them."""
    if "settings" not in document:
        return None
    settings = document["settings"]
    return BrokerSettings(
        document["broker"],
        _config({name: one["value"] for name, one in settings.items()}),
        _config(document["start_settings"]),
        frozenset(
            field
            for name, one in settings.items()
            if one["origin"] == "broker"
            for field in _fields_of(name)
        ),
        document["topic_settings"],
        document["settings_problems"],
        document["zookeeper"] is not None,
    )


def _config(texts: Mapping[str, str]) -> BrokerConfig:
    """Return settings by their texts; properties of newer brokers are left out."""
    return BrokerConfig.from_properties({name: texts[name] for name in texts if _fields_of(name)})


def _fields_of(name: str) -> tuple[str, ...]:
    """Return the field of a property, none of an unknown one."""
    try:
        return (BrokerConfig.property_of(name).field,)
    except ConfigError:
        return ()


def read_settings(env: Environment, addresses: Sequence[BrokerAddress]) -> Iterator[BrokerSettings]:
    """Yield the settings of brokers; brokers that do not report them are left out with an error."""
    connect = connector(env)
    for address in addresses:
        response = request_status(connect, address)
        if response.error is not None:
            env.leave_out(f"broker {address.id}: {response.error}")
            continue
        found = None if response.document is None else settings_in(response.document)
        if found is None:
            env.leave_out(f"broker {address.id} does not tell its settings: it is an older one")
            continue
        yield found


def warn_of_problems(env: Environment, brokers: Sequence[BrokerSettings]) -> None:
    """Warn of nodes in ZooKeeper that brokers cannot use; each node once."""
    problems: dict[str, tuple[str, list[int]]] = {}
    for broker in brokers:
        for path, problem in broker.problems.items():
            problems.setdefault(path, (problem, []))[1].append(broker.id)
    for path, (problem, ids) in sorted(problems.items()):
        who = ", ".join(map(str, ids))
        env.warn(f"node {path} is not used by broker {who}: {problem}")


def read_one(
    env: Environment, registry: Registry, broker_id: int
) -> tuple[BrokerSettings, list[BrokerSettings]]:
    """Return the settings of a registered broker, and those of the others."""
    addresses = RegistryCluster(registry).brokers()
    validate_exists(registry, target_of_broker(broker_id))
    own = [address for address in addresses if address.id == broker_id]
    others = [address for address in addresses if address.id != broker_id]
    return _told(request_status(connector(env), own[0])), list(read_settings(env, others))


def read_at_address(env: Environment, address: str) -> tuple[BrokerSettings, str | None]:
    """Return the settings of the broker at an address, and its connect string of ZooKeeper."""
    try:
        (found,) = parse_broker_list(address)
    except (ProtocolError, ValueError) as error:
        raise UsageError(f"'{address}' is neither a broker's id nor HOST:PORT") from error
    response = request_status(connector(env), found)
    settings = _told(response)
    return settings, None if response.document is None else response.document["zookeeper"]


def _told(response: StatusResponse) -> BrokerSettings:
    if response.error is not None:
        raise response.error
    found = None if response.document is None else settings_in(response.document)
    if found is None:
        raise CliError(
            ExitStatus.UNSUPPORTED,
            f"the broker at {response.address.host}:{response.address.port} does not tell its "
            "settings: it is an older one",
        )
    return found

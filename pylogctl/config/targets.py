"""The topic or broker that a command is about, and the settings that brokers report to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker.admin import settings
from broker.admin.brokers import request_status
from broker.admin.settings import BrokerSettings, Target
from broker.client.connection import parse_broker_list
from broker.client.registry_cluster import RegistryCluster
from broker.errors import InvalidTopicError, ProtocolError, UnsupportedVersionError
from broker.protocol.responses import BrokerAddress
from pylogctl.cli.connections import connector
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError

if TYPE_CHECKING:
    from broker.zk.registry import Registry


def target_of_topic(topic: str) -> Target:
    """Return a topic as a target; an invalid name is a UsageError."""
    try:
        return settings.target_of_topic(topic)
    except InvalidTopicError as error:
        raise UsageError(str(error)) from error


def read_settings(env: Environment, addresses: Sequence[BrokerAddress]) -> list[BrokerSettings]:
    """Return the settings of brokers; those that do not report them are left out with an error."""
    report = settings.read_settings(connector(env), addresses)
    for broker_id, error in report.failed.items():
        if isinstance(error, UnsupportedVersionError):
            env.leave_out(f"broker {broker_id} does not tell its settings: it is an older one")
        else:
            env.leave_out(f"broker {broker_id}: {error}")
    return report.brokers


def warn_of_problems(env: Environment, brokers: Sequence[BrokerSettings]) -> None:
    """Warn of nodes in ZooKeeper that brokers cannot use; each node once."""
    for path, problem, ids in settings.problems_of_nodes(brokers):
        who = ", ".join(map(str, ids))
        env.warn(f"node {path} is not used by broker {who}: {problem}")


def read_one(
    env: Environment, registry: Registry, broker_id: int
) -> tuple[BrokerSettings, list[BrokerSettings]]:
    """Return the settings of a registered broker, and those of the others."""
    addresses = RegistryCluster(registry).brokers()
    settings.validate_exists(registry, settings.target_of_broker(broker_id))
    own = [address for address in addresses if address.id == broker_id]
    others = [address for address in addresses if address.id != broker_id]
    with _unsupported():
        found = settings.settings_of(request_status(connector(env), own[0]))
    return found, read_settings(env, others)


def read_at_address(env: Environment, address: str) -> tuple[BrokerSettings, str | None]:
    """Return the settings of the broker at an address, and its connect string of ZooKeeper."""
    try:
        (found,) = parse_broker_list(address) if ":" in address else []  # a misspelt id
    except (ProtocolError, ValueError) as error:
        raise UsageError(f"'{address}' is neither a broker's id nor HOST:PORT") from error
    response = request_status(connector(env), found)
    with _unsupported():
        reported = settings.settings_of(response)
    return reported, None if response.document is None else response.document["zookeeper"]


@contextmanager
def _unsupported() -> Iterator[None]:
    """End with UNSUPPORTED if the broker that was asked is an older one."""
    try:
        yield
    except UnsupportedVersionError as error:
        raise CliError(ExitStatus.UNSUPPORTED, str(error)) from error

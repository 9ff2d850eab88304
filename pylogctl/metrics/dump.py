"""`pylogctl metrics dump`: the text of one scrape."""

from __future__ import annotations

from broker.admin.brokers import request_exposition
from broker.admin.groups import list_groups
from broker.admin.lag import GroupObserver
from broker.exposition import exposition_text
from pylogctl.broker.control import find_broker
from pylogctl.cli.connections import Absence, connector, open_cluster, open_registry
from pylogctl.cli.environment import Environment
from pylogctl.cli.failures import Done, raise_failures
from pylogctl.metrics.groups import Looks, readings


def dump_broker(env: Environment, broker_id: int | None) -> None:
    """Write the metrics of a broker; without an id, of the one that `--broker` names."""
    with open_cluster(env, absence=Absence.WARN) as cluster:
        address = find_broker(cluster, connector(env), broker_id, env.settings.brokers)
    env.write(request_exposition(connector(env), address).encode())


def dump_groups(env: Environment) -> None:
    """Write the metrics of all groups as they are now."""
    with open_registry(env) as registry:
        observer = GroupObserver(registry, connector(env), env.clock)
        lags = observer.lag(*list_groups(registry.session), ages=True)
    looks = Looks(lags, env.clock.time_ms())
    env.write(exposition_text(readings(looks), of_process=False).encode())
    env.flush()
    failures = {str(error): error for one in lags for error in one.failures}
    homes = {home for one in lags for home in one.homes}
    raise_failures(env, Done(list(failures.values()), len(homes), "brokers"))

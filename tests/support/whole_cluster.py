"""An ephemeral cluster whose brokers know one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from pylogctl import Client
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.support.waiting import wait_until


@contextmanager
def whole_cluster(count: int, settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Run brokers with a ZooKeeper; each names all of them, and the controller."""
    with ephemeral_cluster(count, settings) as cluster:
        for broker in cluster.brokers:
            with broker.connect() as client:
                wait_until(partial(_is_whole, client, count), "brokers that know one another")
        yield cluster


def _is_whole(client: Client, count: int) -> bool:
    found = client.brokers()
    return len(found) == count and any(one.is_controller for one in found)

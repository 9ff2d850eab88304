"""Brokers for the tests of programs: in the process of the test, with data that go with them.

With pytest the fixtures of `pylogctl.pytest_plugin` need no import; see there.

    brokers.py    brokers in the process of a test, alone or as a cluster
    clock.py      a clock that a test sets forward
    faults.py     a broker behind a proxy that delays, breaks and cuts what passes
    loopback.py   a server on loopback, which serves each connection in a thread of its own
    zookeeper.py  a ZooKeeper in the process of a test: groups and replicas without Java
"""

from __future__ import annotations

from pylogctl.testing.brokers import Broker as Broker
from pylogctl.testing.brokers import Cluster as Cluster
from pylogctl.testing.brokers import ephemeral_cluster as ephemeral_cluster
from pylogctl.testing.brokers import memory_cluster as memory_cluster
from pylogctl.testing.clock import Clock as Clock
from pylogctl.testing.faults import Faults as Faults

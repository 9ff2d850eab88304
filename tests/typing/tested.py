"""Tests of a user's program: see `test_typing.py`."""

from __future__ import annotations

from typing import assert_type

import pylogctl
from pylogctl.pytest_plugin import MakeBroker
from pylogctl.testing import Broker, Clock, Cluster, Faults, ephemeral_cluster, memory_cluster


def use_fixtures(
    pylog: pylogctl.Client,
    pylog_own_broker: MakeBroker,
    pylog_clock: Clock,
    pylog_faults: Faults,
    pylog_cluster: Cluster,
) -> None:
    """Use what the fixtures give."""
    own = pylog_own_broker({"log.retention.hours": "1"}, clock=pylog_clock)
    assert_type(own, Broker)
    assert_type(own.connect(), pylogctl.Client)
    assert_type(own.address, str)
    own.kill()
    own.restart()
    pylog_clock.advance(hours=2)
    own.apply_retention()
    pylog_faults.cut_after(100)
    assert_type(pylog_faults.connect(timeout=1), pylogctl.Client)
    pylog_cluster.broker(1).kill()
    assert_type(pylog.topics(), list[pylogctl.TopicInfo])


def use_classes() -> None:
    """Use the classes without pytest."""
    with Broker({"num.partitions": "3"}) as one, one.connect() as client:
        assert_type(client.send("orders", "one").offset, int)
    with ephemeral_cluster(3) as cluster, memory_cluster() as other:
        assert_type(other, Cluster)
        assert_type(cluster, Cluster)


def mistake(clock: Clock) -> None:
    """Make the mistakes that checkers find."""
    Broker({"num.partitions": 3})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    clock.advance(days=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

"""A partition that its broker cannot read is the trouble of that partition alone."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from broker.log.format import segment_name
from broker.server.broker import Broker
from broker.zk.session import Session
from tests.integration.broker.consumer.group_members import (
    Member,
    numbered,
    publish,
)
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered

pytestmark = pytest.mark.zookeeper

StartBroker = Callable[..., Broker]


def test_group_when_a_segment_became_shorter_then_the_other_partitions_go_on(
    start_broker: StartBroker,
    zookeeper: str,
    session: Session,
    join: Callable[..., Member],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    publish(broker, numbered("bad", 10), topic="bad")
    publish(broker, numbered("good", 10), topic="good")
    for topic in ("bad", "good"):
        await_registered(session, topic)
    os.truncate(broker.config.data_dir / "bad_0" / segment_name(0), 100)

    member = join(offset_reset="smallest")
    readable = set(numbered("bad", 7) + numbered("good", 10))
    wait_until(lambda: set(member.payloads) == readable, "delivery of all that can be read")
    said = "cannot read bad[0-0] at 98"
    wait_until(lambda: said in caplog.text, "a warning")
    publish(broker, numbered("later", 10), topic="good")

    wait_until(lambda: set(member.payloads) == readable | set(numbered("later", 10)), "more")
    assert member.error is None
    assert caplog.text.count(said) == 1


def test_group_when_a_partition_without_an_offset_is_offline_then_the_others_are_read(
    start_broker: StartBroker,
    zookeeper: str,
    session: Session,
    join: Callable[..., Member],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = start_broker(segment_bytes=50)
    for number in range(3):
        publish(broker, numbered(f"bad{number}", 5), topic="bad")
    publish(broker, numbered("good", 10), topic="good")
    broker.stop()
    sorted((broker.config.data_dir / "bad_0").iterdir())[1].unlink()
    start_broker(zookeeper=zookeeper)
    for topic in ("bad", "good"):
        await_registered(session, topic)

    join(offset_reset="smallest").await_payloads(numbered("good", 10))

    wait_until(lambda: "bad[0-0]" in caplog.text, "a warning that names the partition")

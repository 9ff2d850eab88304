"""Commands that read a topic whose broker is away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker import Broker
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.errors import ExitStatus
from tests.integration.pylogctl.topic.test_topic import fill
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "describe", "live"),
        ("consume", "live", "-e"),
        ("consume", "live", "-e", "--group", "g"),
    ],
)
def test_command_when_the_broker_of_a_topic_is_away_says_which_one(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    invoke: Invoke,
    command: tuple[str, ...],
) -> None:
    broker = start_broker(zookeeper=zookeeper, broker_id=7)
    fill(broker, "live", [b"x"])
    wait_until(lambda: session.exists(paths.topic_broker("live", 7)), "the registration")
    broker.stop()

    result = invoke(*command, "-Z", zookeeper)

    assert result.status == ExitStatus.UNREACHABLE
    assert "topic 'live' is on broker 7, which is away" in result.stderr
    assert "similar name" not in result.stderr


def test_command_when_a_topic_was_deleted_and_its_broker_is_away_does_not_find_it(
    start_broker: Callable[..., Broker], zookeeper: str, session: Session, invoke: Invoke
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    fill(broker, "gone", [b"x"])
    wait_until(lambda: session.exists(paths.topic_broker("gone", 0)), "the registration")
    options = ("-Z", zookeeper, "--yes", "--confirm", "gone")
    assert invoke("topic", "delete", "gone", "--data", *options).status == ExitStatus.OK
    broker.stop()

    result = invoke("topic", "describe", "gone", "-Z", zookeeper)

    assert result.status == ExitStatus.NOT_FOUND

"""Commands on a broker that cannot read the log of one of its partitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker
from broker.log.format import segment_name
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.topic.test_topic import fill
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

REASON = "broken[0-0]: its broker cannot read its log"


@pytest.fixture
def unreadable(
    start_broker: Callable[..., Broker], tmp_path: Path, zookeeper: str, session: Session
) -> str:
    """The ZooKeeper of a broker with topic `whole`, and `broken` without its second segment."""
    settings = {"zookeeper": zookeeper, "segment_bytes": 100}
    broker = start_broker(**settings)
    fill(broker, "whole", [b"fine"])
    for _ in range(3):
        fill(broker, "broken", [b"x" * 100])
    broker.stop()
    (tmp_path / "data" / "broken_0" / segment_name(110)).unlink()
    start_broker(**settings)
    wait_until(lambda: session.exists(paths.topic_broker("broken", 0)), "the registration")
    return zookeeper


def test_topic_list_when_a_log_is_unreadable_then_lists_the_others_and_names_it(
    unreadable: str, invoke: Invoke
) -> None:
    shown = ("--columns", "name,size_bytes", "--output", "tsv")
    result = invoke("topic", "list", "-Z", unreadable, *shown)

    rows = [line.split("\t") for line in result.text.splitlines()]
    assert [(row[0], row[-1]) for row in rows[-2:]] == [("broken", ""), ("whole", "14")]
    assert result.status == ExitStatus.PARTIAL
    assert REASON in result.stderr


def test_topic_describe_when_a_log_is_unreadable_then_says_so(
    unreadable: str, invoke: Invoke
) -> None:
    result = invoke("topic", "describe", "broken", "-Z", unreadable)

    assert result.status == ExitStatus.PARTIAL
    assert "broken[0-0] is offline: a gap" in result.stderr


def test_consume_in_a_group_from_the_beginning_when_a_log_is_unreadable_then_reads_the_others(
    unreadable: str, invoke: Invoke
) -> None:
    options = ("--include", ".*", "--from-beginning", "-n", "1", "-Z", unreadable)

    result = invoke("consume", "--group", "g", *options)

    assert (result.status, result.text) == (ExitStatus.OK, "fine\n")
    assert REASON in result.stderr

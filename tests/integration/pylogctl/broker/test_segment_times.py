"""Segments with times that cannot be: of a clock that was ahead, or went back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from pylogctl.testing import Broker, Clock
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

SENT = [b"%03d" % number for number in range(120)]
PER_SEGMENT = 40
SIZE = 13


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(clock: Clock) -> Iterator[Broker]:
    """A broker with three segments."""
    settings = {"log.file.size": str(PER_SEGMENT * SIZE - 1), "log.retention.hours": "24"}
    with Broker(settings, clock=clock) as started:
        with started.connect() as client:
            client.create_topic("events", partitions=1)
            for value in SENT:
                client.send("events", value)
        yield started


def set_times(broker: Broker, *hours_ago: float) -> None:
    """Give the segments, oldest first, their times while the broker is stopped."""
    broker.stop()
    segments = sorted((broker.data_dir / "events_0").glob("*.pylog"))
    for path, hours in zip(segments, hours_ago, strict=True):
        moment = time.time() - 3600 * hours
        os.utime(path, (moment, moment))
    broker.restart()


def test_retention_when_a_segment_is_dated_in_the_future_then_those_behind_it_are_deleted(
    broker: Broker, clock: Clock, invoke: Invoke
) -> None:
    set_times(broker, 3, -1000, 2)
    place = ("-b", broker.address)
    for command in (("broker", "status"), ("cluster", "health"), ("doctor",)):
        result = invoke(*command, *place, "--output", "json")
        text = result.stdout.decode() + result.stderr
        assert f"1 segment is dated in the future, such as {broker.data_dir}" in text, command
    with broker.connect() as client:
        for _ in range(2):  # the first rolls the expired segment
            clock.advance(hours=23)
            broker.apply_retention()
            client.send("events", b"new")
        wait_until(lambda: client.count("events") == 2, "the deletion")


def test_start_by_time_when_times_go_back_then_it_is_never_too_late(
    broker: Broker, invoke: Invoke
) -> None:
    set_times(broker, 10, 4, 20)
    ask = ("consume", "events", "-e", "-b", broker.address, "-o")
    assert invoke(*ask, "@-5h").stdout.splitlines() == SENT
    assert invoke(*ask, "@-3h").stdout.splitlines() == SENT[2 * PER_SEGMENT :]

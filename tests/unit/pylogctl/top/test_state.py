"""What `pylogctl top` makes of the answers of brokers."""

from __future__ import annotations

import pytest

from broker.protocol.extension_requests import StatusParts
from broker.topic import TopicPartition
from pylogctl.top.keys import Choices
from pylogctl.top.screen import Size, Style, screen
from pylogctl.top.state import BrokerState, Times, TopState
from pylogctl.top.views import VIEWS, ViewPlace, lines_of
from tests.unit.pylogctl.top.top_state import (
    BROKERS,
    START_MS,
    answer,
    failure,
    groups,
    metadata,
    now,
    watched,
)

METRICS = StatusParts.METRICS


def test_rate_when_there_were_two_looks_then_is_their_difference_by_their_time() -> None:
    state = watched(silent=())
    assert state.brokers[1].rate("KafkaServer", "CpuSeconds", METRICS) == 0.4
    assert state.total_rate("BrokerAllTopicStat", "BytesIn") == 3 * 1_050_000


def test_rate_when_a_look_lacks_its_part_then_is_unknown() -> None:
    state = TopState()
    state.take(answer(1, 1)._replace(parts=StatusParts.REPLICAS), START_MS)
    state.take(answer(1, 2), START_MS)
    assert state.brokers[1].rate("KafkaServer", "CpuSeconds", METRICS) is None


def test_rate_when_the_broker_was_started_again_then_is_unknown() -> None:
    state = watched(silent=())
    found = answer(1, 1)
    restarted = {**found.document, "started_ms": START_MS}
    state.take(found._replace(document=restarted, time_s=9.0), START_MS)
    assert state.brokers[1].rate("KafkaServer", "CpuSeconds", METRICS) is None


def test_rate_when_a_topic_is_new_since_the_last_look_then_is_counted_from_nothing() -> None:
    state = TopState()
    first = answer(1, 1)
    metrics = {k: v for k, v in first.document["metrics"].items() if "orders" not in k}
    state.take(first._replace(document={**first.document, "metrics": metrics}), START_MS)
    state.take(answer(1, 2), START_MS)
    broker = state.brokers[1]
    assert broker.rate("BrokerTopicStat.orders", "MessagesIn", StatusParts.TOPICS) == 200


def test_broker_when_silent_then_keeps_its_values_and_has_no_rates() -> None:
    state = watched(silent=(3,))
    broker = state.brokers[3]
    assert broker.silent_since_s == 4.0
    assert broker.document["connections"] == 43
    assert broker.rate("KafkaServer", "CpuSeconds", METRICS) is None
    assert any("broker 3 lost" in one.text for one in state.events)


def test_broker_when_it_never_answered_then_is_down() -> None:
    state = TopState()
    state.take(failure(1, 1), START_MS)
    (line,) = lines_of(state, ViewPlace("brokers"), now(3))
    assert line.is_silent
    assert line.row.by_column()["state"] == "DOWN"
    assert line.row.by_column()["age"] == 4.0


def test_events_when_a_broker_is_lost_then_tell_of_leaders_and_of_its_return() -> None:
    state = watched(silent=(3,))
    state.take(answer(3, 5, cluster=metadata()), START_MS)
    texts = [one.text for one in state.events]
    assert any(one.startswith("new leaders: 2 partitions (orders[3-0]") for one in texts)
    assert "broker 3 is back" in texts


def test_changes_of_a_partition_when_its_leader_is_lost_then_are_told_below_its_replicas() -> None:
    state = watched(silent=(3,))
    (change,) = state.changes[TopicPartition("orders", 3, 0)]
    assert change.text == "led by 1, before 3; in sync 1, before 1,3"
    choices = Choices([ViewPlace("replicas", "orders/3-0")])
    lines = screen(state, choices, Size(80, 24), now(4), Style())
    assert lines[-3].endswith(change.text)


def test_copy_when_further_answers_come_then_stays_as_it_was() -> None:
    state = watched(silent=())
    frozen = state.copy()
    before = lines_of(frozen, ViewPlace("topics"), now(2))
    state.take(answer(1, 3), START_MS)
    state.end_look(START_MS)
    after = lines_of(frozen, ViewPlace("topics"), now(2))
    assert [one.row.by_column() for one in after] == [one.row.by_column() for one in before]
    assert [one.trend for one in after] == [one.trend for one in before]


def lags(state: TopState) -> list[int | None] | None:
    return None if state.groups is None else [one.lag_bytes for one in state.groups]


def test_groups_when_ends_are_older_than_their_offsets_then_wait_for_the_next_look() -> None:
    state = TopState()
    for broker in BROKERS:
        state.take(answer(broker, 1, cluster=metadata()), START_MS)
    state.take(groups(2), START_MS)
    state.end_look(START_MS)
    assert lags(state) is None
    assert state.wants_logs
    for broker in BROKERS:
        state.take(answer(broker, 2), START_MS)
    state.end_look(START_MS)
    assert lags(state) == [0, 900_000]
    assert not state.wants_logs


def test_groups_when_only_logs_of_a_topic_were_asked_for_then_wait() -> None:
    state = TopState()
    for broker in BROKERS:
        state.take(answer(broker, 1, cluster=metadata()), START_MS)
    state.take(groups(2), START_MS)
    for broker in BROKERS:
        state.take(answer(broker, 2)._replace(topic="orders-dlq"), START_MS)
    state.end_look(START_MS)
    assert lags(state) is None


def test_interval_when_brokers_have_many_partitions_then_is_longer_for_figures_of_each() -> None:
    state = TopState()
    found = answer(1, 1)
    state.take(found._replace(document={**found.document, "partitions": 1000}), START_MS)
    assert state.least_interval_s(VIEWS["overview"].parts) == pytest.approx(2.5)
    assert state.least_interval_s(VIEWS["topics"].parts) == pytest.approx(4.5)


@pytest.mark.parametrize(
    ("counts", "share", "expected_s"),
    [
        ([10, 0, 0], 0.5, 0.05),
        ([5, 5, 0], 0.75, 0.15),
        ([0, 0, 4], 0.99, 0.2),  # above the last bound: no more is known
        ([0, 0, 0], 0.5, None),
    ],
)
def test_quantile_is_within_its_bucket(
    counts: list[int], share: float, expected_s: float | None
) -> None:
    assert Times((0.1, 0.2), counts, 1.0).quantile_s(share) == expected_s


def test_broker_of_07_then_only_its_address_is_known() -> None:
    state = TopState()
    state.brokers[0] = BrokerState(answer(1, 1)._replace(document=None))
    (line,) = lines_of(state, ViewPlace("brokers"), now(1))
    assert line.row.by_column()["state"] == "running (0.7)"
    assert line.row.by_column()["bytes_in"] is None

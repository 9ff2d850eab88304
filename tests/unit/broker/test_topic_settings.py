from __future__ import annotations

from dataclasses import fields

import pytest

from broker.config import BrokerConfig
from broker.errors import ConfigError
from broker.properties import HOUR_MS, MINUTE_MS
from broker.topic_settings import (
    TOPIC_SETTINGS,
    TopicConfig,
    normalize,
    parse_overrides,
    setting_of,
    topic_config,
    validate_for_format,
    value_text,
)


def test_settings_when_listed_then_every_field_has_one_and_its_broker_has_its_default() -> None:
    of_brokers = {field.name for field in fields(BrokerConfig)}

    assert [one.property.field for one in TOPIC_SETTINGS].sort() == [
        field.name for field in fields(TopicConfig)
    ].sort()
    assert {one.broker_field for one in TOPIC_SETTINGS if one.broker_field} <= of_brokers
    assert {one.map_field for one in TOPIC_SETTINGS if one.map_field} <= of_brokers


def test_topic_when_in_the_maps_of_the_broker_then_they_replace_the_general_settings() -> None:
    config = BrokerConfig.from_properties(
        {
            "topic.log.file.size": "own:100",
            "topic.log.roll.hours": "own:1",
            "topic.log.retention.hours": "own:2",
            "topic.log.retention.size": "own:300",
            "topic.flush.intervals.ms": "own:4",
            "topic.partition.count.map": "own:6",
            "log.flush.interval": "50",
        }
    )

    assert topic_config(config, "own") == TopicConfig(
        100, HOUR_MS, 2 * HOUR_MS, 300, 50, 4, partition_count=6
    )


def test_topic_when_it_has_no_settings_of_its_own_then_has_the_general_ones() -> None:
    config = BrokerConfig.from_properties({"topic.log.file.size": "own:100"})

    assert topic_config(config, "other") == TopicConfig(
        config.segment_bytes,
        config.roll_ms,
        config.retention_ms,
        config.retention_bytes,
        config.flush_interval_messages,
        config.flush_interval_ms,
    )


def test_topic_when_it_has_overrides_then_they_go_over_the_maps_of_the_broker() -> None:
    config = BrokerConfig(topic_retention_ms={"t": 5}, retention_ms=6, flush_before_read=True)
    overrides = parse_overrides({"retention.ms": "7", "flush.before.read": "false"})

    found = topic_config(config, "t", overrides)

    assert (found.retention_ms, found.flush_before_read) == (7, False)
    assert found.segment_bytes == config.segment_bytes


@pytest.mark.parametrize(
    ("name", "text", "normal"),
    [
        ("retention.ms", "5", {"retention.ms": "5"}),
        ("topic.log.retention.hours", "2", {"retention.ms": str(2 * HOUR_MS)}),
        ("log.retention.minutes", "2", {"retention.ms": str(2 * MINUTE_MS)}),
        ("log.retention.bytes", "-1", {"retention.bytes": "-1"}),
        ("topic.log.file.size", "100", {"segment.bytes": "100"}),
        ("log.segment.bytes", "100", {"segment.bytes": "100"}),
        ("log.flush.interval.messages", "9", {"flush.messages": "9"}),
        ("topic.flush.intervals.ms", "9", {"flush.ms": "9"}),
        ("topic.partition.count.map", "3", {"partition.count": "3"}),
        ("log.flush.before.read", "false", {"flush.before.read": "false"}),
    ],
)
def test_override_when_named_as_in_07_or_08_then_is_normalized_with_its_unit(
    name: str, text: str, normal: dict[str, str]
) -> None:
    assert normalize({name: text}) == normal


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("retention.m", "1", "no setting of topics 'retention.m'; did you mean 'retention.ms'?"),
        ("port", "1", "'port' is a setting of brokers, which topics do not have"),
        ("flush.ms", "0", "flush.ms is 0; it must be at least 1"),
        ("segment.bytes", "4", "segment.bytes is 4; it must be at least 5"),
        ("topic.log.file.size", "4", "segment.bytes is 4; it must be at least 5"),
        ("retention.ms", "soon", "retention.ms is 'soon'; it must be a whole number"),
        ("flush.before.read", "1", "flush.before.read is '1'; it must be true or false"),
        ("retention.bytes", "-2", "retention.bytes is -2; it must be at least -1"),
        (
            "cleanup.policy",
            "arhive",
            "cleanup.policy is 'arhive'; it must be one of delete, archive, "
            "compact, compact,delete, delete,compact",
        ),
        (
            "schema.validation",
            "fll",
            "schema.validation is 'fll'; it must be one of none, id, full",
        ),
    ],
)
def test_override_when_unknown_or_out_of_range_then_config_error_names_it(
    name: str, text: str, complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        normalize({name: text})

    assert str(caught.value) == complaint


def test_value_when_written_as_text_then_can_be_set_again() -> None:
    config = topic_config(BrokerConfig(), "t")

    for one in TOPIC_SETTINGS:
        text = value_text(getattr(config, one.property.field), one)
        assert normalize({one.property.name: text}) == {one.property.name: text}


def test_setting_when_looked_up_by_any_of_its_names_then_is_the_same() -> None:
    names = ("segment.bytes", "log.file.size", "topic.log.file.size", "log.segment.bytes")

    assert len({setting_of(name) for name in names}) == 1


@pytest.mark.parametrize("text", ["1.1", "-0.5", "nan", "half", ""])
def test_ratio_when_it_is_no_number_from_0_to_1_then_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="must be a number from 0 to 1"):
        normalize({"min.cleanable.dirty.ratio": text})


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete,compact"])
def test_compaction_when_a_topic_is_of_07_then_refused(policy: str) -> None:
    texts = normalize({"cleanup.policy": policy})

    validate_for_format("t", "kafka", texts)
    with pytest.raises(ConfigError, match=f"'t' cannot have cleanup.policy={policy}: .*no keys"):
        validate_for_format("t", "0.7", texts)
    validate_for_format("t", "0.7", normalize({"cleanup.policy": "archive"}))

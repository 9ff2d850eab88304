from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.config import BrokerConfig
from broker.consumer.config import ConsumerConfig
from broker.errors import ConfigError
from broker.producer.config import ProducerConfig
from broker.properties import (
    ALIASES,
    HOUR_MS,
    MINUTE_MS,
    BaseConfig,
    Property,
    PropertyKind,
    Secret,
    parse_property,
)
from broker.security.client_security import ClientSecurity

KINDS: list[type[BaseConfig]] = [BrokerConfig, ProducerConfig, ConsumerConfig]
EVERY_PROPERTY = [
    pytest.param(kind, prop, id=f"{kind.__name__}-{prop.name}")
    for kind in KINDS
    for prop in kind.PROPERTIES
]
TOPICS = st.from_regex(r"[a-zA-Z0-9._:-]{1,12}", fullmatch=True)


TEXTS_OF_FIELDS = {
    "listeners": ("", "A=plain://[::1]:0", "A=plain://:9093, B=plain://h.example:65535"),
    "advertised_listeners": ("", "PLAIN=h.example:9092"),
    "inter_broker_listener": ("", "PLAIN"),
    "optional_authentication": ("", "PLAIN"),
    "retention_policy": ("delete", "archive", "compact,delete", "module:name"),
}


def texts(prop: Property) -> st.SearchStrategy[str]:
    """Texts that a property takes."""
    least = -(2**63) if prop.minimum is None else prop.minimum
    numbers = st.integers(least, prop.maximum)
    if prop.choices:
        return st.sampled_from(prop.choices)
    match prop.kind:
        case PropertyKind.INTEGER:
            return numbers.map(str)
        case PropertyKind.RATIO:
            return st.floats(0, 1).map(str)
        case PropertyKind.BOOLEAN:
            return st.sampled_from(("true", "false"))
        case PropertyKind.TOPIC_MAP:
            maps = st.dictionaries(TOPICS, numbers, max_size=3)
            return maps.map(lambda found: ",".join(f"{t}:{n}" for t, n in found.items()))
        case PropertyKind.TEXT_MAP:
            named = st.dictionaries(
                st.from_regex(r"[a-z.]{1,9}", fullmatch=True), st.just("module:name"), max_size=3
            )
            return named.map(lambda found: ",".join(f"{t}:{n}" for t, n in found.items()))
        case PropertyKind.OPTIONAL_PATH | PropertyKind.PATHS:
            path = st.from_regex(r"/?[a-z]{1,8}(/[a-z. ]{1,8}[a-z])?", fullmatch=True)
            count = 3 if prop.kind is PropertyKind.PATHS else 1
            return st.lists(path, min_size=1, max_size=count).map(",".join)
        case PropertyKind.TEXT if prop.field == "cleanup_times":
            return st.from_regex(r"([01][0-9]:[0-5][0-9](,2[0-3]:00)?)?", fullmatch=True)
        case PropertyKind.TEXT if prop.field in TEXTS_OF_FIELDS:
            return st.sampled_from(TEXTS_OF_FIELDS[prop.field])
        case PropertyKind.TEXT | PropertyKind.SECRET:
            return st.from_regex(r"([a-z0-9.]{1,9}(:[0-9]{1,5})?(,[a-z0-9:]+)?)?", fullmatch=True)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_when_listed_then_every_field_has_a_property_and_every_property_a_field(
    kind: type[BaseConfig],
) -> None:
    assert {field.name for field in fields(kind)} == {prop.field for prop in kind.PROPERTIES}


@pytest.mark.parametrize("kind", KINDS)
def test_properties_when_listed_then_names_are_unique(kind: type[BaseConfig]) -> None:
    names = [prop.name for prop in kind.PROPERTIES]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", KINDS)
def test_properties_when_several_set_one_field_then_they_differ_by_unit(
    kind: type[BaseConfig],
) -> None:
    units = [(prop.field, prop.scale) for prop in kind.PROPERTIES]

    assert len(units) == len(set(units))


@pytest.mark.parametrize(("kind", "prop"), EVERY_PROPERTY)
def test_property_when_described_then_says_what_it_means(
    kind: type[BaseConfig], prop: Property
) -> None:
    assert prop.doc
    assert not prop.doc.endswith(".")


@pytest.mark.parametrize(("kind", "prop"), EVERY_PROPERTY)
def test_default_when_looked_at_then_is_of_the_kind_of_its_property(
    kind: type[BaseConfig], prop: Property
) -> None:
    types: dict[PropertyKind, type | tuple[type, ...]] = {
        PropertyKind.INTEGER: int,
        PropertyKind.RATIO: float,
        PropertyKind.BOOLEAN: bool,
        PropertyKind.TEXT: str,
        PropertyKind.PATHS: tuple,
        PropertyKind.OPTIONAL_PATH: (Path, type(None)),
        PropertyKind.TOPIC_MAP: Mapping,
        PropertyKind.TEXT_MAP: Mapping,
        PropertyKind.SECRET: Secret,
    }

    assert isinstance(getattr(kind(), prop.field), types[prop.kind])


@pytest.mark.parametrize("kind", KINDS)
def test_settings_when_no_property_is_given_then_are_the_defaults(kind: type[BaseConfig]) -> None:
    assert kind.from_properties({}) == kind()


@pytest.mark.parametrize(
    ("core_count", "expected"), [(None, 1), (1, 1), (2, 1), (3, 1), (4, 2), (9, 4)]
)
def test_threads_when_not_set_then_half_as_many_as_cores_and_at_least_one(
    core_count: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: core_count)
    assert BrokerConfig().num_threads == expected


@pytest.mark.parametrize(("kind", "prop"), EVERY_PROPERTY)
def test_default_when_written_as_text_and_read_then_is_the_same(
    kind: type[BaseConfig], prop: Property
) -> None:
    text = kind().value_text(prop)

    assert kind.from_properties({prop.name: text} if text else {}) == kind()


@pytest.mark.parametrize(
    ("kind", "prop"),
    # those of security are valid only together, and a secret has no text
    [one for one in EVERY_PROPERTY if one.values[1] not in ClientSecurity.PROPERTIES],
)
@settings(max_examples=20)
@given(data=st.data())
def test_value_when_written_as_text_and_read_then_is_the_same(
    kind: type[BaseConfig], prop: Property, data: st.DataObject
) -> None:
    value = parse_property(prop, data.draw(texts(prop)))
    fitting: dict[str, dict[str, Any]] = {
        "retention_policy": {"archive_dir": Path("/archive")},
        "port": {"listeners": "A=plain://:0"},
        "ssl_client_auth": {"ssl_ca": Path("ca.pem")},
        "replica_lag_ms": {"replica_fetch_wait_ms": 0},
        "replica_fetch_wait_ms": {"replica_lag_ms": 1 << 40},
    }
    config = kind(**{**fitting.get(prop.field, {}), prop.field: value})

    assert parse_property(prop, config.value_text(prop)) == value


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("brokerid", "7", "broker_id", 7),
        ("port", " 6667 ", "port", 6667),
        ("log.dir", "/var/data", "data_dirs", (Path("/var/data"),)),
        ("log.dirs", "/a, /b", "data_dirs", (Path("/a"), Path("/b"))),
        ("zk.connect", "a:1,b:2/chroot", "zookeeper", "a:1,b:2/chroot"),
        ("log.roll.hours", "1", "roll_ms", HOUR_MS),
        ("log.roll.minutes", "1", "roll_ms", MINUTE_MS),
        ("log.retention.hours", "168", "retention_ms", 604_800_000),
        ("log.retention.minutes", "5", "retention_ms", 300_000),
        ("log.retention.size", "-1", "retention_bytes", -1),
        ("log.cleanup.interval.mins", "10", "cleanup_interval_ms", 600_000),
        ("monitoring.period.secs", "600", "monitoring_period_ms", 600_000),
        ("log.flush.interval", "500", "flush_interval_messages", 500),
        ("log.default.flush.interval.ms", "3000", "flush_interval_ms", 3000),
        ("topic.flush.intervals.ms", "a:1000", "topic_flush_interval_ms", {"a": 1000}),
        ("topic.log.roll.hours", "a:2,b:3", "topic_roll_ms", {"a": 2 * HOUR_MS, "b": 3 * HOUR_MS}),
        ("topic.log.retention.hours", "a:1", "topic_retention_ms", {"a": HOUR_MS}),
        ("topic.log.retention.size", "a:5000000000", "topic_retention_bytes", {"a": 5 * 10**9}),
        ("topic.log.file.size", "a:100", "topic_segment_bytes", {"a": 100}),
    ],
)
def test_property_when_given_then_sets_its_field_in_the_unit_of_the_field(
    name: str, text: str, field: str, value: object
) -> None:
    assert getattr(BrokerConfig.from_properties({name: text}), field) == value


@pytest.mark.parametrize(
    ("config", "name", "text"),
    [
        (BrokerConfig(retention_ms=1_234_567 * HOUR_MS), "log.retention.hours", "1234567"),
        (BrokerConfig(retention_ms=90 * MINUTE_MS), "log.retention.hours", "1.5"),
        (BrokerConfig(retention_ms=90 * MINUTE_MS), "log.retention.minutes", "90"),
        (BrokerConfig(archive_dir=None), "log.archive.dir", ""),
        (BrokerConfig(topic_roll_ms={"a": HOUR_MS}), "topic.log.roll.hours", "a:1"),
    ],
)
def test_value_when_written_as_text_then_is_exact_in_the_unit_of_the_property(
    config: BrokerConfig, name: str, text: str
) -> None:
    (prop,) = [prop for prop in BrokerConfig.PROPERTIES if prop.name == name]

    assert config.value_text(prop) == text


TLS = {"ssl.certificate.location": "broker.pem"}


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({"listeners": "A=ssl://h:1"}, "'A=ssl://h:1' is not NAME=tls://HOST:PORT"),
        ({"listeners": "A=plain://h:65536"}, "'A=plain://h:65536' is not"),
        ({"listeners": "A B=plain://h:1"}, "is not NAME="),
        ({"listeners": "A=plain://h:1,A=plain://h:2"}, "'A' is there twice"),
        ({"listeners": "PLAIN=plain://h:1"}, "which port=-1 leaves out"),
        ({"listeners": "A=tls://h:1"}, "need ssl.certificate.location"),
        ({"port": "-1"}, "port=-1 leaves no listener"),
        ({"advertised.listeners": "A=h:1"}, "there is no listener 'A'"),
        ({"advertised.listeners": "PLAIN=h"}, "'PLAIN=h' is not NAME=HOST:PORT"),
        ({"inter.broker.listener.name": "B"}, "there is no listener of that name, only PLAIN"),
        ({"authentication.optional.listeners": "PLAIN, B"}, "there is no listener 'B', only PLAIN"),
        ({"ssl.client.auth": "required"}, "ssl.client.auth=required needs ssl.ca.location"),
        ({"ssl.client.auth": "maybe"}, "must be one of none, requested, required"),
    ],
)
def test_listeners_when_they_cannot_be_meant_so_then_the_error_says_why(
    texts: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        BrokerConfig.from_properties(texts)


def test_listeners_when_the_plain_one_is_left_out_then_others_may_have_its_name() -> None:
    config = BrokerConfig.from_properties(
        {"port": "-1", "listeners": "A=tls://[::1]:9093, PLAIN=plain://:9092", **TLS}
    )

    assert list(map(str, config.endpoints)) == ["A=tls://[::1]:9093", "PLAIN=plain://:9092"]


def test_config_when_followers_may_wait_as_long_as_the_lag_allowed_then_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"replica\.fetch\.wait\.max\.ms=10000 must be below"):
        BrokerConfig(replica_fetch_wait_ms=10_000)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", {}),
        ("a:1", {"a": 1}),
        ("a:1,b:2", {"a": 1, "b": 2}),
        (" a : 1 , b:2 , ", {"a": 1, "b": 2}),
        ("with:colon:3", {"with:colon": 3}),
        ("a:1,a:2", {"a": 2}),
    ],
)
def test_topic_map_when_it_has_blanks_then_they_mean_nothing(
    text: str, counts: dict[str, int]
) -> None:
    config = BrokerConfig.from_properties({"topic.partition.count.map": text})

    assert config.topic_partition_counts == counts


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("port", "many", "port is 'many'; it must be a whole number"),
        ("port", "", "port is ''; it must be a whole number"),
        ("port", "1.5", "port is '1.5'; it must be a whole number"),
        ("port", "-2", "port is -2; it must be at least -1"),
        ("port", "65536", "port is 65536; it must be at most 65535"),
        ("max.message.size", "2147483648", "it must be at most 2147483647"),
        ("log.cleanup.interval.mins", "525601", "it must be at most 525600"),
        ("log.cleanup.times", "02:00,24:00", "'24:00' is no time of day"),
        ("topic.partition.count.map", "a:2147483648", "it must be at most 2147483647"),
        ("num.threads", "0", "num.threads is 0; it must be at least 1"),
        ("log.file.size", "4", "log.file.size is 4; it must be at least 5"),
        ("log.roll.hours", "0", "log.roll.hours is 0; it must be at least 1"),
        ("log.cleanup.policy", "burn", "it must be one of delete, archive"),
        ("topic.log.cleanup.policy", "t:burn", "topic.log.cleanup.policy is 'burn'; it must be"),
        ("topic.partition.count.map", "a", "has 'a'; each item is topic:number"),
        ("topic.partition.count.map", ":1", "has ':1'; each item is topic:number"),
        ("topic.partition.count.map", "a:1, :2", "has ':2'; each item is topic:number"),
        ("topic.partition.count.map", "a:x", "is 'x'; it must be a whole number"),
        ("topic.partition.count.map", "a:0", "is 0; it must be at least 1"),
        ("topic.log.retention.size", "a:-1", "is -1; it must be at least 1"),
    ],
)
def test_property_when_malformed_or_out_of_range_then_config_error_names_it(
    name: str, text: str, complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({name: text})

    assert name in str(caught.value)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("text", ["true", "false"])
def test_boolean_when_true_or_false_then_is_read(text: str) -> None:
    prop = Property("p", "field", PropertyKind.BOOLEAN, "doc")

    assert parse_property(prop, f" {text} ") is (text == "true")


@pytest.mark.parametrize("text", ["True", "1", "yes", ""])
def test_boolean_when_anything_else_then_raises_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match="it must be true or false"):
        parse_property(Property("p", "field", PropertyKind.BOOLEAN, "doc"), text)


@pytest.mark.parametrize(
    ("kind", "name", "suggestion"),
    [
        (BrokerConfig, "brokerids", "brokerid"),
        (BrokerConfig, "log.segment.byte", "log.segment.bytes"),
        (BrokerConfig, "log.retention.hour", "log.retention.hours"),
        (ProducerConfig, "compresion.codec", "compression.codec"),
        (ConsumerConfig, "fetch.sizes", "fetch.size"),
    ],
)
def test_property_when_unknown_then_config_error_suggests_the_nearest(
    kind: type[BaseConfig], name: str, suggestion: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        kind.from_properties({name: "1"})

    assert str(caught.value) == f"no property '{name}'; did you mean '{suggestion}'?"


def test_property_when_unknown_and_like_no_other_then_config_error_suggests_none() -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({"xyzzy": "1"})

    assert str(caught.value) == "no property 'xyzzy'"


def test_property_when_given_in_a_later_layer_then_it_goes_over_the_earlier() -> None:
    layers = [{"port": "1", "brokerid": "2"}, {"port": "3"}]

    assert BrokerConfig.from_properties(*layers) == BrokerConfig(port=3, broker_id=2)


def test_property_when_a_later_layer_has_another_unit_then_it_goes_over_the_earlier() -> None:
    layers = [
        {"log.retention.hours": "9", "log.retention.minutes": "5"},
        {"log.retention.hours": "1"},
    ]

    assert BrokerConfig.from_properties(*layers).retention_ms == HOUR_MS


def test_property_when_it_has_no_effect_here_then_a_warning_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = "log.default.flush.scheduler.interval.ms"

    assert BrokerConfig.from_properties({name: "1000"}) == BrokerConfig()
    assert f"{name} has no effect: a log is flushed when it is due" in caplog.text


def test_registry_when_zookeeper_is_not_enabled_then_there_is_none() -> None:
    properties = {"enable.zookeeper": "false", "zk.connect": "a:1"}

    assert BrokerConfig.from_properties(properties).zookeeper_connect == ""


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({"log.retention.hours": "1", "log.retention.minutes": "5"}, 5 * MINUTE_MS),
        ({"log.retention.minutes": "5", "log.retention.hours": "1"}, HOUR_MS),
    ],
)
def test_property_when_two_units_are_given_then_the_later_one_holds(
    properties: dict[str, str], retention_ms: int
) -> None:
    assert BrokerConfig.from_properties(properties).retention_ms == retention_ms


def test_archive_when_policy_has_no_directory_then_raises_config_error() -> None:
    with pytest.raises(ConfigError, match=r"log\.cleanup\.policy=archive needs log\.archive\.dir"):
        BrokerConfig.from_properties({"log.cleanup.policy": "archive"})


def test_archive_when_policy_and_directory_are_given_then_both_are_set() -> None:
    config = BrokerConfig.from_properties(
        {"log.cleanup.policy": "archive", "log.archive.dir": "/archive"}
    )

    assert (config.retention_policy, config.archive_dir) == ("archive", Path("/archive"))


def test_path_when_it_starts_with_a_tilde_then_is_in_the_home_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")

    found = BrokerConfig.from_properties({"log.dir": "~/data"})

    assert found.data_dirs == (Path("/home/me/data"),)


def test_path_when_in_the_home_of_nobody_then_raises_config_error() -> None:
    with pytest.raises(ConfigError, match=r"log\.dir is '~no-such-user/data'; "):
        BrokerConfig.from_properties({"log.dir": "~no-such-user/data"})


def test_path_when_needed_and_empty_then_raises_config_error() -> None:
    with pytest.raises(ConfigError, match=r"log\.archive\.dir is '/a,/b'; it must be one path"):
        BrokerConfig.from_properties({"log.archive.dir": "/a,/b"})
    for text in (" ", "/a,", ",/a", "/a,,/b"):
        with pytest.raises(ConfigError, match=r"log\.dir is empty, or has an empty item"):
            BrokerConfig.from_properties({"log.dirs": text})


def test_data_directories_when_a_later_layer_uses_the_other_name_then_it_overrides() -> None:
    config = BrokerConfig.from_properties({"log.dirs": "/a,/b"}, {"log.dir": "/c"})

    assert config.data_dirs == (Path("/c"),)


def test_path_when_optional_and_empty_then_is_none() -> None:
    assert BrokerConfig.from_properties({"log.archive.dir": ""}).archive_dir is None


@pytest.mark.parametrize(
    ("kind", "name", "text", "field", "value"),
    [
        (BrokerConfig, "broker.id", "7", "broker_id", 7),
        (BrokerConfig, "log.segment.bytes", "100", "segment_bytes", 100),
        (BrokerConfig, "log.dirs", "/data", "data_dir", Path("/data")),
        (BrokerConfig, "log.flush.interval.messages", "9", "flush_interval_messages", 9),
        (
            BrokerConfig,
            "log.flush.interval.messages.per.topic",
            "a:9",
            "topic_flush_interval_messages",
            {"a": 9},
        ),
        (BrokerConfig, "auto.create.topics.enable", "false", "auto_create_topics", False),
        (BrokerConfig, "default.replication.factor", "3", "default_replication_factor", 3),
        (BrokerConfig, "replica.fetch.min.bytes", "9", "replica_fetch_min_bytes", 9),
        (BrokerConfig, "controller.socket.timeout.ms", "9", "controller_socket_timeout_ms", 9),
        (
            BrokerConfig,
            "replica.socket.receive.buffer.bytes",
            "9",
            "replica_socket_receive_bytes",
            9,
        ),
        (ProducerConfig, "request.timeout.ms", "9", "socket_timeout_ms", 9),
        (ProducerConfig, "topic.metadata.refresh.interval.ms", "-1", "metadata_refresh_ms", -1),
        (BrokerConfig, "log.retention.ms", "1500", "retention_ms", 1500),
        (BrokerConfig, "log.retention.check.interval.ms", "500", "cleanup_interval_ms", 500),
        (BrokerConfig, "zookeeper.session.timeout.ms", "9", "zk_session_timeout_ms", 9),
        (BrokerConfig, "socket.receive.buffer.bytes", "9", "socket_receive_bytes", 9),
        (ProducerConfig, "metadata.broker.list", "a:1", "broker_list", "a:1"),
        (ConsumerConfig, "group.id", "g", "group", "g"),
        (ConsumerConfig, "socket.receive.buffer.bytes", "9", "socket_receive_bytes", 9),
        (BrokerConfig, "log.cleaner.min.cleanable.ratio", "0.25", "min_cleanable_ratio", 0.25),
        (ConsumerConfig, "zookeeper.connect", "a:1", "zookeeper", "a:1"),
    ],
)
def test_property_when_given_by_its_name_of_08_then_sets_the_same_field(
    kind: type[BaseConfig], name: str, text: str, field: str, value: object
) -> None:
    assert getattr(kind.from_properties({name: text}), field) == value


def test_aliases_when_listed_then_each_names_a_property_and_hides_none() -> None:
    names = {prop.name for kind in KINDS for prop in kind.PROPERTIES}
    names |= {name for kind in KINDS for name in kind.WITHOUT_EFFECT}

    assert {alias.property for alias in ALIASES} <= names
    assert not {alias.name for alias in ALIASES} & names
    assert len(ALIASES) == len(set(ALIASES))


def test_property_when_it_has_no_effect_under_its_name_of_08_then_a_warning_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    BrokerConfig.from_properties(
        {"log.flush.scheduler.interval.ms": "1000", "queued.max.requests": "9"}
    )

    assert "log.flush.scheduler.interval.ms has no effect" in caplog.text
    assert "queued.max.requests has no effect" in caplog.text


def test_settings_when_some_are_changed_then_the_others_stay() -> None:
    config = BrokerConfig(port=1, retention_ms=5)

    changed = config.changed({"log.retention.minutes": "2"})

    assert changed == BrokerConfig(port=1, retention_ms=2 * MINUTE_MS)
    assert config == BrokerConfig(port=1, retention_ms=5)


@pytest.mark.parametrize(
    ("retention_ms", "name"),
    [
        (2 * HOUR_MS, "log.retention.hours"),
        (90 * MINUTE_MS, "log.retention.minutes"),
        (1500, "log.retention.ms"),
    ],
)
def test_properties_when_shown_then_one_of_each_field_in_a_unit_that_is_exact(
    retention_ms: int, name: str
) -> None:
    shown = list(BrokerConfig(retention_ms=retention_ms).shown_properties())

    assert {prop.field for prop in shown} == {field.name for field in fields(BrokerConfig)}
    assert [prop.name for prop in shown if prop.field == "retention_ms"] == [name]


def test_fields_when_listed_as_dynamic_then_exist() -> None:
    assert {field.name for field in fields(BrokerConfig)} >= BrokerConfig.DYNAMIC


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("num.partitions", 1),
        ("max.socket.request.bytes", 104_857_600),
        ("max.message.size", 1_000_000),
        ("max.topic.name.length", 255),
        ("log.file.size", 1_073_741_824),
        ("log.roll.hours", 168 * HOUR_MS),
        ("log.retention.hours", 168 * HOUR_MS),
        ("log.retention.size", -1),
        ("log.cleanup.interval.mins", 10 * MINUTE_MS),
        ("monitoring.period.secs", 600_000),
        ("zk.sessiontimeout.ms", 6000),
    ],
)
def test_default_when_taken_over_from_07_then_is_the_one_of_07(name: str, default: int) -> None:
    (prop,) = [prop for prop in BrokerConfig.PROPERTIES if prop.name == name]

    assert getattr(BrokerConfig(), prop.field) == default


def test_overrides_when_normalized_then_have_names_of_07_and_one_for_each_field() -> None:
    texts = {"log.retention.hours": "2", "log.retention.ms": " 5 ", "log.segment.bytes": "9"}

    assert BrokerConfig.normalize_overrides(texts) == {
        "log.retention.ms": "5",
        "log.file.size": "9",
    }


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("num.threads", "1", "num.threads changes at a start only: set it in the broker's prop"),
        ("log.dirs", "/a", "log.dir changes at a start only"),
        ("zookeeper.connect", "a:1", "zk.connect changes at a start only"),
        ("log.file.siz", "9", "no property 'log.file.siz'; did you mean 'log.file.size'?"),
        ("log.file.size", "4", "log.file.size is 4; it must be at least 5"),
    ],
)
def test_override_when_it_needs_a_restart_or_is_wrong_then_config_error_says_so(
    name: str, text: str, complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.normalize_overrides({name: text})

    assert str(caught.value).startswith(complaint)


SERVER_PROPERTIES_OF_081 = """
broker.id=0
port=9092
num.network.threads=2
num.io.threads=8
socket.send.buffer.bytes=1048576
socket.receive.buffer.bytes=1048576
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=2
log.retention.hours=168
log.segment.bytes=536870912
log.retention.check.interval.ms=60000
log.cleaner.enable=false
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=1000000
"""
"""What stands in the file of that name in Kafka 0.8.1."""
OTHERS_OF_081 = (
    *("background.threads", "controller.message.queue.size", "replica.lag.max.messages"),
    *("log.cleaner.threads", "log.cleaner.io.buffer.size", "log.delete.delay.ms"),
    *("log.cleaner.io.buffer.load.factor", "log.index.size.max.bytes", "log.index.interval.bytes"),
    *("log.segment.delete.delay.ms", "fetch.purgatory.purge.interval.requests"),
    *("producer.purgatory.purge.interval.requests", "offset.metadata.max.bytes"),
    *("kafka.metrics.polling.interval.secs", "kafka.metrics.reporters"),
    *("kafka.csv.metrics.reporter.enabled", "kafka.csv.metrics.dir"),
)


def test_properties_when_of_kafka_081_then_those_without_effect_are_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = SERVER_PROPERTIES_OF_081.split()
    texts = dict(line.split("=", 1) for line in lines) | dict.fromkeys(OTHERS_OF_081, "1")
    config = BrokerConfig.from_properties(texts)
    assert (config.num_partitions, config.segment_bytes) == (2, 536870912)
    warned = [record.getMessage().split(" ")[0] for record in caplog.records]
    assert sorted(warned) == sorted(["num.io.threads", "log.cleaner.enable", *OTHERS_OF_081])

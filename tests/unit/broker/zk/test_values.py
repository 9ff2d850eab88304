from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CoordinationError
from broker.zk import values
from broker.zk.values import BrokerNode, FilterKind, FilterSubscription, StaticSubscription

EXAMPLE = b"10.1.2.3-1315436360737:10.1.2.3:9092"


def test_broker_when_encoded_then_has_the_bytes_of_kafka_07() -> None:
    info = BrokerNode(0, "10.1.2.3", 9092, "10.1.2.3-1315436360737")

    assert values.encode_broker(info) == EXAMPLE


def test_broker_when_decoded_then_id_comes_from_the_node_name() -> None:
    expected = values.BrokerNode(7, "10.1.2.3", 9092, "10.1.2.3-1315436360737")
    assert values.decode_broker(7, EXAMPLE) == expected


@pytest.mark.parametrize(
    ("value", "host", "creator"),
    [
        (b"h-1:fe80::1:9092", "fe80::1", "h-1"),
        (b"h-1:[fe80::1]:9092", "fe80::1", "h-1"),
        (b"fe80::1-17:fe80::1:9092", "fe80::1", "fe80::1-17"),
        (b"fe80::1-17:[fe80::1]:9092", "fe80::1", "fe80::1-17"),
        (b"fe80::1-17:host:9092", "host", "fe80::1-17"),
        (b"anything:host:9092", "host", "anything"),
    ],
)
def test_broker_when_ipv6_or_odd_creator_then_is_parsed_from_the_right(
    value: bytes, host: str, creator: str
) -> None:
    assert values.decode_broker(1, value) == values.BrokerNode(1, host, 9092, creator)


@pytest.mark.parametrize(
    "value",
    [b"", b"host:9092", b"9092", b"c:h:", b"c:h:x", b"c:h:70000", b"c::1", b":h:1", b"\xff:h:1"],
)
def test_broker_when_malformed_then_coordination_error_names_the_id(value: bytes) -> None:
    with pytest.raises(CoordinationError, match="broker 4"):
        values.decode_broker(4, value)


HOSTS = st.one_of(
    st.from_regex(r"[a-z][a-z0-9.-]{0,12}", fullmatch=True), st.ip_addresses().map(str)
)


@given(host=HOSTS, creator_host=HOSTS, port=st.integers(0, 65535), millis=st.integers(0, 2**43))
def test_broker_when_encoded_and_decoded_then_is_the_same(
    host: str, creator_host: str, port: int, millis: int
) -> None:
    info = BrokerNode(5, host, port, f"{creator_host}-{millis}")

    assert values.decode_broker(5, values.encode_broker(info)) == info


@given(st.binary())
def test_broker_when_bytes_are_random_then_only_coordination_error_is_raised(value: bytes) -> None:
    try:
        values.decode_broker(1, value)
    except CoordinationError:
        return


@given(st.integers(-(2**63), 2**63 - 1))
def test_number_when_encoded_and_decoded_then_is_the_same(number: int) -> None:
    assert values.decode_number(values.encode_number(number), "offset") == number


def test_partition_count_when_encoded_then_is_plain_decimal() -> None:
    assert values.encode_number(4) == b"4"


@pytest.mark.parametrize("value", [b"", b"4x", b" 4", b"4.0", b"+4", "٤".encode()])
def test_number_when_malformed_then_error_names_what_it_is(value: bytes) -> None:
    with pytest.raises(CoordinationError, match="offset of x is not a number"):
        values.decode_number(value, "offset of x")


@pytest.mark.parametrize("digits", ["9223372036854775808", "-9223372036854775809", "9" * 5000])
def test_number_when_it_needs_more_than_64_bits_then_error_names_what_it_is(digits: str) -> None:
    with pytest.raises(CoordinationError, match=r"offset of x is not a number of 64 bits: '-?9"):
        values.decode_number(digits.encode(), "offset of x")


def test_owner_when_encoded_and_decoded_then_is_the_thread_id() -> None:
    assert values.decode_owner(values.encode_owner("g_h-1-ab-0")) == "g_h-1-ab-0"


@pytest.mark.parametrize(
    ("subscription", "value"),
    [
        (StaticSubscription({"topic1": 2, "topic2": 1}, True), b'{ "topic1": 2,"topic2": 1 }'),
        (StaticSubscription({"t": 1}, True), b'{ "t": 1 }'),
        (FilterSubscription(FilterKind.WHITELIST, 2, "web.*", True), b"*2*web.*"),
        (FilterSubscription(FilterKind.BLACKLIST, 10, "a|b", True), b"!10!a|b"),
        (StaticSubscription({"t": 1}), b'{  "t": 1 }'),
        (FilterSubscription(FilterKind.WHITELIST, 2, "web.*"), b"*02*web.*"),
        (FilterSubscription(FilterKind.BLACKLIST, 10, "a|b"), b"!010!a|b"),
    ],
)
def test_subscription_when_encoded_then_has_the_bytes_of_kafka_07_and_a_mark_if_it_is_ours(
    subscription: values.Subscription, value: bytes
) -> None:
    assert values.encode_subscription(subscription) == value
    assert values.decode_subscription(value) == subscription


def test_subscription_when_any_json_object_of_integers_then_is_read() -> None:
    found = values.decode_subscription(b'{"a":1,\n "b" : 2}')

    assert found == StaticSubscription({"a": 1, "b": 2}, is_kafka07=True)


@pytest.mark.parametrize(
    "value",
    [b"", b"[]", b"{", b'{"a": "1"}', b'{"a": true}', b'{"a": 1.5}', b"*x*a", b"*1", b"!1*a"],
)
def test_subscription_when_malformed_then_coordination_error(value: bytes) -> None:
    with pytest.raises(CoordinationError, match="malformed"):
        values.decode_subscription(value)


@given(
    st.one_of(
        st.builds(
            StaticSubscription,
            st.dictionaries(st.text(), st.integers(0, 99), min_size=1),
            st.booleans(),
        ),
        st.builds(
            FilterSubscription,
            st.sampled_from(FilterKind),
            st.integers(0, 99),
            st.text(),
            st.booleans(),
        ),
    ).filter(lambda subscription: _is_utf8(subscription))
)
def test_subscription_when_encoded_and_decoded_then_is_the_same(
    subscription: values.Subscription,
) -> None:
    assert values.decode_subscription(values.encode_subscription(subscription)) == subscription


def _is_utf8(subscription: values.Subscription) -> bool:
    try:
        values.encode_subscription(subscription)
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "regex"),
    [("a,b", "a|b"), (" 'web.*' ", "web.*"), ('"a , b"', "a|b"), ("a'b", "a'b"), (".*", ".*")],
)
def test_filter_regex_when_normalized_then_follows_kafka_07(text: str, regex: str) -> None:
    assert values.normalize_filter_regex(text) == regex

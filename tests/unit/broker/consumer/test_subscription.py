from __future__ import annotations

import re

import pytest

from broker.consumer.membership import (
    Blacklist,
    Whitelist,
    filter_subscription,
    joined_filter,
    make_consumer_id,
    static_subscription,
    threads_by_topic,
    topics_of,
    topics_of_kafka07,
    validate_group_name,
)
from broker.errors import ConfigError, InvalidTopicError
from broker.zk.values import (
    FilterKind,
    FilterSubscription,
    StaticSubscription,
    Subscription,
    encode_subscription,
)
from tests.doubles import FakeClock


def test_whitelist_when_it_matches_only_a_part_then_does_not_allow() -> None:
    allowed = Whitelist("web, 'app'")

    assert [allowed.allows(topic) for topic in ("web", "web2", "app")] == [True, False, False]


def test_whitelist_when_text_has_commas_blanks_and_quotes_then_reads_it_as_kafka_07() -> None:
    allowed = Whitelist(' "web, app.*" ')

    assert allowed.regex == "web|app.*"
    assert allowed.allows("app-1")


def test_blacklist_when_a_topic_matches_then_does_not_allow() -> None:
    assert [Blacklist("web.*").allows(topic) for topic in ("web1", "app")] == [False, True]


def test_whitelist_when_it_is_no_expression_then_is_refused() -> None:
    with pytest.raises(ConfigError, match="illegal topic filter 'web\\('"):
        Whitelist("web(")


@pytest.mark.parametrize(
    ("include", "exclude"),
    [
        (r"\pL+", "b"),
        ("(?<n>a)", "b"),
        (r"a\z", "b"),
        ("(?i)A", "b"),
        ("[[:alpha:]]+", "[)$)(?:b]"),
        ("a|[)$)(?:]", "(?i)B"),
    ],
)
def test_filter_when_joined_of_two_then_both_are_read_as_re2(include: str, exclude: str) -> None:
    chosen = Whitelist(joined_filter([include, "c"], [exclude, "d"]))

    assert [one for one in "abcd" if chosen.allows(one)] == ["a", "c"]


def test_filter_when_it_looks_ahead_as_one_of_kafka_07_may_then_is_read() -> None:
    chosen = Whitelist("(?!(?:b)$)(?:(?!c).)")

    assert [one for one in "abc" if chosen.allows(one)] == ["a"]


def test_consumer_id_when_made_then_has_the_form_of_kafka_07() -> None:
    made = make_consumer_id("g", "", FakeClock(1_315_436_360_737))

    assert re.fullmatch(r"g_.+-1315436360737-[0-9a-f]{1,8}", made)


def test_consumer_id_when_named_then_is_group_and_name() -> None:
    assert make_consumer_id("g", "me", FakeClock()) == "g_me"


@pytest.mark.parametrize("name", ["", "a/b", "..", "a\n"])
def test_group_name_when_it_is_no_path_step_then_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        validate_group_name(name)


def test_subscriptions_when_written_then_have_the_bytes_of_kafka_07_with_a_mark() -> None:
    static = static_subscription({"topic1": 2, "topic2": 1})
    listed = filter_subscription(Whitelist("a,b.*"), 3)
    barred = filter_subscription(Blacklist("c"), 1)

    assert encode_subscription(static) == b'{  "topic1": 2,"topic2": 1 }'
    assert encode_subscription(listed) == b"*03*a|b.*"
    assert encode_subscription(barred) == b"!01!c"


@pytest.mark.parametrize("counts", [{}, {"t": 0}])
def test_static_subscription_when_nothing_is_wanted_then_is_refused(counts: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        static_subscription(counts)


def test_static_subscription_when_there_can_be_no_such_topic_then_is_refused() -> None:
    with pytest.raises(InvalidTopicError):
        static_subscription({"a/b": 1})


def test_topics_of_when_subscribed_by_filter_then_takes_from_all_topics() -> None:
    chosen = topics_of(filter_subscription(Whitelist("a.*"), 2), ["a1", "b", "a2"])

    assert chosen == {"a1": 2, "a2": 2}


def test_threads_by_topic_when_members_differ_then_lists_all_threads_of_each_topic() -> None:
    members: dict[str, Subscription] = {
        "g_x": static_subscription({"a": 2}),
        "g_y": filter_subscription(Whitelist(".*"), 1),
    }

    threads = threads_by_topic(members, ["a", "b"])

    assert threads == {"a": ["g_x-0", "g_x-1", "g_y-0"], "b": ["g_y-0"]}


def test_topics_of_kafka07_when_a_member_of_07_reads_some_topics_then_names_these() -> None:
    members: list[Subscription] = [
        static_subscription({"a": 2}),
        StaticSubscription({"b": 1}, is_kafka07=True),
        FilterSubscription(FilterKind.BLACKLIST, 1, "a|b|c", is_kafka07=True),
    ]

    assert topics_of_kafka07(members, ["a", "b", "c", "d"]) == {"b", "d"}

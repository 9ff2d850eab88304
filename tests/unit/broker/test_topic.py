from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import InvalidTopicError
from broker.topic import (
    FORMAT_KAFKA,
    MAX_TOPIC_NAME_LENGTH,
    NO_HOME,
    TopicPartition,
    validate_new_topic_name,
    validate_topic_name,
)


def is_forbidden(character: str) -> bool:
    """By the table of 0.7's validator, written out once more."""
    code = ord(character)
    return (
        character == "/"
        or code <= 0x1F
        or 0x7F <= code <= 0x9F
        or 0xD800 <= code <= 0xF8FF
        or 0xFFF0 <= code <= 0xFFFF
    )


def test_partition_when_named_then_home_comes_before_index() -> None:
    assert TopicPartition("syslog", 2, 0).name == "2-0"


def test_partition_when_without_a_home_then_its_name_is_its_number() -> None:
    assert TopicPartition("orders", NO_HOME, 11).name == "11"


@pytest.mark.parametrize("home", [0, 12, NO_HOME])
def test_partition_when_found_by_its_name_then_is_the_same(home: int) -> None:
    partition = TopicPartition("orders", home, 3)

    assert TopicPartition.named("orders", partition.name) == partition


@pytest.mark.parametrize("name", ["", "1-", "-1", "a-b", "1-2-3", "²"])
def test_partition_when_the_name_is_none_then_value_error_shows_it(name: str) -> None:
    with pytest.raises(ValueError, match=f"not a partition name: '{name}'"):
        TopicPartition.named("orders", name)


@pytest.mark.parametrize("home", [0, NO_HOME])
def test_partition_when_it_has_a_home_then_is_of_the_format_07(home: int) -> None:
    assert TopicPartition("orders", home, 0).format == ("kafka" if home == NO_HOME else "0.7")


def test_partition_when_shown_then_topic_is_followed_by_its_name() -> None:
    assert str(TopicPartition("syslog", 2, 0)) == "syslog[2-0]"


def test_partitions_when_sorted_then_go_by_topic_home_and_index_as_numbers() -> None:
    names = [("b", 0, 0), ("a", 10, 0), ("a", 2, 10), ("a", 2, 9)]

    assert [
        (p.topic, p.home, p.index) for p in sorted(TopicPartition(*name) for name in names)
    ] == [("a", 2, 9), ("a", 2, 10), ("a", 10, 0), ("b", 0, 0)]


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "...",
        ".a",
        " ",
        "-",
        ":",
        ",",
        "with blank",
        "café",
        "\U0001f600",
        "\ud7ff",
        "\uf900",
        "\uffef",
        "\x7e",
        "\xa0",
        "x" * MAX_TOPIC_NAME_LENGTH,
    ],
)
def test_topic_name_when_07_takes_it_then_is_taken(name: str) -> None:
    validate_topic_name(name)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "it is empty"),
        (".", "reserved by the file system"),
        ("..", "reserved by the file system"),
        ("a/b", "'/' is not allowed"),
        ("a\x00b", r"'U\+0000' is not allowed"),
        ("a\x1f", r"'U\+001F' is not allowed"),
        ("\x7f", r"'U\+007F' is not allowed"),
        ("\x9f", r"'U\+009F' is not allowed"),
        ("\ud800", r"'U\+D800' is not allowed"),
        ("\uf8ff", r"'U\+F8FF' is not allowed"),
        ("\ufff0", r"'U\+FFF0' is not allowed"),
        ("\uffff", r"'U\+FFFF' is not allowed"),
        ("x" * 256, "256 characters, the limit is 255"),
    ],
)
def test_topic_name_when_07_refuses_it_then_error_says_why(name: str, complaint: str) -> None:
    with pytest.raises(InvalidTopicError, match=complaint):
        validate_topic_name(name)


def test_topic_name_when_refused_then_error_names_it() -> None:
    with pytest.raises(InvalidTopicError, match=r"^invalid topic name 'a/b': '/' is not allowed$"):
        validate_topic_name("a/b")


@given(st.text(st.characters(), min_size=1, max_size=20).filter(lambda s: s not in (".", "..")))
def test_topic_name_when_random_then_is_taken_unless_a_character_is_forbidden(name: str) -> None:
    try:
        validate_topic_name(name)
    except InvalidTopicError:
        assert any(map(is_forbidden, name))
    else:
        assert not any(map(is_forbidden, name))


def test_topic_name_when_its_characters_are_astral_then_each_counts_twice() -> None:
    validate_topic_name("\U0001f600" * 2, max_length=4)
    with pytest.raises(InvalidTopicError, match="6 characters, the limit is 4"):
        validate_topic_name("\U0001f600" * 3, max_length=4)


def test_topic_name_when_the_limit_is_lower_then_holds() -> None:
    validate_topic_name("abc", max_length=3)
    with pytest.raises(InvalidTopicError, match="4 characters, the limit is 3"):
        validate_topic_name("abcd", max_length=3)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("four", "'four'"), ("\x1b[2J" + "x" * 40, r"'\x1b[2J" + "x" * 36 + "...'")],
)
def test_topic_name_when_too_long_then_error_shows_its_start_without_control_characters(
    name: str, shown: str
) -> None:
    with pytest.raises(InvalidTopicError) as caught:
        validate_topic_name(name, max_length=3)

    assert str(caught.value).startswith(f"invalid topic name {shown}: ")


@pytest.mark.parametrize("name", ["orders", "a.b_c-D9", "_", "n" * 249])
def test_new_topic_name_when_kafka_takes_it_then_is_taken(name: str) -> None:
    validate_new_topic_name(name, format=FORMAT_KAFKA)


@pytest.mark.parametrize("name", ["a b", "größe", "a:b", "n" * 250])
def test_new_topic_name_when_kafka_refuses_it_then_only_the_format_07_takes_it(name: str) -> None:
    validate_new_topic_name(name)
    with pytest.raises(InvalidTopicError, match="in the format kafka it has at most 249"):
        validate_new_topic_name(name, format=FORMAT_KAFKA)

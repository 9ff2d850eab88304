from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ConfigError, InvalidTopicError
from broker.tools.mirror_routes import TopicMap


@pytest.mark.parametrize(
    ("texts", "topic", "renamed"),
    [
        ([], "orders", "orders"),
        (["s/^/a./"], "orders", "a.orders"),
        (["s/o/0/"], "foo", "f0o"),
        (["s/o/0/g"], "foo", "f00"),
        (["s/FOO/bar/i"], "foo", "bar"),
        (["s/(.*)-(.*)/\\2-\\1/"], "a-b", "b-a"),
        (["s/o+/<&>/"], "foo", "f<oo>"),
        (["s/o/\\&/"], "o", "&"),
        (["s|a|b|", "s/b/c/"], "a", "c"),
        ([r"s/\Qa.b/x/"], "a.b", "x"),
        ([r"s/(?P<n>a)/<\g<n>>/"], "a", "<a>"),
        (["s,^,x\\,y,"], "t", "x,yt"),
    ],
)
def test_topic_map_when_applied_then_renames_as_sed_does(
    texts: list[str], topic: str, renamed: str
) -> None:
    assert TopicMap(texts)(topic) == renamed


@pytest.mark.parametrize(
    "text",
    ["", "s", "a.", "s/a/b", "y/a/b/", "s/a/b/x", "s/(/b/", "s/a/\\1/", "s/a/\\x/", "sxaxbx"],
)
def test_topic_map_when_malformed_then_shows_what_was_given(text: str) -> None:
    with pytest.raises(ConfigError, match="substitution"):
        TopicMap([text])


@given(st.text(max_size=12))
def test_topic_map_when_text_is_anything_then_raises_only_config_errors(text: str) -> None:
    try:
        TopicMap([text])
    except ConfigError:
        return


def test_topic_map_when_the_new_name_is_impossible_then_says_so() -> None:
    with pytest.raises(InvalidTopicError, match="'a/orders'"):
        TopicMap(["s|^|a/|"])("orders")

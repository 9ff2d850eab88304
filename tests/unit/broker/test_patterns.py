from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from broker.api.client import filter_of
from broker.api.reader import pattern_of
from broker.consumer.membership import Whitelist
from broker.errors import ArgumentError, BrokerError, InvalidPatternError
from broker.patterns import Pattern, PayloadTest
from broker.protocol.client_requests import PayloadFilter
from broker.protocol.codec import boundaries, encode
from broker.security.subject import PrincipalRules
from broker.spark.loading.dates import DateRule
from broker.spark.options import parse_topic_pattern
from broker.tools.mirror_routes import TopicMap
from pylogctl.cli.environment import CliError
from pylogctl.cli.selection import TopicPatterns, compile_patterns, topic_filter
from pylogctl.format.filters import grep
from pylogctl.top.views import compile_filter
from tests.support.pattern_examples import EXAMPLES, RAW_EXAMPLES, REFUSED, Example
from tests.unit.pylogctl.format.test_filters import message

Reader = Callable[[str, str], bool]


def one_of_many(pattern: str, text: str) -> bool:
    payloads = [b"zzz", text.encode(), b"zzz"] * 300
    is_wanted = PayloadTest(pattern)
    found = is_wanted.select(payloads)
    assert found == [is_wanted(one) for one in payloads]
    return found[1]


ANYWHERE: dict[str, Reader] = {
    "payload": lambda pattern, text: PayloadTest(pattern)(text.encode()),
    "one of many payloads": one_of_many,
    "filter of a read": lambda p, text: PayloadFilter(p.encode()).compile()(text.encode()),
    "--grep": lambda p, text: grep(p, ignore_case=False, invert=False)(message(text.encode())),
    "filter of top": lambda pattern, text: compile_filter(f"~{pattern}")(text),
    "text": lambda pattern, text: Pattern(pattern).search(text) is not None,
    "rename": lambda p, text: Pattern(p).replace(text, "found") != text or text == "",
}
WHOLE: dict[str, Reader] = {
    "--include": lambda p, text: topic_filter(TopicPatterns((p,)))(text),
    "subscribePattern": lambda p, text: bool(parse_topic_pattern(p, "x").fullmatch(text)),
    "group": lambda pattern, text: Whitelist(pattern).allows(text),
}


@pytest.mark.parametrize("name", ANYWHERE)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.pattern)
def test_pattern_when_searched_by_any_reader_then_found_where_it_matches(
    name: str, example: Example
) -> None:
    assert ANYWHERE[name](example.pattern, example.found_in)
    if example.not_in:
        assert not ANYWHERE[name](example.pattern, example.not_in)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("pattern", ["Gr.ße", r"\w+", r"[\wß]+", "größe|Größe", r"\p{Lu}\w*"])
def test_pattern_when_of_whole_names_then_every_reader_matches_the_same(
    name: str, pattern: str
) -> None:
    assert WHOLE[name](pattern, "Größe")
    assert not WHOLE[name](pattern, "die Größe")


@pytest.mark.parametrize(("pattern", "payload", "other"), RAW_EXAMPLES)
def test_pattern_when_a_payload_is_not_utf8_then_its_stray_bytes_match_one_escape_alone(
    pattern: str, payload: bytes, other: bytes
) -> None:
    is_wanted = PayloadTest(pattern)
    assert (is_wanted(payload), is_wanted(other)) == (True, False)
    assert is_wanted.select([payload, other] * 200) == [True, False] * 200


REFUSING: dict[str, Callable[[str], object]] = {
    "filter of a read": lambda pattern: PayloadFilter(pattern.encode()).compile(),
    "filter of the API": filter_of,
    "--grep": lambda pattern: grep(pattern, ignore_case=False, invert=False),
    "--include": lambda pattern: compile_patterns([pattern], "--include"),
    "subscribePattern": lambda pattern: parse_topic_pattern(pattern, "subscribePattern"),
    "--date-regex": lambda pattern: DateRule("2026-01-01", pattern=pattern),
    "mirror --topic-map": lambda pattern: TopicMap([f"s/{pattern}/x/"]),
    "top": lambda pattern: compile_filter(f"~{pattern}"),
    "ssl.principal.mapping.rules": lambda p: PrincipalRules(f"RULE:{p}/x/"),
}


@pytest.mark.parametrize("name", REFUSING)
@pytest.mark.parametrize("pattern", REFUSED)
def test_pattern_when_it_is_none_then_every_reader_says_where_to_look(
    name: str, pattern: str
) -> None:
    with pytest.raises((BrokerError, CliError), match=r"see pylogctl-patterns\(7\)"):
        REFUSING[name](pattern)


def test_group_when_its_pattern_is_of_another_dialect_then_still_read() -> None:
    chosen = Whitelist("(?!(?:b.*)$)(?:a|b)")  # as 0.7's members and `--exclude` join groups
    assert (chosen.allows("a"), chosen.allows("b")) == (True, False)


PARTS = st.sampled_from(
    [
        r"a",
        r"b",
        r"ß",
        r".",
        r"^",
        r"$",
        r"\b",
        r"\A",
        r"\z",
        r"[ab]",
        r"[^a]",
        r"\w",
        r"\W",
        r"(a|b)",
        r"a*",
        r"b+",
        r"x?",
        r"(?i)",
        r"\.",
        r"{2}",
        r"|",
        r"\n",
        r"(?s).",
        r"(?m)$",
        r"\C",
        r"\d{2}",
        r"(?:ab)+",
        r"^*",
        r"(?m)^",
    ]
)


@given(
    st.lists(PARTS, min_size=1, max_size=6).map("".join),
    st.lists(
        st.lists(st.sampled_from("abßx1.\n A"), max_size=6).map("".join).map(str.encode)
        | st.binary(max_size=4),
        max_size=40,
    ),
    st.booleans(),
    st.booleans(),
)
def test_select_when_given_any_payloads_then_as_re2_says_of_each(
    text: str, payloads: Sequence[bytes], ignore_case: bool, invert: bool
) -> None:
    try:
        tested = PayloadTest(text, ignore_case=ignore_case, invert=invert)
    except InvalidPatternError:
        return
    options = re2.Options()
    options.case_sensitive = not ignore_case
    word = r"\pL\pM\pN_"
    plain = text.replace(r"\w", f"[{word}]").replace(r"\W", f"[^{word}]")
    compiled = re2.compile(plain, options)
    expected = [(compiled.search(one) is None) is invert for one in payloads]

    assert tested.select(payloads) == expected
    if any(expected):
        assert tested.may_be_in(b"\xff\0".join(payloads))

    message_set = encode(payloads)
    bounds = boundaries(message_set)
    assert tested.select_between(message_set, bounds, lambda start: start + 10) == expected
    assert [tested(one) for one in payloads] == expected
    assert [tested(memoryview(one)) for one in payloads] == expected


def test_select_any_when_messages_have_parts_then_one_that_matches_decides() -> None:
    values, keys = [b"a", b"b", None, b"b"], [b"b", b"b", b"a", None]
    assert PayloadTest("a").select_any(values, keys) == [True, False, True, False]
    assert PayloadTest("a", invert=True).select_any(values, keys) == [False, True, False, True]
    assert PayloadTest("^$").select_any([None, b""]) == [False, True]


def test_pattern_when_pickled_then_the_same() -> None:
    pattern = Pattern(r"(?P<key>\w+)=", ignore_case=True)
    again = pickle.loads(pickle.dumps(pattern))
    assert again == pattern
    match = again.search("Größe=1")
    assert match is not None
    assert match["key"] == "Größe"


def test_filter_of_when_given_what_programs_have_then_a_filter_or_the_reason() -> None:
    options = re2.Options()
    options.case_sensitive = False
    assert filter_of(re2.compile("größe", options)) == PayloadFilter("größe".encode(), True)
    assert filter_of(re2.compile(b"a")) == filter_of("a") == filter_of(b"a") == PayloadFilter(b"a")
    with pytest.raises(TypeError, match="a pattern of `re` has another dialect"):
        filter_of(re.compile("a"))
    with pytest.raises(TypeError, match="not int"):
        filter_of(1)


def test_topics_when_compiled_by_re_or_re2_then_the_case_counts_and_the_rest_is_refused() -> None:
    options = re2.Options()
    assert pattern_of(re.compile("(?s)a.b", re.IGNORECASE)) == Pattern("(?s)a.b", ignore_case=True)
    assert pattern_of(re2.compile("a.b", options)) == Pattern("a.b")
    options.case_sensitive = False
    assert pattern_of(re2.compile("a.b", options)) == Pattern("a.b", ignore_case=True)
    assert pattern_of("a.b") is None
    with pytest.raises(ArgumentError, match="must be in its text"):
        pattern_of(re.compile("a . b", re.VERBOSE))
    options.literal = True
    for reads in (pattern_of, filter_of):
        with pytest.raises(ArgumentError, match="cannot have the option 'literal'"):
            reads(re2.compile("a.b", options))


def test_binding_when_its_version_changes_then_still_has_what_is_used_of_it() -> None:
    matching = re2._Regexp("b", re2.Options())._regexp.Match
    assert matching(re2._Anchor.UNANCHORED, b"abc", 0, 3) == [(1, 2)]
    assert matching(re2._Anchor.UNANCHORED, b"abc", 2, 3) == [(-1, -1)]

from __future__ import annotations

import pytest

from broker.errors import InvalidPatternError, ProtocolError
from broker.protocol.client_requests import MAX_PATTERN_BYTES, PayloadFilter
from broker.protocol.primitives import Reader


@pytest.mark.parametrize(
    ("payload_filter", "wanted"),
    [
        (PayloadFilter(b"^er+or$"), {b"error", b"errror"}),
        (PayloadFilter(b"or"), {b"error", b"errror", b"more"}),
        (PayloadFilter(b"OR", ignore_case=True), {b"error", b"errror", b"more"}),
        (PayloadFilter(b"OR"), set()),
        (PayloadFilter(b"r", invert=True), {b"", b"\xff\x00"}),
        (PayloadFilter(rb"\A\C\x00"), {b"\xff\x00"}),
        (PayloadFilter(b""), {b"error", b"errror", b"more", b"", b"\xff\x00"}),
        (PayloadFilter(b"", invert=True), set()),
    ],
)
def test_payload_when_searched_then_is_wanted_by_pattern_and_options(
    payload_filter: PayloadFilter, wanted: set[bytes]
) -> None:
    is_wanted = payload_filter.compile()
    payloads = (b"error", b"errror", b"more", b"", b"\xff\x00")
    assert {one for one in payloads if is_wanted(one)} == wanted
    assert {one for one in payloads if is_wanted(memoryview(one))} == wanted


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (b"a(b", "'a(b' is no regular expression of RE2: missing ): a(b; see pylogctl-patterns(7)"),
        (b"ab**", "bad repetition operator: **"),
        (b"\xff(", "the pattern '\\xff(' is not UTF-8"),
        (b"(?=x)", "invalid perl operator: (?=; RE2 has no look-around"),
        (rb"(a)\1", "RE2 has no references to groups"),
        (b"(" * 1024, "is no regular expression"),
        (b"a{1001}", "invalid repetition size"),
        (b"x" * (MAX_PATTERN_BYTES + 1), "the pattern has 1025 bytes; the limit is 1024"),
    ],
)
def test_pattern_when_compiled_then_error_says_what_is_wrong_and_where(
    pattern: bytes, text: str
) -> None:
    with pytest.raises(InvalidPatternError) as raised:
        PayloadFilter(pattern).compile()
    assert text in str(raised.value)


@pytest.mark.parametrize("flags", [4, 8, 7, -1, -128])
def test_filter_when_a_flag_is_unknown_then_is_refused(flags: int) -> None:
    body = bytes([flags & 0xFF]) + PayloadFilter(b"x").encode()[1:]
    with pytest.raises(ProtocolError, match=f"flags of a filter are {flags}"):
        PayloadFilter.decode(Reader(body))

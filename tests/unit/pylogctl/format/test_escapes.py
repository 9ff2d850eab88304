"""Backslash escapes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylogctl.cli.environment import UsageError
from pylogctl.format.framing import escape, unescape


def test_unescape_given_every_escape_returns_its_bytes() -> None:
    assert unescape(r"\n\r\t\0\\\e\x7f\xFFä") == b"\n\r\t\0\\\x1b\x7f\xff\xc3\xa4"


@pytest.mark.parametrize("text", ["\\", "\\q", "\\x1", "\\xzz", "\\u12"])
def test_unescape_given_an_unknown_escape_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="not an escape"):
        unescape(text)


@given(st.binary())
def test_escape_given_any_bytes_is_undone_by_unescape(data: bytes) -> None:
    text = escape(data)
    assert text.isascii()
    assert not text or text.isprintable()
    assert unescape(text) == data

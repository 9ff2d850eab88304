from __future__ import annotations

import json

import pytest

from pylogctl.web.pages.payloads import SHOWN_BYTES, payload_of


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "text"),
        (b"a\tb\r\nc", "text"),
        ("grüße 👋".encode(), "text"),
        (b'{"a": 1}', "json"),
        (b" [1, 2]", "json"),
        (b'{"a": 1', "text"),
        (b"12", "text"),
        (b"a\x00", "hex"),
        (b"\x1b[31m", "hex"),
        ("\x85".encode(), "hex"),
        (b"\xff", "hex"),
    ],
)
def test_kind_when_nothing_is_asked_for_is_that_of_the_bytes(data: bytes, kind: str) -> None:
    assert payload_of(data).kind == kind


def test_numbers_of_a_document_stay_as_they_are_written() -> None:
    assert payload_of(b'{"n": 1.10, "m": 9007199254740993}').tree == {
        "n": "1.10",
        "m": "9007199254740993",
    }


def test_text_that_is_cut_inside_a_character_is_text() -> None:
    shown = payload_of("ü".encode() * SHOWN_BYTES, limit=SHOWN_BYTES - 1)
    assert shown.kind == "text"
    assert shown.is_cut


def test_document_too_large_or_too_deep_for_a_tree_is_text_and_says_so() -> None:
    for data in (json.dumps(list(range(6000))).encode(), b"[" * 60 + b"]" * 60):
        shown = payload_of(data, limit=1 << 20)
        assert (shown.kind, shown.note) == ("text", "too large to show as a tree")
    assert payload_of(b"[" * 100_000, limit=1 << 20).kind == "text"


def test_hex_has_offset_bytes_and_ascii_of_each_line() -> None:
    shown = payload_of(b"0123456789abcdefZ\x00", wanted="hex")
    assert shown.text.splitlines() == [
        "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef",
        "00000010  5a 00                                            Z.",
    ]


@pytest.mark.parametrize(
    ("wanted", "note"),
    [
        ("json", "not json: it is not UTF-8 without control characters"),
        ("text", "not text: it is not UTF-8 without control characters"),
        ("hex", ""),
    ],
)
def test_what_is_asked_for_and_impossible_is_said(wanted: str, note: str) -> None:
    assert payload_of(b"\xff", wanted=wanted).note == note  # type: ignore[arg-type]  # a literal

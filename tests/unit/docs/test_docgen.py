"""Writing man pages and showing them as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.docgen import definition, escape_literal, from_markdown, inline, parse_sections
from pylogctl.help.manual import render_page


def _show(lines: list[str], width: int = 60) -> str:
    return render_page("\n".join(lines), width=width, styled=False)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a-b", r"a\-b"),
        ("'q'", r"\&\(aqq\(aq"),
        (".x", r"\&.x"),
        (r"\n", r"\en"),
        ("a^`~", r"a\(ha\(ga\(ti"),
        ("é", r"\[u00E9]"),
    ],
)
def test_literal_text_is_escaped_for_troff(text: str, escaped: str) -> None:
    assert escape_literal(text) == escaped


def test_inline_marks_become_fonts() -> None:
    assert inline("a **b-c** *d* `--e`") == r"a \fBb\-c\fR \fId\fR \fB\-\-e\fR"


def test_inline_at_a_leading_dot_is_no_macro() -> None:
    assert inline("`.pylog` files").startswith("\\fB")
    assert inline(".pylog files").startswith("\\&.")


def test_markdown_blocks_become_macros() -> None:
    lines = from_markdown("one\ntwo\n\n- item\n  more\n\n`term`\n:   meaning\n\n```\n$ ls\n```")
    assert lines == [
        ".PP", "one two",
        ".IP \\(bu 2", "item more",
        ".TP", "\\fBterm\\fR", "meaning",
        ".PP", ".RS 4", ".nf", "$ ls", ".fi", ".RE",
    ]  # fmt: skip


def test_sections_are_cut_at_their_headings() -> None:
    assert parse_sections("## A\nx\n\n## B\ny\nz\n") == {"A": "x", "B": "y\nz"}


def test_page_is_shown_as_man_would() -> None:
    source = [
        '.TH T 1 2026 "x" "y"', ".SH NAME", "t \\- thing",
        ".SH OPTIONS", *definition("\\fB\\-o\\fR \\fISPEC\\fR", "Where to start."),
        *from_markdown("- first\n- second"), *from_markdown("```\n  keep   this\n```"),
    ]  # fmt: skip
    assert _show(source) == (
        "NAME\n       t - thing\n\nOPTIONS\n       -o SPEC\n              Where to start.\n"
        "       * first\n       * second\n\n             keep   this\n"
    )


def test_page_on_a_terminal_is_filled_by_what_is_seen() -> None:
    source = [".PP", inline("`--aaaa` " * 40)]
    text = render_page("\n".join(source), width=60, styled=True)
    plain = render_page("\n".join(source), width=60, styled=False)
    assert "\x1b[1m--aaaa\x1b[0m" in text
    assert text.count("\n") == plain.count("\n")
    assert all(len(line) <= 60 for line in plain.splitlines())


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1))
def test_any_word_comes_through_unchanged(word: str) -> None:
    shown = _show([".PP", escape_literal(word)], width=10_000)
    assert shown.strip("\n").removeprefix("       ") == word

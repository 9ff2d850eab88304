"""Text of unknown origin on a terminal."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylogctl.cli.confirmation import confirm
from pylogctl.cli.environment import CliError, Environment, Streams
from pylogctl.cli.escapes import one_line, printable, printable_bytes

# Letters, marks and symbols that nobody sees.
INVISIBLE = "\u034f\u115f\u1160\u2800\u3164" + "".join(map(chr, range(0xE0100, 0xE01F0)))
HOSTILE = "a\x1b[31m\x9b\u202egpj.exe\u2066\r\n\x7f"


@given(st.text())
def test_printable_given_any_text_leaves_nothing_that_misleads_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(one) in {"Cc", "Cs", "Zl", "Zp"} for one in shown)
    marks = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not any(unicodedata.bidirectional(one) in marks for one in shown)
    assert not set(shown) & set("\u061c\u200e\u200f")


@given(
    st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"], exclude_characters=INVISIBLE))
)
def test_printable_given_ordinary_text_of_any_language_keeps_it(text: str) -> None:
    assert printable(text) == text


@given(st.binary())
def test_printable_bytes_given_any_bytes_gives_text(data: bytes) -> None:
    assert printable(printable_bytes(data).decode()) == printable_bytes(data).decode()


@pytest.mark.parametrize(
    "hidden",
    "\u200b\u00ad\ufeff\u2060\u200d\U000e0041\u3164\u115f\u1160\u2800\u034f\U000e0100\U000e01ef",
)
def test_printable_when_names_differ_in_what_is_not_seen_then_look_different(hidden: str) -> None:
    name = f"orders{hidden}"
    assert printable(name) == "orders" + hidden.encode("unicode_escape").decode()


def test_printable_when_a_joiner_is_between_letters_or_emoji_then_keeps_it() -> None:
    text = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f4bb"
    assert printable(text) == text


def test_one_line_given_marks_of_direction_keeps_them() -> None:
    assert one_line("a\u202eb\n\x1b") == "a\u202eb\\n\\x1b"


def test_printable_given_characters_to_keep_escapes_the_others() -> None:
    assert printable("a\tb\n\x1b\udc9b\ud800", keep="\t\n") == "a\tb\n\\x1b\\x9b\\ud800"


@pytest.mark.parametrize("method", ["note", "warn", "error", "report"])
def test_diagnostics_when_a_name_has_control_characters_escape_them(method: str) -> None:
    stderr = io.StringIO()
    env = Environment(Streams(None, io.BytesIO(), stderr, stderr_is_tty=True), {})
    getattr(env, method)(f"topic '{HOSTILE}'")
    assert stderr.getvalue().endswith("'a\\x1b[31m\\x9b\\u202egpj.exe\\u2066\\r\\n\\x7f'\n")


def test_question_when_a_name_has_control_characters_escapes_them() -> None:
    stderr = io.StringIO()
    streams = Streams(io.BytesIO(b"n\n"), io.BytesIO(), stderr, True, True, True)
    with pytest.raises(CliError, match="not confirmed"):
        confirm(Environment(streams, {}), "topic delete", f"delete {HOSTILE}?")
    assert stderr.getvalue() == f"delete {printable(HOSTILE)}? [y/N] "


def test_write_line_when_in_a_pipe_keeps_every_byte() -> None:
    stdout = io.BytesIO()
    Environment(Streams(None, stdout, None), {}).write_line(HOSTILE)
    assert stdout.getvalue() == HOSTILE.encode() + b"\n"

"""What is different on a terminal: tables, colour, pager, questions, waiting."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest

from broker.protocol.codec import encode
from tests.support.command_line import REPOSITORY, process_environment

NAME = "00000000000000000000.pylog"

OnTerminal = Callable[..., Any]


@pytest.fixture
def on_terminal(tmp_path: Path) -> OnTerminal:
    """Run the program on a terminal of 100 columns; the result is a pexpect child."""

    def run(*args: str, **environment: str) -> Any:
        extra = {"TERM": "xterm", "PAGER": "cat", **environment}
        return pexpect.spawn(
            sys.executable,
            ["-m", "pylogctl", *args],
            cwd=str(REPOSITORY),
            env=process_environment(tmp_path / "home", extra),
            dimensions=(30, 100),
            encoding="utf-8",
            timeout=60,
        )

    return run


def _output(child: Any) -> str:
    child.expect(pexpect.EOF)
    child.close()
    return str(child.before)


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    path = tmp_path / "t_0" / NAME
    path.parent.mkdir()
    path.write_bytes(encode([b"hello \x1b[31mred", b"world"])[:-1])
    return path


def test_listing_is_a_coloured_table_that_fits(on_terminal: OnTerminal) -> None:
    text = _output(on_terminal("version"))
    assert "\x1b[1mCOMPONENT" in text
    assert "───" in text


def test_no_color_is_honoured(on_terminal: OnTerminal) -> None:
    assert "\x1b[" not in _output(on_terminal("version", NO_COLOR="1"))
    assert "\x1b[" not in _output(on_terminal("version", "--color", "never"))
    assert "\x1b[" not in _output(on_terminal("version", TERM="dumb"))


def test_json_is_indented(on_terminal: OnTerminal) -> None:
    assert '\r\n  "component"' in _output(on_terminal("version", "--output", "json"))


def test_page_has_bold_words_and_goes_through_the_pager(on_terminal: OnTerminal) -> None:
    assert "\x1b[1mNAME\x1b[0m" in _output(on_terminal("man", "log"))
    paged = _output(on_terminal("man", "log", PYLOGCTL_PAGER="sed -n 1s/^/paged:/p"))
    assert paged.startswith("paged:")
    unpaged = _output(on_terminal("man", "log", "--no-pager", PYLOGCTL_PAGER="false"))
    assert "EXIT STATUS" in unpaged


def test_leaving_the_pager_early_is_no_error(on_terminal: OnTerminal, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(encode([b"x" * 50] * 20_000))
    child = on_terminal("log", "dump", str(path), PYLOGCTL_PAGER="head -2")
    assert "POS" in _output(child)
    assert child.exitstatus == 0


def test_control_bytes_of_payloads_are_escaped(on_terminal: OnTerminal, torn: Path) -> None:
    text = _output(on_terminal("log", "dump", str(torn), "--color", "never"))
    assert "hello \\x1b[31mred" in text


def test_question_answered_with_the_name_goes_on(on_terminal: OnTerminal, torn: Path) -> None:
    child = on_terminal("log", "recover", str(torn), "--execute")
    child.expect(f"type '{NAME}' to confirm: ")
    child.sendline(NAME)
    _output(child)
    assert child.exitstatus == 0
    assert list(torn.parent.glob("*.cut-*"))


@pytest.mark.parametrize("answer", ["", "no", NAME[:-1]])
def test_question_answered_otherwise_changes_nothing(
    on_terminal: OnTerminal, torn: Path, answer: str
) -> None:
    before = torn.read_bytes()
    child = on_terminal("log", "recover", str(torn), "--execute")
    child.expect("to confirm: ")
    child.sendline(answer)
    assert "not confirmed; nothing changed" in _output(child)
    assert child.exitstatus == 5
    assert torn.read_bytes() == before


def test_no_input_never_asks(on_terminal: OnTerminal, torn: Path) -> None:
    child = on_terminal("log", "recover", str(torn), "--execute", "--no-input")
    assert "needs confirmation" in _output(child)
    assert child.exitstatus == 5


def test_interrupt_at_a_question_ends_with_its_status(on_terminal: OnTerminal, torn: Path) -> None:
    child = on_terminal("log", "recover", str(torn), "--execute")
    child.expect("to confirm: ")
    child.sendintr()
    assert "Traceback" not in _output(child)
    assert child.exitstatus == 130

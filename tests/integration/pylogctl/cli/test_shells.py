"""Completion scripts, driven in the shells that are present."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from broker.zk.session import Session
from tests.support.command_line import REPOSITORY, Invoke

SCRIPT = Path(sys.executable).with_name("pylogctl")
BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="bash is not installed")

_DRIVER = """
source completions/pylogctl.bash
COMP_WORDS=("$1") COMP_LINE=$2 COMP_POINT=${#2}
compopt() { :; }
_pylogctl "$1" "$3"
[[ -z ${COMPREPLY[0]} ]] || printf '%s\\n' "${COMPREPLY[@]}"
"""


def _complete(*words: str) -> list[str]:
    assert BASH is not None
    line = " ".join((str(SCRIPT), *words))
    replaced = re.split("[=:]|(?=@)", words[-1])[-1]  # with the usual COMP_WORDBREAKS
    done = subprocess.run(
        [BASH, "--norc", "-c", _DRIVER, "bash", str(SCRIPT), line, replaced],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@needs_bash
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["lo"], ["log"]),
        (["log", "ver"], ["verify"]),
        (["log", "verify", "--max"], ["--max-errors"]),
        (["log", "verify", "--engine", ""], ["codec", "zlib", "crcmod"]),
        (["log", "verify", "--output", "js"], ["json", "jsonl"]),
        (["log", "verify", "--output=js"], ["json", "jsonl"]),
        (["log", "dump", "-o", "@t"], ["@today"]),
        (["--output", "json", "log", "st"], ["stat"]),
        (["-Z", "log", "zk", "se"], ["sessions", "set", "secure"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["zk", "ls", "--timeout", "10"], ["100ms", "10s"]),
        (["topic", "list", "--columns", "par"], ["partitions"]),
        (["topic", "list", "--columns", "topic,par"], ["topic,partitions"]),
        (["group", "lag", "g", "--sort", "lag_b"], ["lag_bytes"]),
        (["config", "set", "--topic", "t", "segment."], ["segment.bytes=", "segment.ms="]),
        (["config", "set", "--topic", "t", "retention.ms="], []),
        (["config", "unset", "--topic", "t", "segment."], ["segment.bytes", "segment.ms"]),
        (["config", "set", "-b", "0", "num.p"], ["num.partitions="]),
        (["config", "unset", "--broker=0", "num.p"], ["num.partitions"]),
        (["topic", "create", "t", "--set", "min.i"], ["min.insync.replicas="]),
        (["help", "off"], ["offsets"]),
        (["man", "zk"], ["zk"]),
    ],
)
def test_bash_offers_what_fits(words: list[str], expected: list[str]) -> None:
    assert sorted(_complete(*words)) == sorted(expected)


@needs_bash
def test_bash_offers_files_where_files_are_meant() -> None:
    assert "pyproject.toml" in _complete("log", "verify", "pypro")


@needs_bash
@pytest.mark.zookeeper
def test_bash_when_a_value_has_a_colon_then_replaces_what_follows_it(
    zookeeper: str, session: Session
) -> None:
    session.create("/brokers/topics/orders:eu")
    assert _complete("consume", "-Z", zookeeper, "orders:e") == ["eu"]


@needs_bash
@pytest.mark.zookeeper
@pytest.mark.parametrize(
    "before",
    [
        ["consume", "-Z", "AT"],
        ["consume", "--zookeeper=AT"],
        ["-Z", "AT", "topic", "describe"],
        ["copy", "-Z", "AT", "orders"],
        ["audit", "check", "-b", "[::1]:9092", "-Z", "AT"],
    ],
)
def test_bash_when_a_value_lives_in_the_cluster_then_looks_it_up_where_the_line_says(
    zookeeper: str, session: Session, before: list[str]
) -> None:
    session.create("/brokers/topics/orders")
    words = [word.replace("AT", zookeeper) for word in before]
    assert _complete(*words, "ord") == ["orders"]


_SHELLS = {
    "bash": ("--norc", "source completions/pylogctl.bash"),
    "zsh": ("-f", "autoload -U compinit; compinit -u -D; source completions/_pylogctl"),
    "fish": ("-N", "source completions/pylogctl.fish"),
}


def _assert_tab_makes(shell: str, typed: str, made: str, setup: str = "true", **env: str) -> None:
    """Assert what the line is after the tabulator in an interactive shell."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    start, load = _SHELLS[shell]
    path = f"{SCRIPT.parent}:{os.environ['PATH']}"
    terminal = pexpect.spawn(
        shell, [start, "-i"], cwd=str(REPOSITORY), encoding="utf-8", timeout=60,
        env={**os.environ, "TERM": "dumb", "PATH": path, **env}, dimensions=(24, 400),
    )  # fmt: skip
    terminal.sendline(f"{load}; {setup}; echo rea''dy")
    terminal.expect("ready\r\n")
    terminal.send(f"{typed}\t")
    for _ in range(12):  # brokers that are slow to answer give no names: then one presses again
        if terminal.expect_exact([made, pexpect.TIMEOUT], timeout=5) == 0:
            break
        terminal.send("\t")
    else:
        pytest.fail(f"{typed!r} did not become {made!r}: {terminal.before!r}")
    terminal.sendcontrol("c")
    terminal.sendeof()
    terminal.close()


@pytest.mark.zookeeper
@pytest.mark.parametrize("shell", _SHELLS)
def test_shell_when_tab_is_pressed_then_the_name_is_inserted(
    zookeeper: str, session: Session, shell: str
) -> None:
    session.create("/brokers/topics/orders-of-today")
    before = f"pylogctl consume -Z {zookeeper} orders-"
    _assert_tab_makes(shell, before, f"{before}of-today ")


@pytest.mark.parametrize("shell", _SHELLS)
def test_shell_when_the_program_is_below_home_then_it_is_asked(shell: str, tmp_path: Path) -> None:
    (tmp_path / "pylogctl").symlink_to(SCRIPT)
    typed = "~/pylogctl consu"
    _assert_tab_makes(shell, typed, f"{typed}me ", HOME=str(tmp_path), PATH=os.defpath)


@pytest.mark.parametrize("shell", _SHELLS)
@pytest.mark.parametrize("option", ["-o ", "--offset="])
def test_shell_when_a_value_has_an_at_sign_then_it_is_kept(shell: str, option: str) -> None:
    typed = f"pylogctl log dump {option}@to"
    _assert_tab_makes(shell, typed, f"{typed}day ")


@pytest.mark.parametrize("shell", _SHELLS)
def test_shell_when_a_setting_is_to_get_a_value_then_no_blank_follows(shell: str) -> None:
    typed = "pylogctl config set --topic t retention.m"
    _assert_tab_makes(shell, f"{typed}\t1", f"{typed}s=1")


@needs_bash
def test_bash_when_an_alias_is_completed_then_the_program_is_asked() -> None:
    _assert_tab_makes("bash", "p consu", "p consume ", "alias p=pylogctl; complete -F _pylogctl p")


@needs_bash
@pytest.mark.parametrize("word", ["--offset=start", "--tls-ca=pyproject.toml"])
def test_bash_when_words_do_not_end_at_signs_then_options_are_kept(word: str) -> None:
    typed = f"pylogctl consume {word[:-2]}"
    setup = "COMP_WORDBREAKS=${COMP_WORDBREAKS//[:=]}"
    _assert_tab_makes("bash", typed, f"pylogctl consume {word} ", setup)


@pytest.mark.parametrize(
    ("shell", "name"),
    [("bash", "pylogctl.bash"), ("zsh", "_pylogctl"), ("fish", "pylogctl.fish")],
)
def test_script_has_no_syntax_error(shell: str, name: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", str(REPOSITORY / "completions" / name)], check=True, timeout=60)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_command_prints_the_committed_script(invoke: Invoke, shell: str) -> None:
    name = {"bash": "pylogctl.bash", "zsh": "_pylogctl", "fish": "pylogctl.fish"}[shell]
    assert invoke("completion", shell).text == (REPOSITORY / "completions" / name).read_text()


def test_completion_install_writes_where_the_shell_looks(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "bash-completion/completions/pylogctl"
    assert invoke("completion", "bash", "--install", "--dry-run").stderr == f"would write {path}\n"
    assert not path.exists()
    assert invoke("completion", "bash", "--install").stderr == f"wrote {path}\n"
    assert path.read_text().startswith("# bash completion")

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
COMP_WORDS=("$@")
COMP_CWORD=$(( $# - 1 ))
compopt() { :; }
_pylogctl
printf '%s\\n' "${COMPREPLY[@]}"
"""


def _complete(*words: str) -> list[str]:
    assert BASH is not None
    done = subprocess.run(
        [BASH, "--norc", "-c", _DRIVER, "bash", str(SCRIPT), *words],
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
        (["log", "verify", "--output", "=", "js"], ["json", "jsonl"]),
        (["log", "dump", "-o", "@t"], ["@today"]),
        (["--output", "json", "log", "st"], ["stat"]),
        (["-Z", "log", "zk", "se"], ["sessions", "set", "secure"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["zk", "ls", "--timeout", "10"], ["100ms", "10s"]),
        (["topic", "list", "--columns", "par"], ["partitions"]),
        (["topic", "list", "--columns", "topic,par"], ["topic,partitions"]),
        (["group", "lag", "g", "--sort", "lag_b"], ["lag_bytes"]),
        (["config", "set", "--topic", "t", "segment."], ["segment.bytes=", "segment.ms="]),
        (["config", "set", "--topic", "t", "retention.ms", "="], [""]),
        (["config", "unset", "--topic", "t", "segment."], ["segment.bytes", "segment.ms"]),
        (["config", "set", "-b", "0", "num.p"], ["num.partitions="]),
        (["config", "unset", "--broker", "=", "0", "num.p"], ["num.partitions"]),
        (["topic", "create", "t", "--set", "min"], ["min.insync.replicas="]),
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
    before = ["consume", "-Z", *_split_by_bash(zookeeper)]
    assert _complete(*before, "orders", ":", "e") == ["eu"]


@needs_bash
@pytest.mark.zookeeper
@pytest.mark.parametrize(
    "before",
    [
        ["consume", "-Z", "AT"],
        ["consume", "--zookeeper", "=", "AT"],
        ["-Z", "AT", "topic", "describe"],
        ["copy", "-Z", "AT", "orders"],
        ["audit", "check", "-b", "[::1]:9092", "-Z", "AT"],
    ],
)
def test_bash_when_a_value_lives_in_the_cluster_then_looks_it_up_where_the_line_says(
    zookeeper: str, session: Session, before: list[str]
) -> None:
    session.create("/brokers/topics/orders")
    words = [part for word in before for part in _split_by_bash(word.replace("AT", zookeeper))]
    assert _complete(*words, "ord") == ["orders"]


def _split_by_bash(word: str) -> list[str]:
    """Return the words that bash makes of one with colons."""
    return [part for part in re.split("(:+)", word) if part]


@pytest.mark.zookeeper
@pytest.mark.parametrize("program", ["pylogctl", "~/pylogctl"])
@pytest.mark.parametrize(
    ("shell", "start", "load"),
    [
        ("bash", "--norc", "source completions/pylogctl.bash"),
        ("zsh", "-f", "autoload -U compinit; compinit -u -D; source completions/_pylogctl"),
        ("fish", "-N", "source completions/pylogctl.fish"),
    ],
)
def test_shell_when_tab_is_pressed_then_the_name_is_inserted(
    zookeeper: str,
    session: Session,
    tmp_path: Path,
    shell: str,
    start: str,
    load: str,
    program: str,
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    session.create("/brokers/topics/orders-of-today")
    (tmp_path / "pylogctl").symlink_to(SCRIPT)
    path = f"{SCRIPT.parent}:{os.environ['PATH']}"
    terminal = pexpect.spawn(
        shell, [start, "-i"], cwd=str(REPOSITORY), encoding="utf-8", timeout=60,
        env={**os.environ, "TERM": "dumb", "HOME": str(tmp_path), "PATH": path},
        dimensions=(24, 400),
    )  # fmt: skip
    terminal.sendline(f"{load}; echo rea''dy")
    terminal.expect("ready\r\n")
    terminal.send(f"{program} consume -Z {zookeeper} orders-\t")
    terminal.expect("orders-of-today")
    terminal.sendcontrol("c")
    terminal.sendeof()
    terminal.close()


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

"""Completion scripts: bash driven for real, the others checked where the shell is present."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest

from tests.support.command_line import REPOSITORY, Invoke

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


def _complete(*words: str, program: Path | None = None) -> list[str]:
    assert BASH is not None
    first = str(program) if program else "pylogctl"
    done = subprocess.run(
        [BASH, "--norc", "-c", _DRIVER, "bash", first, *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    """A program that answers every look-up with its own arguments."""
    program = tmp_path / "pylogctl"
    program.write_text('#!/bin/sh\nprintf "%s\\tseen\\n" "$*"\n')
    program.chmod(0o755)
    return program


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
        (["-Z", "log", "zk", "st"], ["stat", "start"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["zk", "ls", "--timeout", "10"], ["100ms", "10s"]),
        (["topic", "list", "--columns", "par"], ["partitions"]),
        (["topic", "list", "--columns", "topic,par"], ["topic,partitions"]),
        (["group", "lag", "g", "--sort", "lag_b"], ["lag_bytes"]),
        (["config", "set", "--topic", "t", "segment."], ["segment.bytes=", "segment.ms="]),
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
def test_bash_looks_up_values_with_the_registry_that_was_typed(echo: Path) -> None:
    (found,) = _complete("zk", "-Z", "h:1", "ls", "/b", program=echo)
    assert found.replace("\\", "") == "__complete zk-path /b -Z h:1"


@needs_bash
@pytest.mark.parametrize(
    ("line", "inserted"),
    [
        ("consume -Z 127.0.0.1:2181 ", "topic -Z 127.0.0.1:2181"),
        ("consume --zookeeper=a:1,b:2/log ", "topic --zookeeper a:1,b:2/log"),
        ("zk ls -Z a:1,b:2 /br", "zk-path /br -Z a:1,b:2"),
        ("group describe -b [::1]:9092 -Z a:1 ", "group -b [::1]:9092 -Z a:1"),
    ],
)
def test_bash_when_an_address_stands_on_the_line_looks_up_names_there(
    echo: Path, line: str, inserted: str
) -> None:
    shell = pexpect.spawn(
        str(BASH), ["--norc", "-i"], cwd=str(REPOSITORY), encoding="utf-8", timeout=60,
        env={"PS1": "$ ", "TERM": "dumb", "PATH": f"{echo.parent}:/usr/bin:/bin"},
        dimensions=(24, 400),
    )  # fmt: skip
    shell.sendline("source completions/pylogctl.bash; echo rea''dy")
    shell.expect("ready\r\n")
    shell.send(f"pylogctl {line}\t")
    shell.expect("__complete[^\r\n]* ")
    shown = str(shell.after)
    shell.sendcontrol("c")
    shell.sendeof()
    shell.close()
    assert f"__complete {inserted}" in " ".join(shown.replace("\\", "").split())


@needs_bash
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["consume", ""], "topic"),
        (["copy", ""], "topic"),
        (["copy", "orders", ""], "topic"),
        (["audit", "check", ""], "topic"),
        (["consume", "-g", ""], "group"),
        (["mirror", "status", "--group", ""], "group"),
    ],
)
def test_bash_when_a_value_lives_in_the_cluster_then_looks_it_up(
    echo: Path, words: list[str], kind: str
) -> None:
    (found,) = _complete(*words, program=echo)
    assert found.replace("\\", "").strip("' ") == f"__complete {kind}"


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

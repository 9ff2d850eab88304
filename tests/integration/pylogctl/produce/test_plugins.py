"""Plug-ins of `produce` and `consume`: what becomes of the messages that one fails on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke

MODULE = "plugins_of_the_command_line"
SOURCE = """
def choosy(key, count):
    if key == b"bad":
        raise ValueError("no such region")
    return len(key or b"") % count
def loud(message):
    if message == b"bad":
        raise ValueError("no such word")
    return message.upper()
def lengths(payload):
    if payload == b"two":
        raise ValueError("no such length")
    return {"length": len(payload)}
def quoted(message):
    if message.value == b"two":
        return None
    return b"'%s'\\n" % message.value
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, MODULE, raising=False)


@pytest.fixture
def command(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> Callable[..., tuple[int, str, str]]:
    """Run a command on topic t of a broker with three partitions; status, output, diagnostics."""
    broker = start_broker(num_partitions=3)

    def run(name: str, *words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        address = f"127.0.0.1:{broker.port}"
        done = invoke(name, "t", "-b", address, *words, stdin=stdin)
        return done.status, done.text, done.stderr

    return run


@pytest.mark.parametrize(
    ("words", "stdin", "cause"),
    [
        (
            ("-K", "=", "--partitioner", f"{MODULE}:choosy"),
            b"a=1\nbad=2\nbb=3\n",
            f"the message with key b'bad' for topic 't': --partitioner {MODULE}:choosy failed",
        ),
        (
            ("-p", "0", "-X", f"serializer.class={MODULE}:loud"),
            b"1\nbad\n3\n",
            f"serializer.class={MODULE}:loud failed: ValueError: no such word",
        ),
    ],
)
def test_produce_when_a_plugin_fails_on_a_message_then_names_it_and_sends_the_others_if_told(
    command: Callable[..., tuple[int, str, str]], words: tuple[str, ...], stdin: bytes, cause: str
) -> None:
    status, _, stderr = command("produce", *words, stdin=stdin)
    assert status == ExitStatus.FAILED
    assert f"message 2: {cause}" in stderr
    assert "messages sent before: 1" in stderr

    status, _, stderr = command("produce", *words, "--on-error", "skip", stdin=stdin)
    assert status == ExitStatus.PARTIAL
    assert cause in stderr
    _, stdout, _ = command("consume", "--from-beginning", "-e")
    assert sorted(stdout.split()) == ["1", "1", "3"]


def test_consume_when_a_plugin_fails_on_a_message_then_the_ones_before_it_are_written(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    command("produce", "-p", "0", stdin=b"one\ntwo\nthree\n")
    words = ("-p", "0", "--from-beginning", "-e")

    status, stdout, stderr = command("consume", *words, "-F", f"@{MODULE}:quoted")
    assert (status, stdout) == (ExitStatus.FAILED, "'one'\n")
    assert f"message at 13 of t[0-0]: --format {MODULE}:quoted returned None" in stderr

    status, stdout, stderr = command("consume", *words, "--decode", f"{MODULE}:lengths")
    assert (status, stdout) == (ExitStatus.PARTIAL, '{"length":3}\ntwo\n{"length":5}\n')
    assert "t[0-0]: the message at 13 cannot be decoded: --decode" in stderr


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (
            ("--partitioner", "nowhere_at_all:x"),
            ExitStatus.CONFIG,
            "cannot import 'nowhere_at_all'",
        ),
        (("--partitioner", f"{MODULE}:loud"), ExitStatus.CONFIG, "does not take (key, count)"),
        (("--partitioner", "hahs"), ExitStatus.CONFIG, "did you mean 'hash'"),
        (("-X", "event.handler=a:b"), ExitStatus.USAGE, "a command handles no events"),
    ],
)
def test_produce_when_a_plugin_cannot_be_used_then_nothing_is_sent(
    invoke: Invoke, words: tuple[str, ...], status: ExitStatus, text: str
) -> None:
    done = invoke("produce", "t", "-b", "127.0.0.1:1", *words, stdin=b"x\n")
    assert done.status == status
    assert text in done.stderr

"""`pylogctl consume --exec`, alone and in a group with a retry store, with real processes."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker
from broker.tools.retry import RetryStore, read_entries
from broker.zk import paths
from broker.zk.session import Session
from tests.integration.pylogctl.consume.test_consume import at, fill
from tests.support.command_line import Invoke, Result, Spawn
from tests.support.waiting import wait_until

GroupArguments = Callable[..., list[str]]
ECHO = 'read -r x; if [ "$x" = bad ]; then exit 3; fi; echo "$x"'


def shell(script: str) -> str:
    """A value of --exec that runs a script."""
    return f"sh -c {shlex.quote(script)}"


@pytest.fixture
def broker(start_broker: Callable[..., Broker], zookeeper: str) -> Broker:
    """A broker with one partition a topic, in the registry."""
    return start_broker(zookeeper=zookeeper)


@pytest.fixture
def in_group(broker: Broker, zookeeper: str, session: Session, tmp_path: Path) -> GroupArguments:
    """Publish payloads; return the words that consume them with a script and a retry store."""

    def prepare(payloads: list[bytes], script: str, *options: str) -> list[str]:
        fill(broker, "t", payloads)
        wait_until(lambda: session.exists(paths.topic_broker("t", 0)), "registration")
        return [
            *("consume", "t", "-Z", zookeeper, "--group", "g", "-o", "start"),
            *("--exec", shell(script), "--retry-dir", str(tmp_path / "kept")),
            *("-X", "zk.sessiontimeout.ms=4000", *options),
        ]

    return prepare


def stored_offset(session: Session) -> int:
    return int(session.get(f"{paths.group('g')}/offsets/t/0-0")[0])


def kept(tmp_path: Path) -> list[bytes]:
    return [one.message.payload for one in read_entries(tmp_path / "kept")]


def test_exec_when_a_message_comes_gives_payload_and_places_to_the_command(
    running_broker: Broker, run_process: Invoke
) -> None:
    fill(running_broker, "t", [b"one", b"t\0wo"])
    script = 'echo "$1"; cat; echo'
    words = "{topic} {partition} {offset} {next_offset} {size} {number} {print}"
    command = f"{shell(script)} sh '{words}'"
    result = run_process(
        "consume", "t", "-b", at(running_broker), "-o", "start", "-e", "--exec", command
    )
    assert result.stdout == b"t 0-0 0 13 3 1 {print}\none\nt 0-0 13 27 4 2 {print}\nt\0wo\n"
    assert (result.status, "2 messages" in result.stderr) == (0, True)


def test_exec_when_the_command_fails_alone_goes_on_and_ends_with_6(
    running_broker: Broker, run_process: Invoke
) -> None:
    fill(running_broker, "t", [b"bad", b"good", b"bad"])
    result = run_process(
        *("consume", "t", "-b", at(running_broker), "-o", "start", "-e"),
        *("--exec", shell(ECHO + "; kill -9 $$") + " {offset}"),
    )
    assert (result.status, result.stdout) == (6, b"good\n")
    assert "t[0-0] at 0: 'sh' ended with status 3" in result.stderr
    assert "t[0-0] at 13: 'sh' was ended by SIGKILL" in result.stderr
    assert "3 messages, 3 failed" in result.stderr


def test_exec_when_the_command_reads_nothing_succeeds_with_any_payload(
    running_broker: Broker, run_process: Invoke
) -> None:
    fill(running_broker, "t", [b"x" * 500_000])
    result = run_process(
        *("consume", "t", "-b", at(running_broker), "-o", "start", "-e", "--exec", "true")
    )
    assert result.status == 0


def test_exec_when_messages_are_filtered_and_limited_runs_for_those_only(
    running_broker: Broker, run_process: Invoke
) -> None:
    fill(running_broker, "t", [b"a1", b"b", b"a2", b"a3"])
    result = run_process(
        *("consume", "t", "-b", at(running_broker), "-o", "start", "-n", "2", "--grep", "a"),
        *("--exec", shell("cat; echo")),
    )
    assert (result.status, result.stdout) == (0, b"a1\na2\n")


def test_exec_when_the_time_is_up_leaves_the_rest_of_what_was_fetched(
    running_broker: Broker, run_process: Invoke
) -> None:
    fill(running_broker, "t", [b"m"] * 1000)
    result = run_process(
        *("consume", "t", "-b", at(running_broker), "-o", "start", "--timeout", "300ms"),
        *("--exec", shell("cat; sleep 0.05")),
    )
    assert result.status == 7
    assert len(result.stdout) < 1000


@pytest.mark.zookeeper
def test_exec_when_the_command_fails_in_a_group_without_store_stays_at_the_message(
    in_group: GroupArguments, run_process: Invoke, session: Session
) -> None:
    words = in_group([b"good", b"bad", b"more"], ECHO, "-e")
    place = words.index("--retry-dir")
    without = [*words[:place], *words[place + 2 :]]
    result = run_process(*without)
    assert (result.status, result.stdout) == (6, b"good\n")
    assert "the group stays at the message at 14" in result.stderr
    assert stored_offset(session) == 14


@pytest.mark.zookeeper
def test_exec_when_the_command_fails_in_a_group_parks_the_message_and_goes_on(
    in_group: GroupArguments, run_process: Invoke, session: Session, tmp_path: Path
) -> None:
    options = ("-e", "--retries", "1", "--max-attempts", "2")
    result = run_process(*in_group([b"one", b"bad", b"two"], ECHO, *options))
    assert (result.status, result.stdout) == (0, b"one\ntwo\n")
    assert "t[0-0] at 13 is dead in" in result.stderr
    assert "1 left in" in result.stderr
    assert stored_offset(session) == 39
    (entry,) = read_entries(tmp_path / "kept")
    assert (entry.message.payload, entry.attempts, entry.is_dead) == (b"bad", 2, True)
    assert entry.last_error == "'sh' ended with status 3"


@pytest.mark.zookeeper
def test_exec_when_a_parked_message_can_be_handled_later_does_it_while_idle(
    in_group: GroupArguments, spawn: Spawn, tmp_path: Path
) -> None:
    marker, log = tmp_path / "healed", tmp_path / "log"
    script = (
        f'read -r x; if [ "$x" = bad ] && [ ! -e {marker} ]; then exit 1; fi; echo "$x" >>{log}'
    )
    words = in_group([b"bad", b"two"], script, "--retries", "0")
    with spawn(*words) as process:
        wait_until(lambda: log.exists() and log.read_text() == "two\n", "the later message")
        assert kept(tmp_path) == [b"bad"]
        marker.touch()
        wait_until(lambda: log.read_text() == "two\nbad\n", "the stored message")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert kept(tmp_path) == []


@pytest.mark.zookeeper
def test_exec_when_a_parked_message_can_be_handled_later_does_it_between_messages(
    in_group: GroupArguments, run_process: Invoke, tmp_path: Path
) -> None:
    healed = tmp_path / "healed"
    script = (
        f'read -r x; if [ "$x" = heal ]; then touch {healed}; sleep 1.1; fi; '
        f'if [ "$x" = bad ] && [ ! -e {healed} ]; then exit 1; fi; echo "$x"'
    )
    options = ("-e", "--retries", "0")
    result = run_process(*in_group([b"bad", b"heal", b"last"], script, *options))
    assert (result.status, result.stdout) == (0, b"heal\nbad\nlast\n")
    assert kept(tmp_path) == []


@pytest.mark.zookeeper
def test_exec_when_interrupted_waits_for_the_command_and_commits_its_message(
    in_group: GroupArguments, spawn: Spawn, session: Session, tmp_path: Path
) -> None:
    started, goes_on = tmp_path / "started", tmp_path / "goes_on"
    script = f"touch {started}; while [ ! -e {goes_on} ]; do :; done; cat; echo"
    with spawn(*in_group([b"one", b"two"], script)) as process:
        wait_until(started.exists, "the command")
        process.send_signal(signal.SIGINT)
        goes_on.touch()
        stdout, _ = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, b"one\n")
    assert stored_offset(session) == 13


@pytest.mark.zookeeper
@pytest.mark.parametrize("victim", ["bad", "two"])
def test_exec_when_killed_before_the_commit_loses_nothing(
    in_group: GroupArguments, run_process: Invoke, session: Session, tmp_path: Path, victim: str
) -> None:
    """`bad` is the kill while handling, before the store; `two` that between store and commit."""
    marker = tmp_path / "killed"
    kill = f'if [ "$x" = {victim} ] && [ ! -e {marker} ]; then touch {marker}; kill -9 $PPID; fi'
    script = f'read -r x; {kill}; if [ "$x" = bad ]; then exit 1; fi; echo "$x"'
    words = in_group([b"one", b"bad", b"two", b"three"], script, "-e", "--retries", "0")
    assert run_process(*words).status == -signal.SIGKILL
    assert kept(tmp_path) == ([] if victim == "bad" else [b"bad"])
    wait_until(lambda: not session.children(paths.consumer_ids("g")), "the end of its session")
    result = run_process(*words)
    assert result.status == 0
    assert set(result.stdout.split()) >= {b"two", b"three"}
    assert kept(tmp_path) == [b"bad"]


@pytest.mark.zookeeper
def test_exec_when_committing_before_and_killed_then_only_the_message_in_hand_is_lost(
    in_group: GroupArguments, run_process: Invoke, session: Session
) -> None:
    script = 'read -r x; if [ "$x" = two ]; then kill -9 $PPID; exit; fi; sleep 0.02; echo "$x"'
    words = in_group([b"one", b"two", b"three", b"four"], script, "-e", "--commit", "before")
    killed = run_process(*words)
    assert (killed.status, killed.stdout) == (-signal.SIGKILL, b"one\n")
    wait_until(lambda: not session.children(paths.consumer_ids("g")), "the end of its session")
    assert run_process(*words).stdout == b"three\nfour\n"


@pytest.mark.zookeeper
def test_exec_when_committing_before_and_the_command_fails_then_goes_on_and_ends_with_6(
    in_group: GroupArguments, run_process: Invoke
) -> None:
    words = in_group([b"good", b"bad", b"more"], ECHO, "-e", "--commit", "before")
    place = words.index("--retry-dir")
    without = [*words[:place], *words[place + 2 :]]
    result = run_process(*without)
    assert (result.status, result.stdout) == (6, b"good\nmore\n")
    assert "t[0-0] at 14: 'sh' ended with status" in result.stderr
    assert run_process(*without).stdout == b""


@pytest.mark.zookeeper
def test_exec_when_the_retry_directory_is_in_use_is_a_conflict(
    in_group: GroupArguments, run_process: Invoke, tmp_path: Path
) -> None:
    with RetryStore(tmp_path / "kept"):
        result = run_process(*in_group([b"one"], "cat", "-e"))
    assert result.status == 4
    assert "is in use by process" in result.stderr


def usage(invoke: Invoke, *options: str) -> Result:
    return invoke("consume", "t", "-b", "127.0.0.1:1", "--timeout", "100ms", *options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--retry-dir", "d"), "--retry-dir needs --exec and --group"),
        (("--exec", "true", "--retry-dir", "d"), "--retry-dir needs --exec and --group"),
        (("--exec", "true", "--retries", "2"), "--retries says how --retry-dir works"),
        (("--max-attempts", "2"), "--max-attempts says how --retry-dir works"),
        (("--exec", "true", "--jsonl"), "--jsonl cannot be used with --exec"),
        (("--exec", "true", "-u"), "--unbuffered cannot be used with --exec"),
        (("--exec", "it's"), "cannot be split into words"),
        (("--exec", " "), "--exec needs a command"),
    ],
)
def test_consume_when_options_of_exec_do_not_go_together_is_a_usage_error(
    invoke: Invoke, options: tuple[str, ...], text: str
) -> None:
    result = usage(invoke, *options)
    assert result.status == 2
    assert text in result.stderr


def test_exec_when_there_is_no_such_command_ends_before_anything_is_read(invoke: Invoke) -> None:
    result = usage(invoke, "--exec", "no-such-command-here x")
    assert result.status == 3
    assert "no command 'no-such-command-here'" in result.stderr


@pytest.mark.parametrize(
    "template",
    [
        "sh -c 'echo {topic}'",
        "sh -c 'echo \"{topic}\"'",
        "env A=1 /bin/bash --norc -euc 'echo {topic}'",
        "sh -c -e 'echo {topic}'",
    ],
)
def test_exec_when_a_shell_would_run_the_name_of_a_topic_is_refused(
    invoke: Invoke, template: str
) -> None:
    result = invoke("consume", "t", "-b", "127.0.0.1:1", "--exec", template)
    assert result.status == 2
    assert "a topic's name could be run as a command" in result.stderr


def test_exec_when_a_shell_gets_the_topic_as_an_argument_runs_nothing_of_its_name(
    running_broker: Broker, run_process: Invoke, tmp_path: Path
) -> None:
    topic = "t;touch pwned $(touch pwned)"
    fill(running_broker, topic, [b"x"])
    template = "sh -c 'echo \"$1 at {offset}\"' sh {topic}"
    result = run_process(
        "consume", topic, "-b", at(running_broker), "--from-beginning", "-e", "--exec", template,
    )  # fmt: skip
    assert (result.status, result.stdout) == (0, f"{topic} at 0\n".encode())

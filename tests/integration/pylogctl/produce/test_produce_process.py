"""`pylogctl produce` as a process: pipes, signals, terminals, brokers that go away."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

from broker import Broker, SimpleConsumer
from broker.errors import BrokerError
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import REPOSITORY, Invoke, Spawn, first_note, process_environment
from tests.support.waiting import wait_until

MAX = 1 << 26


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def stored(broker: Broker, topic: str = "t") -> list[bytes]:
    """Return what a consumer can read now; nothing of a topic that is not there yet."""
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        try:
            return [payload for _, _, payload in consumer.fetch(topic, 0, 0, MAX)]
        except BrokerError:
            return []


def feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Wait for the end; return status and standard error."""
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr.decode()


@pytest.fixture
def start(running_broker: Broker, spawn: Spawn) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start `produce t` with a pipe to its standard input."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*args: str, **options: object) -> subprocess.Popen[bytes]:
        command = ("produce", "-b", at(running_broker), "t", *args)
        started.append(spawn(*command, **({"stdin": subprocess.PIPE} | options)))
        return started[-1]

    yield run
    for process in started:
        with process:
            process.kill()


def test_produce_when_the_input_pauses_sends_what_there_is(
    running_broker: Broker, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start()
    feed(process, b"one\ntwo\nunfin")
    wait_until(lambda: stored(running_broker) == [b"one", b"two"], "the lines arriving")
    feed(process, b"ished\n")
    wait_until(lambda: stored(running_broker)[2:] == [b"unfinished"], "the line arriving")
    assert finish(process)[0] == 0


def test_produce_when_framed_input_pauses_sends_what_there_is(
    running_broker: Broker, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start("--hex")
    feed(process, b"61\n62\n")
    wait_until(lambda: stored(running_broker) == [b"a", b"b"], "the messages arriving")
    assert finish(process)[0] == 0


def test_produce_when_input_trickles_waits_for_the_batch_to_fill_up(
    running_broker: Broker, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start("--linger", "1h", "--batch-messages", "3")
    feed(process, b"1\n2\n")
    feed(process, b"3\n")
    wait_until(lambda: stored(running_broker) == [b"1", b"2", b"3"], "the batch arriving")
    assert finish(process)[0] == 0


def test_produce_when_the_brokers_limit_is_lowered_meanwhile_then_tells_how_much_is_stored(
    start_broker: Callable[..., Broker], zookeeper: str, invoke: Invoke, spawn: Spawn
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    command = ("produce", "-b", at(broker), "t", "--batch-messages", "10")
    with spawn(*command, stdin=subprocess.PIPE) as process:
        feed(process, b"".join(b"%d\n" % number for number in range(1, 11)))
        wait_until(lambda: len(stored(broker)) == 10, "the first batch")
        where = ("--broker", "0", "--zookeeper", zookeeper)
        assert invoke("config", "set", "max.message.size=100", *where).status == 0
        wait_until(lambda: broker.config.max_message_bytes == 100, "the limit")
        lines = [b"x" * 101, *(b"%d" % number for number in range(12, 30_000))]
        # it may end before it has read them all: `communicate` does not mind
        _, error_bytes = process.communicate(b"\n".join(lines), timeout=60)
    stderr = error_bytes.decode()
    assert process.returncode == ExitStatus.USAGE
    assert stderr.startswith("error: messages 11 to 20 refused: a message of 101 bytes")
    found = re.search(r"messages sent(?: before)?: (\d+)(, also behind it)?", stderr)
    assert found is not None
    assert (int(found[1]), bool(found[2])) == (len(stored(broker)), len(stored(broker)) > 10)


@pytest.mark.parametrize("delimiter", [b"\r\n", b"---"])
def test_produce_when_a_delimiter_comes_in_pieces_splits_there(
    running_broker: Broker, start: Callable[..., subprocess.Popen[bytes]], delimiter: bytes
) -> None:
    process = start("-D", delimiter.decode().replace("\r", r"\r").replace("\n", r"\n"))
    text = delimiter.join([b"a", b"b-c\r", b"d"])
    for place in range(len(text)):
        feed(process, text[place : place + 1])
        wait_until(lambda: _is_read(process), "the byte being read")
    assert finish(process)[0] == 0
    assert stored(running_broker) == [b"a", b"b-c\r", b"d"]


def _is_read(process: subprocess.Popen[bytes]) -> bool:
    """Say whether a process has emptied the pipe to it."""
    import array
    import fcntl
    import termios

    assert process.stdin is not None
    waiting = array.array("i", [0])
    fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, waiting)
    return waiting[0] == 0


@pytest.mark.parametrize(
    ("signum", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)],
)
@pytest.mark.parametrize("args", [[], ["-L"]])
def test_produce_when_interrupted_sends_what_it_has_read(
    running_broker: Broker,
    start: Callable[..., subprocess.Popen[bytes]],
    signum: signal.Signals,
    status: int,
    args: list[str],
) -> None:
    process = start(*args, "--linger", "1h")
    text = b"a\nb\nunfin" if not args else b"\0\0\0\1a\0\0\0\1b\0\0\0\5unf"
    feed(process, text)
    wait_until(lambda: _is_read(process), "the input being read")
    process.send_signal(signum)
    code, stderr = finish(process)
    assert (code, stored(running_broker)) == (status, [b"a", b"b"])
    unfinished = 5 if not args else 7
    assert stderr.splitlines()[0] == f"{unfinished} bytes of an unfinished message were not sent"
    assert stderr.splitlines()[1].startswith("2 messages, 2 B to t[0-0]")


def test_produce_when_interrupted_in_a_paced_run_ends_at_once(
    running_broker: Broker, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start("--rate", "1/s")
    feed(process, b"a\nb\nc\n")
    wait_until(lambda: stored(running_broker), "the first message")
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 130
    assert stored(running_broker) == [b"a", b"b", b"c"]


def test_produce_when_a_pipe_has_no_writer_yet_can_be_interrupted(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = start(str(tmp_path / "pipe"), "-v", stdin=subprocess.DEVNULL)
    assert "t[0-0]" in first_note(process)
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143


def test_produce_when_reading_a_named_pipe_reads_to_its_end(
    running_broker: Broker, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = start(str(tmp_path / "pipe"), stdin=subprocess.DEVNULL)
    (tmp_path / "pipe").write_bytes(b"a\nb\n")
    assert finish(process)[0] == 0
    assert stored(running_broker) == [b"a", b"b"]


def test_produce_when_stdin_is_closed_says_so_and_succeeds(
    running_broker: Broker, tmp_path: Path
) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m pylogctl produce -b {at(running_broker)} t <&-"],
        cwd=REPOSITORY,
        env=process_environment(tmp_path, {}),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == b"nothing to send: standard input is closed"


def test_produce_when_its_tee_is_not_read_ends_by_sigpipe(
    running_broker: Broker, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start("--tee")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    feed(process, b"a\n")
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == -signal.SIGPIPE
    assert stored(running_broker) == [b"a"]


def test_produce_when_its_tee_cannot_be_written_says_so(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start("--tee", stdout=full)
        feed(process, b"a\n")
        status, stderr = finish(process)
    assert status == ExitStatus.FAILED
    assert stderr == "error: cannot write output: no space left on device\n"


def test_produce_when_stdin_cannot_be_read_says_so(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    with (tmp_path / "f").open("wb") as write_only:
        status, stderr = finish(start(stdin=write_only))
    assert status == ExitStatus.FAILED
    assert stderr == "error: standard input: bad file descriptor\n"


def test_produce_when_messages_are_typed_sends_each_at_once(
    running_broker: Broker, tmp_path: Path
) -> None:
    args = ["-m", "pylogctl", "produce", "-b", at(running_broker), "t"]
    child = pexpect.spawn(
        sys.executable, args, cwd=str(REPOSITORY), env=process_environment(tmp_path, {}), timeout=30
    )
    child.expect_exact("reading messages from the terminal, one per line, Ctrl-D to end")
    child.sendline("typed")
    wait_until(lambda: stored(running_broker) == [b"typed"], "the line arriving")
    child.sendeof()
    child.expect("1 message, 5 B to")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_produce_when_the_broker_goes_away_says_what_was_confirmed(
    start_broker: Callable[..., Broker], spawn: Spawn
) -> None:
    broker = start_broker()
    process = spawn(
        *("produce", "-b", at(broker), "t", "--on-broker-loss", "fail"),
        stdin=subprocess.PIPE,
    )
    feed(process, b"a\nb\n")
    wait_until(lambda: stored(broker) == [b"a", b"b"], "the lines arriving")
    broker.stop()
    feed(process, b"c\nd\ne\n")
    status, stderr = finish(process)
    assert status == ExitStatus.UNREACHABLE
    assert stderr.count("\n") == 1
    assert stderr.rstrip().endswith(
        "; 2 messages confirmed, 3 sent and not confirmed, from message 3 on"
    )


def test_produce_when_asked_how_far_it_is_says_so(
    running_broker: Broker, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start()
    feed(process, b"a\n")
    wait_until(lambda: stored(running_broker), "the line arriving")
    process.send_signal(signal.SIGUSR1)
    assert first_note(process).startswith("produce: 2 B")
    assert finish(process)[0] == 0


def test_produce_when_asked_for_json_and_failing_writes_the_error_as_json(
    run_process: Invoke,
) -> None:
    args = ("produce", "-b", "127.0.0.1:1", "t", "--timeout", "100ms", "--output", "json")
    result = run_process(*args, stdin=b"a\n")
    assert (result.status, result.stdout) == (ExitStatus.UNREACHABLE, b"")
    assert json.loads(result.stderr.splitlines()[-1])["error"]["exit"] == 10


def test_produce_when_the_broker_comes_back_goes_on_where_it_was(
    start_broker: Callable[..., Broker], spawn: Spawn
) -> None:
    broker = start_broker()
    process = spawn("produce", "-b", at(broker), "t", stdin=subprocess.PIPE)
    feed(process, b"1\n2\n")
    wait_until(lambda: stored(broker) == [b"1", b"2"], "the lines arriving")
    broker.stop()
    feed(process, b"3\n")
    again = start_broker(port=broker.port)
    feed(process, b"4\n5\n")
    assert finish(process)[0] == 0
    assert stored(again) == [b"1", b"2", b"3", b"4", b"5"]


def test_produce_when_something_else_listens_there_says_so(run_process: Invoke) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        web_server = threading.Thread(target=_answer_as_web_server, args=(listener,))
        web_server.start()
        result = run_process("produce", "-b", f"127.0.0.1:{port}", "t", stdin=b"a\n")
        web_server.join()
    assert result.status == ExitStatus.REMOTE
    assert result.stderr == (
        f"error: 127.0.0.1:{port} answered but does not speak the log protocol "
        "(first bytes: 'HTTP')\n"
    )


def _answer_as_web_server(listener: socket.socket) -> None:
    is_asked = False
    while not is_asked:
        client, _ = listener.accept()
        with client:
            is_asked = bool(client.recv(1 << 16))  # the first connection only tries the port
            if is_asked:
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

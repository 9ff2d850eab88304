"""`pylogctl top` on a real pseudo-terminal, and as text where there is none."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest

from pylogctl.testing.brokers import Broker, Cluster, memory_cluster
from tests.support.command_line import REPOSITORY, process_environment

_DEADLINE_S = 60.0
_TOPICS = {"orders": 3, "audit": 1, "注文": 1}
_LEAVES = "\x1b[?1049l"  # the alternate screen
_SHOWS_CURSOR = "\x1b[?25h"


class OnScreen:
    """A program on a terminal, and what the terminal shows."""

    def __init__(self, child: Any, width: int, height: int) -> None:
        self.child = child
        self.screen = pyte.Screen(width, height)
        self._stream = pyte.Stream(self.screen)
        self.written = ""

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    def read(self) -> bool:
        """Read what is written within a moment; return whether the program still runs."""
        try:
            data = self.child.read_nonblocking(65_536, 0.05)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.written += data
        self._stream.feed(data)
        return True

    def until(self, pattern: str) -> str:
        """Return the screen once it matches."""
        give_up_s = time.monotonic() + _DEADLINE_S
        while not re.search(pattern, self.text, re.MULTILINE):
            assert self.read(), f"ended without {pattern!r}:\n{self.text}"
            assert time.monotonic() < give_up_s, f"no {pattern!r} on\n{self.text}"
        return self.text

    def press(self, keys: str, pattern: str) -> str:
        self.child.send(keys)
        return self.until(pattern)

    def ended(self) -> int:
        """Return the exit status, once it has ended."""
        give_up_s = time.monotonic() + _DEADLINE_S
        while self.read():
            assert time.monotonic() < give_up_s, self.text
        self.child.close()
        return int(self.child.exitstatus)

    def resize(self, width: int, height: int) -> None:
        self.screen.resize(height, width)
        self.child.setwinsize(height, width)


StartTop = Callable[..., OnScreen]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with memory_cluster(2) as cluster:
        with cluster.connect() as client:
            client.create_topic("orders", partitions=3, replicas=2)
            client.create_topic("audit", partitions=1, replicas=2)
            for topic in _TOPICS:
                for number in range(20):
                    client.send(topic, b"message %d of %s" % (number, topic.encode()))
        yield cluster


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartTop]:
    """Start `pylogctl top` on a terminal."""
    started: list[Any] = []

    def run(
        *args: str, size: tuple[int, int] = (80, 24), command: str = "", **environment: str
    ) -> OnScreen:
        words = ["-m", "pylogctl", "top", "--interval", "500ms", *args]
        child = pexpect.spawn(
            command or sys.executable,
            ["--norc", "-i"] if command else words,
            cwd=str(tmp_path),
            env=process_environment(
                tmp_path / "home",
                {
                    "TERM": "xterm",
                    "PYTHONPATH": str(REPOSITORY),
                    "LC_ALL": "C.UTF-8",
                    **environment,
                },
            ),
            dimensions=size[::-1],
            encoding="utf-8",
            timeout=60,
        )
        started.append(child)
        return OnScreen(child, *size)

    yield run
    for child in started:
        child.close(force=True)


def test_keys_when_pressed_then_show_what_they_say(start: StartTop, cluster: Cluster) -> None:
    top = start("-Z", cluster.zookeeper)
    top.until(r"^2 brokers [^~]*^>     0 .* (ctl|running) .*\n      1 ")
    top.until(r"in 0 msg/s 0B/s")  # rates, once there were two looks
    top.press("t", r"^pylogctl top - topics  sort: IN/S desc")
    top.until(r"^.orders +3  2 ")
    top.until(r"^.注文 ")
    top.press("<" * 4, "sort: TOPIC desc")
    top.press("R", r"sort: TOPIC .*(\n.*){3}\n>audit.*\n orders.*\n 注文")
    top.press("j", r"^>orders")
    top.press("\x1b[A", r"^>audit")
    top.press("\x1b[F", r"^>注文")
    top.press("\x1b[H\x1b[B\r", r"partitions of orders[^~]*^>0-0  ok")
    top.press("\r", r"replicas of orders/0-0[^~]*(leader|follower)")
    top.press("\x1b", r"partitions of orders")
    top.press("\x1b", r"^>orders")
    top.press("/or", r"^/or_$")
    top.press("\r", r"filter: or .*\n[^~]*^1-1 of 1 ")
    top.press("/\x7f\x7f~^a\r", r"^>audit[^~]*^1-1 of 1 ")
    top.press("/~(\r", r"^'\^a~\(' is no regular expression")
    top.press("\x1b", r"^1-3 of 3 ")
    top.press("g", r"top - groups[^~]*no groups")
    top.press("r", r"top - replication[^~]*^. +1 +0 ok ")
    top.press("q", r"top - requests[^~]*^.other ")
    top.press("b\r", r"top - broker of 0[^~]*software +pylogctl")
    top.press("?", r"PgUp PgDn Home End")
    top.press("o", r"top - broker of 0")
    top.press("o", r"top - overview")
    top.press("+", r"every 1s")
    top.press("-", r"every 0.5s")
    top.press("Q", "")
    assert top.ended() == 0


def test_terminal_when_the_view_ends_then_is_as_it_was(start: StartTop, cluster: Cluster) -> None:
    for end in ("Q", "\x03"):
        top = start("-b", cluster.address)
        top.until("2 brokers")
        assert "\x1b[?1049h" in top.written
        top.child.send(end)
        assert top.ended() == 0
        assert _LEAVES in top.written
        assert top.written.rindex(_SHOWS_CURSOR) > top.written.rindex("\x1b[?25l")


def test_terminal_when_it_is_closed_then_the_program_ends_by_itself(
    start: StartTop, cluster: Cluster
) -> None:
    top = start("-b", cluster.address)
    top.until("2 brokers")
    top.child.ptyproc.fileobj.close()
    assert top.child.ptyproc.wait() == 0


def test_paused_when_going_on_then_rates_are_of_the_last_interval(
    start: StartTop, cluster: Cluster
) -> None:
    top = start("-b", cluster.address, "--view", "topics")
    top.until(r"^.audit +1  2 +0 ")
    text = top.press(" ", r"\[paused\]")
    with cluster.connect() as client:
        for _ in range(20):
            client.send("audit", b"x" * 1000)
    deadline_s = time.monotonic() + 1.5
    while time.monotonic() < deadline_s:
        top.read()
    assert top.text == text
    top.press(" ", r"\[live\]")
    top.until(r"^.audit +1  2 +0 +0B ")  # not what came while it was paused, by one interval


def test_size_when_changed_then_the_screen_fits(start: StartTop, cluster: Cluster) -> None:
    top = start("-b", cluster.address)
    top.until(r"MSG/S")
    top.resize(50, 12)
    top.until(r"^pylogctl top - overview .*\[live\]$")
    give_up_s = time.monotonic() + _DEADLINE_S
    while "MSG/S" in top.text or not top.lines()[-1].startswith("? help"):
        assert time.monotonic() < give_up_s, top.text
        top.read()
    assert top.lines()[0].startswith("pylogctl top - overview")


def test_broker_when_killed_then_is_down_with_its_age_and_back_later(start: StartTop) -> None:
    with memory_cluster(2) as cluster:
        with cluster.connect() as client:
            client.create_topic("orders", partitions=2, replicas=2)
        top = start("-b", cluster.address)
        top.until(r"^      1 .* (running|ctl) ")
        cluster.broker(1).kill()
        for part in (r"^      1 .* DOWN .* \d+s$", "DOWN 1 broker", r"Z broker 1 lost: "):
            top.until(part)
        cluster.broker(1).restart()
        top.until(r"broker 1 is back")
        top.until(r"^      1 .* (running|ctl) ")
        top.press("Q", "")
        assert top.ended() == 0


def test_ctrl_z_when_pressed_then_gives_the_terminal_back_until_fg(
    start: StartTop, cluster: Cluster
) -> None:
    top = start(command="/bin/bash", PS1="ready> ")
    top.until("ready>")
    program = f"{sys.executable} -m pylogctl top --interval 500ms -b {cluster.address}"
    top.press(f"{program}\r", "2 brokers")
    top.press("\x1a", r"Stopped")
    assert _LEAVES in top.written
    top.press("stty -a | grep -c -w -- -echo\r", r"^0$")
    top.press("fg\r", r"^pylogctl top - overview")
    top.press("t", r"pylogctl top - topics")
    top.press("\x03", r"ready>")  # wherever the interrupted frame left the cursor
    assert top.written.rindex(_LEAVES) < top.written.rindex("ready>")


def test_tail_when_asked_for_then_shows_messages_until_ctrl_c(
    start: StartTop, cluster: Cluster
) -> None:
    top = start("-b", cluster.address, "--view", "topics", "--filter", "orders")
    top.until(r"^>orders")
    top.press("m", r"^message \d+ of orders")
    top.press("\x03", r"^pylogctl top - topics")
    top.press("om", r"^m shows the messages of a topic")


def test_screen_when_saved_then_is_text(start: StartTop, cluster: Cluster, tmp_path: Path) -> None:
    top = start("-b", cluster.address, "--view", "topics")
    top.until(r"^.orders ")
    top.press("s", r"^saved as pylogctl-top-topics-\d{8}-\d{6}.txt")
    (saved,) = tmp_path.glob("pylogctl-top-topics-*.txt")
    text = saved.read_text()
    assert text.startswith("pylogctl top - topics")
    assert "orders" in text
    assert "\x1b" not in text


def test_colors_when_not_wanted_then_none_are_written(start: StartTop, cluster: Cluster) -> None:
    top = start("-b", cluster.address, NO_COLOR="1")
    top.until(r"^>     0 ")
    assert not re.search(r"\x1b\[[\d;]*[1-9]\d*m", top.written)


def test_terminal_without_unicode_then_names_are_escaped(start: StartTop, cluster: Cluster) -> None:
    top = start("-b", cluster.address, "--view", "topics", PYTHONIOENCODING="ascii")
    top.until(r"^.\\u6ce8\\u6587 ")
    assert top.written.isascii()
    top.press("Q", "")
    assert top.ended() == 0


def test_dumb_terminal_then_looks_are_written_as_text_until_ctrl_c(
    start: StartTop, cluster: Cluster
) -> None:
    top = start("-b", cluster.address, TERM="dumb")
    give_up_s = time.monotonic() + _DEADLINE_S
    while len(re.findall(r"^20\S+Z  overview\r\n2 brokers", top.written, re.MULTILINE)) < 2:
        assert time.monotonic() < give_up_s, top.text
        top.read()
    top.child.send("\x03")
    assert top.ended() == 0
    assert "\x1b" not in top.written


def _run(cluster: Cluster, tmp_path: Path, *args: str) -> Any:
    command = [sys.executable, "-m", "pylogctl", "top", "--interval", "500ms", *args]
    return subprocess.Popen(
        [*command, "-b", cluster.address],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=process_environment(tmp_path / "home", {}),
        cwd=str(REPOSITORY),
        text=True,
    )


def test_pipe_when_no_number_of_looks_is_given_then_gets_one(
    cluster: Cluster, tmp_path: Path
) -> None:
    with _run(cluster, tmp_path) as process:
        out, err = process.communicate()
    assert (process.returncode, err, out.count("Z  overview\n")) == (0, "", 1)


def test_pipe_when_interrupted_then_ends_with_success(cluster: Cluster, tmp_path: Path) -> None:
    with _run(cluster, tmp_path, "--batch", "1000") as process:
        lines = [process.stdout.readline() for _ in range(5)]
        assert lines[0].endswith("Z  overview\n")
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0


def test_batch_when_json_then_has_the_rows_of_each_look(cluster: Cluster, tmp_path: Path) -> None:
    args = ("--batch", "2", "--output", "json", "--view", "topics", "--filter", "orders")
    with _run(cluster, tmp_path, *args) as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    document = json.loads(out)
    assert document["schema"] == "pylogctl.top.topics/1"
    rows = document["data"]
    assert [(one["topic"], one["partitions"], one["bytes_in"]) for one in rows] == [
        ("orders", 3, 0.0)
    ] * 2
    assert len({one["time"] for one in rows}) == 2


def test_batch_when_into_a_topic_then_has_its_partitions(cluster: Cluster, tmp_path: Path) -> None:
    args = ("--batch", "1", "--output", "csv", "--columns", "partition,state,isr")
    with _run(cluster, tmp_path, *args, "--view", "topics", "--into", "audit") as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert re.fullmatch(r'partition,state,isr\n\d-0,ok,"(0,1|1,0)"\n', out)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--interval", "100ms"], "--interval must be between 500ms and 60s"),
        (["--filter", "~("], "'(' is no regular expression"),
        (["--sort", "nope"], "no column 'nope'"),
        (["--view", "replication", "--into", "x"], "--into has nothing to go into"),
        (["--batch", "0"], "--batch"),
    ],
)
def test_input_when_it_is_bad_then_says_what_is_valid(
    cluster: Cluster, tmp_path: Path, args: list[str], error: str
) -> None:
    with _run(cluster, tmp_path, *args) as process:
        _, err = process.communicate()
    assert process.returncode == 2
    assert error in err
    assert "Traceback" not in err


def test_broker_alone_without_zookeeper_then_is_shown_without_groups(tmp_path: Path) -> None:
    with Broker() as broker, broker.connect() as client:
        client.send("t", b"x")
        cluster = Cluster("", [broker])
        with _run(cluster, tmp_path, "--batch", "1") as process:
            out, _ = process.communicate()
        assert out.splitlines()[1] == "1 broker  offline 0  under-replicated 0  min-isr 0"
        with _run(cluster, tmp_path, "--batch", "1", "--view", "groups") as process:
            _, err = process.communicate()
        assert "groups are in ZooKeeper" in err

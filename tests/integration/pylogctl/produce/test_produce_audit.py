"""`pylogctl produce --audit`: the counts that end up beside the messages."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker, Connection, Producer, SimpleConsumer, StaticCluster
from broker.client.connection import parse_broker_list
from broker.errors import BrokerError
from broker.tools.audit import AuditEvent
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.proxies import BrokerOf07
from tests.support.command_line import Invoke, Result, Spawn
from tests.support.waiting import wait_until

MAX = 1 << 26


def at(*brokers: Broker) -> str:
    return ",".join(f"127.0.0.1:{broker.port}" for broker in brokers)


def stored(broker: Broker, topic: str = "t") -> list[bytes]:
    """Return what a consumer can read now; nothing of a topic that is not there yet."""
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        try:
            return [payload for _, _, payload in consumer.fetch(topic, 0, 0, MAX)]
        except BrokerError:
            return []


def events(broker: Broker) -> list[AuditEvent]:
    return [AuditEvent.decode(payload) for payload in stored(broker, "audit")]


def counted(broker: Broker) -> list[tuple[str, str, int, int]]:
    return [(e.tier, e.topic, e.message_count, e.payload_bytes) for e in events(broker)]


@pytest.fixture
def produce(running_broker: Broker, invoke: Invoke) -> Invoke:
    """Run `produce t --audit audit` on `running_broker`."""

    def run(*args: str, stdin: bytes = b"") -> Result:
        command = ("produce", "-b", at(running_broker), "t", "--audit", "audit", *args)
        result: Result = invoke(*command, stdin=stdin)
        return result

    return run


@pytest.mark.parametrize("args", [(), ("--hex",), ("--sync",), ("-z", "gzip"), ("--no-barrier",)])
def test_produce_when_audited_then_publishes_how_much_was_confirmed(
    running_broker: Broker, produce: Invoke, args: tuple[str, ...]
) -> None:
    lines = b"".join(b"%04x\n" % number for number in range(1000))

    assert produce("--audit", "audit:365d", *args, stdin=lines).status == 0

    size = 2 if "--hex" in args else 4
    wait_until(lambda: events(running_broker), "the counts being readable")
    assert counted(running_broker) == [("producer", "t", 1000, 1000 * size)]
    wait_until(lambda: len(stored(running_broker)) == 1000, "all messages")


def test_produce_when_audited_without_input_then_publishes_nothing(
    running_broker: Broker, produce: Invoke
) -> None:
    assert produce().status == 0
    assert counted(running_broker) == []


def test_produce_when_audited_and_dry_then_publishes_nothing(
    running_broker: Broker, produce: Invoke
) -> None:
    assert produce("--dry-run", stdin=b"a\n").status == 0
    assert (stored(running_broker), counted(running_broker)) == ([], [])


def test_produce_when_messages_have_their_own_time_then_counts_by_it(
    running_broker: Broker, produce: Invoke
) -> None:
    times = [b"946684860", b'"2000-01-01T00:01:59Z"', b"946684920000000", b'"soon"', b"5"]
    lines = b"".join(b'{"at":{"ts":%b}}\n' % one for one in times)

    done = produce("--time-field", ".at.ts", "--audit", "audit:1m", "-z", "gzip", stdin=lines)

    found = [(one.start_ms, one.message_count) for one in events(running_broker)]
    assert found == [(946_684_860_000, 2), (946_684_920_000, 1)]
    assert "2 messages have no time in .at.ts: sent, but not counted" in done.stderr


def test_produce_when_audited_on_a_broker_of_07_then_counts_what_was_handed_over(
    running_broker: Broker, broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    args = ("produce", "t", "-b", broker_of_07.address, "--audit", "audit")

    assert invoke(*args, stdin=b"a\nbc\n").status == 0

    assert sum(one.message_count for one in events(running_broker)) == 2


@pytest.mark.parametrize(
    ("args", "status", "count"), [((), ExitStatus.USAGE, 2), (("--on-error", "skip"), 6, 3)]
)
def test_produce_when_a_message_is_refused_then_counts_only_the_others(
    running_broker: Broker, produce: Invoke, args: tuple[str, ...], status: int, count: int
) -> None:
    result = produce("--max-size", "5", *args, stdin=b"a\nb\ntoo long\nc\n")

    assert result.status == status
    assert len(stored(running_broker)) == count
    assert sum(one.message_count for one in events(running_broker)) == count


def test_audit_when_produce_counted_then_tells_lost_and_repeated_messages(
    start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path
) -> None:
    def check(broker: Broker) -> Result:
        counting = ("--count", "--time-field", "ts", "--fail-above", "0", "--all")
        result: Result = invoke("audit", "check", "audit", "-b", at(broker), *counting)
        return result

    times = [b'{"ts":%d,"n":%d}' % (946_684_860 + number // 5, number) for number in range(10)]
    broker = start_broker()
    options = ("--audit", "audit:1s", "--time-field", "ts")
    invoke("produce", "-b", at(broker), "t", *options, stdin=b"\n".join(times))
    alright = check(broker)
    broker.stop()
    (segment,) = (tmp_path / "data" / "t_0").glob("*.pylog")
    os.truncate(segment, segment.stat().st_size - 10 - len(times[-1]))
    broker = start_broker(reuse_lost_offsets=True)
    lost = check(broker)
    invoke("produce", "-b", at(broker), "t", stdin=b"\n".join([times[-1], times[-1]]))
    repeated = check(broker)

    assert (alright.status, alright.text.split()[-1]) == (ExitStatus.OK, "ok")
    assert (lost.status, lost.text.split()[-2:]) == (ExitStatus.THRESHOLD, ["-1", "missing"])
    assert (repeated.status, repeated.text.split()[-2:]) == (12, ["1", "surplus"])
    assert "error: 1 message missing, late or surplus; the limit is 0" in repeated.stderr


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--audit", "t"), "--audit cannot be 't' itself"),
        (("--audit", "a/b"), "invalid topic name 'a/b'"),
        (("--time-field", ".ts"), "--time-field says how --audit counts, which is not given"),
        (("--audit", "a:999ms"), "the window of --audit is at least 1s: '999ms'"),
        (("--audit", "a:soon"), "not a duration: 'soon'"),
    ],
)
def test_produce_when_audit_options_are_wrong_then_sends_nothing(
    running_broker: Broker, invoke: Invoke, args: tuple[str, ...], text: str
) -> None:
    result = invoke("produce", "-b", at(running_broker), "t", *args, stdin=b"a\n")

    assert result.status == ExitStatus.USAGE
    assert text in result.stderr
    assert stored(running_broker) == []


# --- as a process -----------------------------------------------------------------------------


def feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def test_produce_when_the_input_pauses_then_publishes_windows_that_are_over(
    running_broker: Broker, spawn: Spawn
) -> None:
    args = ("produce", "-b", at(running_broker), "t", "--audit", "audit:1s")
    with spawn(*args, stdin=subprocess.PIPE) as process:
        feed(process, b"one\ntwo\n")
        wait_until(
            lambda: sum(one.message_count for one in events(running_broker)) == 2, "the counts"
        )
        assert process.poll() is None
        _, stderr = process.communicate(b"three\n", timeout=60)

    assert process.returncode == 0, stderr
    assert sum(one.message_count for one in events(running_broker)) == 3


def test_produce_when_the_audit_broker_goes_away_then_messages_go_on_and_it_says_so(
    start_broker: Callable[..., Broker], spawn: Spawn, tmp_path: Path
) -> None:
    here = start_broker(broker_id=0, data_dir=tmp_path / "0")
    there = start_broker(broker_id=1, data_dir=tmp_path / "1")
    cluster = StaticCluster(parse_broker_list(at(there)), Connection)
    with Producer(cluster, Connection) as producer:
        producer.send("audit", [b"its home is there"])
    cluster.close()
    brief = ("-X", "num.retries=0", "-X", "connect.timeout.ms=5000")
    args = ("t", "-p", "0-0", "--audit", "audit:1s", *brief)
    with spawn("produce", "-b", at(here, there), *args, stdin=subprocess.PIPE) as process:
        feed(process, b"one\n")
        wait_until(lambda: stored(here) == [b"one"], "the first message")
        there.stop()
        feed(process, b"two\n")
        wait_until(lambda: stored(here) == [b"one", b"two"], "the second message")
        _, stderr = process.communicate(timeout=60)

    assert process.returncode == ExitStatus.UNREACHABLE
    assert b"the counts of what was confirmed could not be published" in stderr

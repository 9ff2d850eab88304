"""Messages with envelopes, from `produce` to those who read them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import pylogctl
from broker import Broker, RetryMessage, RetryStore, SimpleConsumer, TopicPartition
from broker.protocol.envelope import MAGIC, Envelope, open_envelope
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.proxies import BrokerOf07
from tests.support.command_line import Invoke, Result


@pytest.fixture
def at(running_broker: Broker) -> str:
    return f"127.0.0.1:{running_broker.port}"


@pytest.fixture
def consume(invoke: Invoke, at: str) -> Callable[..., Result]:
    return lambda *args: invoke("consume", "t", "-b", at, "--from-beginning", "-e", *args)


def stored(broker: Broker) -> list[bytes]:
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        return [payload for _, _, payload in consumer.fetch("t", 0, 0, 1 << 20)]


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_consume_when_some_messages_have_envelopes_then_shows_payloads_times_and_hosts(
    running_broker: Broker, invoke: Invoke, consume: Callable[..., Result], at: str, codec: str
) -> None:
    before_us = time.time_ns() // 1000
    invoke("produce", "t", "-b", at, "-z", codec, stdin=b"plain\n")
    invoke("produce", "t", "-b", at, "-z", codec, "--envelope", stdin=b"a\nb\n")

    plain, a, b = stored(running_broker)
    (first, _), (second, payload) = open_envelope(a), open_envelope(b)
    assert plain == b"plain"
    assert first is not None and second is not None
    assert before_us <= first.time_us <= second.time_us <= time.time_ns() // 1000
    assert (first.sequence, second.sequence, payload) == (0, 1, b"b")
    assert first.producer == second.producer
    assert consume().text == "plain\na\nb\n"
    assert consume("-n", "2").text == "plain\na\n"
    assert consume("--raw").stdout == plain + a + b
    for at_broker in ((), ("--grep-at", "broker")):
        assert consume("--grep", "^a$", *at_broker).text == "a\n"
        assert consume("--grep", "PLE", "--invert", *at_broker).text == "plain\na\nb\n"
    assert consume("--where", "sequence>0").text == "b\n"
    assert consume("-F", "%T{ms} %h %s\\n").text.splitlines() == [
        "- - plain",
        *(
            f"{one.time_us // 1000} host={one.host},producer={one.producer:08x},"
            f"sequence={number} {text}"
            for number, (one, text) in enumerate([(first, "a"), (second, "b")])
        ),
    ]
    rows = [json.loads(line) for line in consume("--jsonl").text.splitlines()]
    assert "host" not in rows[0]
    assert (rows[2]["payload"], rows[2]["sequence"], rows[2]["host"]) == ("b", 1, second.host)


def test_log_when_messages_have_envelopes_then_searches_and_decodes_their_payloads(
    running_broker: Broker, invoke: Invoke, at: str, tmp_path: Path
) -> None:
    (tmp_path / "r.avsc").write_text('{"type": "record", "name": "r", "fields": []}')
    invoke("produce", "t", "-b", at, "--envelope", stdin=b"a\nb\n")
    schema = ("--schema", str(tmp_path / "r.avsc"))
    invoke("produce", "u", "-b", at, "--envelope", *schema, stdin=b"{}\n")

    def log(command: str, topic: str, *args: str) -> str:
        (file,) = running_broker.config.data_dirs[0].glob(f"{topic}_*/*.pylog")
        text: str = invoke("log", command, *args, str(file)).text
        return text

    assert log("grep", "t", "^b$", "-F", "%s\\n") == "b\n"
    assert log("grep", "t", "PLE") == ""
    assert log("dump", "u", "--decode", "auto", "-b", at, "-F", "%h %s\\n").endswith("=0 {}\n")


def test_retry_when_a_kept_message_has_an_envelope_then_hands_on_its_payload(
    invoke: Invoke, tmp_path: Path
) -> None:
    stored_payload = Envelope(1, "h", 1, 0).wrap(b"a")
    with RetryStore(tmp_path) as store:
        message = RetryMessage(TopicPartition("t", 0, 0), 0, 9, 0, stored_payload)
        store.add(message, attempts=1, next_attempt_ms=None, error="")

    (row,) = json.loads(invoke("retry", "list", str(tmp_path), "--output", "json").text)["data"]
    command = f"sh -c 'cat > {tmp_path}/out; echo {{size}} >> {tmp_path}/out'"
    invoke("retry", "drain", str(tmp_path), "--all", "--exec", command)

    assert (row["payload"], row["size"]) == ("a", 1)
    assert (tmp_path / "out").read_text() == "a1\n"


def test_produce_when_it_resumes_with_envelopes_then_leaves_out_what_is_sent(
    invoke: Invoke, consume: Callable[..., Result], at: str, tmp_path: Path
) -> None:
    where = ("produce", "t", "-b", at, "--envelope")
    receipt = str(tmp_path / "receipt")

    invoke(*where, "--receipt", receipt, stdin=b"a\nb\n")
    resumed = invoke(*where, "--resume", receipt, stdin=b"a\nb\nc\n")

    assert resumed.status == ExitStatus.OK, resumed.stderr
    assert consume().text == "a\nb\nc\n"


def test_produce_when_an_envelope_makes_a_message_too_large_then_names_it(
    invoke: Invoke, at: str
) -> None:
    result = invoke("produce", "t", "-b", at, "--envelope", "--max-size", "20", stdin=b"a\n")

    assert result.status == ExitStatus.USAGE
    assert "line 1" in result.stderr or "message 1" in result.stderr


def test_client_when_its_producer_has_envelopes_then_messages_have_time_and_headers(
    at: str,
) -> None:
    async def send_and_read() -> list[pylogctl.Message]:
        async with pylogctl.aconnect(at) as client:
            async with client.producer(envelope=True) as producer:
                await producer.send("t", "async")
            async with client.producer(envelope=None) as producer:  # the topic has no such setting
                await producer.send("t", "plain")
            return [one async for one in client.read("t")]

    with pylogctl.connect(at) as client:
        with client.producer(envelope=True) as producer:
            producer.send_many("t", ["a", "b"])
        read = list(client.read("t"))
        sampled = client.sample("t", 10)
    from_loop = asyncio.run(send_and_read())

    assert read == sampled == from_loop[:2]
    assert [one.text() for one in from_loop] == ["a", "b", "async", "plain"]
    a, b, other, plain = from_loop
    assert a.timestamp is not None and b.envelope is not None and other.envelope is not None
    assert abs((datetime.now(UTC) - a.timestamp).total_seconds()) < 3600
    assert dict(b.headers)["sequence"] == b"1"
    assert other.envelope.sequence == 0
    assert other.envelope.producer != b.envelope.producer
    assert (plain.timestamp, plain.headers, plain.envelope) == (None, (), None)


def test_gaps_when_sequences_lack_or_repeat_then_says_which(invoke: Invoke, at: str) -> None:
    def gaps(*args: str) -> Result:
        result: Result = invoke("audit", "gaps", "t", "-b", at, "--output", "json", *args)
        return result

    with pylogctl.connect(at) as client:
        client.send("t", "plain")
        assert gaps().status == ExitStatus.NOT_FOUND
        numbers = [0, 1, 5, 4, 4, 8]
        client.send_many("t", [Envelope(1, "web1", 5, one).wrap(b"x") for one in numbers])
        client.send_many("t", [Envelope(1, "web2", 6, one).wrap(b"x") for one in (7, 8)])

    result = gaps("--fail-above", "0")

    assert result.status == ExitStatus.THRESHOLD
    (row,) = json.loads(result.text)["data"]
    assert (row["host"], row["producer"], row["messages"]) == ("web1", "00000005", 6)
    assert (row["first"], row["last"], row["missing"]) == (0, 8, 4)
    assert (row["repeated"], row["gap"]) == (1, "2..3")
    assert "1 message without an envelope" in result.stderr
    assert len(json.loads(gaps("--all").text)["data"]) == 2
    assert gaps("--fail-above", "5").status == ExitStatus.OK


def test_audit_when_it_counts_by_envelopes_then_windows_are_those_of_their_time(
    invoke: Invoke, at: str
) -> None:
    invoke(
        *("produce", "t", "-b", at, "--envelope", "--audit", "audit:1h"),
        *("--time-field", "envelope"),
        stdin=b"a\nb\n",
    )
    with pylogctl.connect(at) as client:
        client.send("t", Envelope(1_000_000_000_000_000, "h", 1, 0).wrap(b"of another time"))

    result = invoke(
        *("audit", "check", "audit", "-b", at, "--count", "--time-field", "envelope", "--all"),
        *("--output", "json"),
    )

    (row,) = json.loads(result.text)["data"]
    assert (row["expected"], row["found"]) == (2, 2)


@pytest.mark.zookeeper
def test_producer_when_the_topic_asks_for_envelopes_then_has_them_and_groups_read_them(
    start_broker: Callable[..., Broker], zookeeper: str, invoke: Invoke, tmp_path: Path
) -> None:
    start_broker(zookeeper=zookeeper)
    with pylogctl.connect(zookeeper=zookeeper) as client:
        client.create_topic("t")
        client.set_settings({"envelope": True}, topic="t")
        assert client.settings(topic="t")["envelope"].value is True
        assert invoke("produce", "t", "-Z", zookeeper, stdin=b"command\n").status == ExitStatus.OK
        for envelope in (None, False):
            with client.producer(envelope=envelope) as producer:
                producer.send("t", f"client {envelope}")

        def read(name: str, **settings: Any) -> list[pylogctl.Message]:
            with client.group(name, "t", start="earliest", **settings) as group:
                return [group.poll(60) for _ in range(3)]  # type: ignore[misc]  # None fails below

        def run() -> list[pylogctl.Message]:
            handled: list[pylogctl.Message] = []

            def handle(message: pylogctl.Message) -> None:
                handled.append(message)
                if len(handled) == 3:
                    threading.Thread(target=group.close).start()

            with client.group("run", "t", start="earliest") as group:
                group.run(handle, retry=pylogctl.RetryPolicy(tmp_path / "retries"))
            return handled

        async def read_in_loop() -> list[pylogctl.Message]:
            async with (
                pylogctl.aconnect(zookeeper=zookeeper) as other,
                other.group("loop", "t", start="earliest") as group,
            ):
                return [await group.__anext__() for _ in range(3)]

        found = read("after")
        assert found == read("before", commit="before") == run() == asyncio.run(read_in_loop())
    assert [one.text() for one in found] == ["command", "client None", "client False"]
    assert [one.envelope is not None for one in found] == [True, True, False]


@pytest.mark.zookeeper
def test_produce_when_the_user_may_only_write_then_the_setting_holds_for_them_too(
    start_broker: Callable[..., Broker], zookeeper: str, invoke: Invoke
) -> None:
    broker = start_broker(zookeeper=zookeeper, enforces_rules=True, super_users="User:root")
    where = ("-Z", zookeeper)
    invoke("acl", "add", "User:ANONYMOUS", "describe", "cluster", *where)
    invoke("acl", "add", "User:ANONYMOUS", "create,write", "topic:t", *where)
    invoke("topic", "create", "t", *where)
    changed = invoke("config", "set", "--topic", "t", "envelope=true", *where)
    assert changed.status == ExitStatus.OK, changed.stderr
    assert invoke("acl", "remove", "1", *where).status == ExitStatus.OK

    sent = invoke("produce", "t", "-b", f"127.0.0.1:{broker.port}", stdin=b"a\n")

    assert sent.status == ExitStatus.OK, sent.stderr
    data = broker.config.data_dirs[0].joinpath("t_0", f"{0:020}.pylog").read_bytes()
    assert data.count(MAGIC) == 1


def test_produce_when_the_broker_is_of_07_then_sends_what_is_asked_for(
    broker_of_07: BrokerOf07, running_broker: Broker, invoke: Invoke
) -> None:
    where = ("-b", f"127.0.0.1:{broker_of_07.port}")

    plain = invoke("produce", "t", *where, stdin=b"a\n")
    wrapped = invoke("produce", "t", *where, "--envelope", stdin=b"b\n")

    assert (plain.status, wrapped.status) == (ExitStatus.OK, ExitStatus.OK), wrapped.stderr
    assert [open_envelope(one)[1] for one in stored(running_broker)] == [b"a", b"b"]

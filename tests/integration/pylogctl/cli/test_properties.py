"""`-X`: what commands make of properties, and that none is taken and then ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker import Broker, SimpleConsumer
from broker.config import BrokerConfig
from broker.consumer.config import ConsumerConfig
from broker.producer.config import ProducerConfig
from broker.properties import BaseConfig
from broker.protocol.compression import Codec
from broker.protocol.message_set import iter_messages
from pylogctl.cli.app import root
from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.help_page import CommandNode
from pylogctl.cli.properties import _USES
from pylogctl.cli.tree import describe
from tests.support.command_line import Invoke

ASYNC_ONLY = ["producer.type", "queue.size", "queue.time", "batch.size", "queue.enqueueTimeout.ms"]
KINDS: dict[str, type[BaseConfig]] = {
    "producer": ProducerConfig,
    "consumer": ConsumerConfig,
    "broker": BrokerConfig,
}


def dumped(invoke: Invoke, *args: str) -> dict[str, tuple[str, str]]:
    """Return value and origin by property."""
    rows = [line.split() for line in invoke(*args, "-X", "dump").text.splitlines()]
    return {row[0]: (" ".join(row[2:-1]), row[-1]) for row in rows}


def stored_codecs(broker: Broker) -> set[Codec]:
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        fetched = consumer.fetch("t", 0, 0, 1 << 20)
        return {message.codec for message in iter_messages(fetched.data, 0)}


@pytest.mark.parametrize("name", ASYNC_ONLY)
@pytest.mark.parametrize(
    "command", [("produce", "t"), ("perf", "produce", "t"), ("perf", "e2e", "t")]
)
def test_property_when_only_queues_have_it_then_is_refused_before_anything_is_sent(
    running_broker: Broker, invoke: Invoke, command: tuple[str, ...], name: str
) -> None:
    value = "async" if name == "producer.type" else "1"
    broker = f"127.0.0.1:{running_broker.port}"

    result = invoke(*command, "-b", broker, "-X", f"{name}={value}", stdin=b"a\n")

    assert result.status == ExitStatus.USAGE
    assert result.stderr.startswith(f"error: -X {name} has no effect here: ")
    assert invoke("topic", "list", "-b", broker, "--output", "name").text == ""


def test_property_when_refused_then_its_name_of_08_is_refused_too(invoke: Invoke) -> None:
    result = invoke("consume", "t", "-X", "group.id=g")

    assert result.status == ExitStatus.USAGE
    assert "-X group.id has no effect here: --group names the group" in result.stderr


def test_properties_when_dumped_then_one_given_by_its_name_of_08_has_its_origin(
    invoke: Invoke,
) -> None:
    found = dumped(invoke, "broker", "start", "-X", "log.segment.bytes=100")

    assert found["log.file.size"] == ("100", "-X")


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("produce", "t", "-X", "queue.time=5"), "--linger says how long"),
        (("produce", "t", "-X", "batch.size=5"), "--batch-messages says how many"),
        (("perf", "produce", "t", "-X", "batch.size=5"), "--batch says how many"),
        (("consume", "t", "-X", "groupid=g"), "--group names"),
        (("consume", "t", "-X", "autooffset.reset=fail"), "--offset says"),
        (("perf", "consume", "t", "-X", "rebalance.retries.max=1"), "no group is joined"),
        (("mirror", "run", "-X", "zk.connect=h:1"), "--from names"),
    ],
)
def test_property_when_it_has_no_effect_then_says_what_has(
    invoke: Invoke, args: tuple[str, ...], hint: str
) -> None:
    result = invoke(*args)

    assert result.status == ExitStatus.USAGE
    assert hint in result.stderr


def test_property_when_the_environment_sets_it_then_is_refused_as_well(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLOGCTL_X", "queue.time=5")
    assert invoke("produce", "t").status == ExitStatus.USAGE


def test_property_when_the_environment_sets_one_of_other_programs_then_each_takes_its_own(
    running_broker: Broker, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ("-b", f"127.0.0.1:{running_broker.port}")
    monkeypatch.setenv("PYLOGCTL_X", "port=1\nfetch.size=2048\nnum.retries=3")
    assert invoke("produce", "t", *at, stdin=b"a\n").status == 0
    assert invoke("consume", "t", *at, "-o", "start", "-e").text == "a\n"
    assert dumped(invoke, "produce")["num.retries"] == ("3", "PYLOGCTL_X")
    assert dumped(invoke, "consume")["fetch.size"] == ("2048", "PYLOGCTL_X")
    assert invoke("produce", "t", *at, "-X", "port=2").status == ExitStatus.USAGE
    monkeypatch.setenv("PYLOGCTL_X", "prot=1")
    assert invoke("produce", "t", *at).status == ExitStatus.USAGE


def test_property_when_it_says_what_is_so_then_is_taken(
    running_broker: Broker, invoke: Invoke
) -> None:
    broker = f"127.0.0.1:{running_broker.port}"
    assert (
        invoke("produce", "t", "-b", broker, "-X", "producer.type=sync", stdin=b"a\n").status == 0
    )


def test_uses_when_compared_with_the_tree_then_are_of_commands_and_properties_there_are() -> None:
    commands = {node.name.partition(" ")[2]: node for node in _walk()}
    for name, use in _USES.items():
        known = {prop.name for prop in KINDS[use.scope].PROPERTIES}
        assert any(option.name == "properties" for option in commands[name].options)
        assert set(use.refused) | set(use.defaults) <= known
    takers = {n for n, c in commands.items() if any(o.name == "properties" for o in c.options)}
    assert takers == set(_USES)


def _walk() -> list[CommandNode]:
    return list(describe(root()).walk())


@pytest.mark.parametrize(
    ("args", "name", "expected"),
    [
        (("produce",), "request.required.acks", ("auto", "default")),
        (("produce", "--receipt", "r"), "request.required.acks", ("-1", "default")),
        (("produce", "-X", "request.required.acks=0"), "request.required.acks", ("0", "-X")),
        (("produce", "-z", "gzip"), "compression.codec", ("gzip", "option")),
        (("produce", "--sync"), "max.in.flight.requests", ("1", "option")),
        (("produce", "--max-size", "1KiB"), "max.message.size", ("1024", "option")),
        (("produce", "--timeout", "3s"), "delivery.timeout.ms", ("3000", "option")),
        (("produce", "--timeout", "3s"), "socket.timeout.ms", ("30000", "default")),
        (("produce",), "zk.connect", ("localhost:2181", "default")),
        (("produce", "-b", "h:1"), "zk.connect", ("", "default")),
        (("produce", "-b", "h:1"), "broker.list", ("h:1", "option")),
        (("perf", "produce"), "request.required.acks", ("-1", "default")),
        (("perf", "produce", "-z", "gzip"), "compression.codec", ("gzip", "option")),
        (("perf", "consume", "-X", "fetch.size=2048"), "fetch.size", ("2048", "-X")),
        (("consume", "-X", "read.from=any"), "read.from", ("any", "-X")),
        (("consume",), "autocommit.interval.ms", ("10000", "default")),
        (("mirror", "run"), "autocommit.interval.ms", ("1000", "default")),
    ],
)
def test_dump_when_asked_for_then_shows_what_the_command_would_use(
    invoke: Invoke, args: tuple[str, ...], name: str, expected: tuple[str, str]
) -> None:
    assert dumped(invoke, *args)[name] == expected


def test_dump_when_a_receipt_is_asked_for_then_writes_none(invoke: Invoke, tmp_path: Path) -> None:
    dumped(invoke, "produce", "t", "--receipt", str(tmp_path / "receipt"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("asked", ["list", "dump"])
def test_properties_when_shown_then_without_those_that_are_refused(
    invoke: Invoke, asked: str
) -> None:
    shown = invoke("produce", "-X", asked, "--output", "name").text.split()
    assert "num.retries" in shown
    assert not set(ASYNC_ONLY) & set(shown)


@pytest.mark.parametrize(
    ("topics", "codecs"), [("t", {Codec.GZIP}), ("u, t", {Codec.GZIP}), ("u", {Codec.NONE})]
)
def test_compressed_topics_when_set_then_only_those_are(
    running_broker: Broker, invoke: Invoke, topics: str, codecs: set[Codec]
) -> None:
    args = ("-b", f"127.0.0.1:{running_broker.port}", "-z", "gzip")
    invoke("produce", "t", *args, "-X", f"compressed.topics={topics}", stdin=b"a\nb\n")
    assert stored_codecs(running_broker) == codecs


def test_reconnect_interval_when_set_then_connections_are_made_anew(
    running_broker: Broker, invoke: Invoke
) -> None:
    args = ("-b", f"127.0.0.1:{running_broker.port}", "--batch-messages", "1", "-vv")
    usual = invoke("produce", "t", *args, stdin=b"a\nb\nc\n").stderr.count(": hello, ")
    often = invoke("produce", "t", *args, "-X", "reconnect.interval=1", stdin=b"a\nb\nc\n")
    assert often.stderr.count(": hello, ") > usual


def test_broker_list_when_consuming_then_needs_no_registry(
    running_broker: Broker, invoke: Invoke
) -> None:
    broker = f"127.0.0.1:{running_broker.port}"
    invoke("produce", "t", "-b", broker, stdin=b"a\n")
    args = ("consume", "t", "--from-beginning", "-e", "-X", f"broker.list={broker}")
    assert invoke(*args).text == "a\n"
    assert invoke(*args, "-g", "g").stderr.startswith("error: --group needs a ZooKeeper")


@pytest.mark.parametrize("command", [("produce", "t"), ("consume", "t"), ("perf", "produce", "t")])
def test_registry_timeout_when_set_then_bounds_the_wait(
    invoke: Invoke, command: tuple[str, ...]
) -> None:
    args = ("-Z", "127.0.0.1:1", "-X", "zk.connectiontimeout.ms=300")
    result = invoke(*command, *args)
    assert result.status == ExitStatus.UNREACHABLE
    assert "within 0.3s" in result.stderr

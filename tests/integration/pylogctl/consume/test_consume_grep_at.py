"""`pylogctl consume --grep-at broker` gives what `--grep` gives, with less to send."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from broker import Broker, Codec
from broker.protocol.codec import encode
from broker.zk.session import Session
from tests.integration.pylogctl.consume.test_consume import at, damage, fill
from tests.integration.pylogctl.consume.test_consume_group import broker as broker
from tests.integration.pylogctl.consume.test_consume_group import consume as consume_in_group
from tests.integration.pylogctl.consume.test_consume_group import group as group
from tests.integration.pylogctl.consume.test_consume_group import publish as publish
from tests.integration.pylogctl.consume.test_consume_group import stored
from tests.integration.pylogctl.proxies import BrokerOf07
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

__all__ = ["broker", "consume_in_group", "group", "publish"]

Consume = Callable[..., Result]


@pytest.fixture(params=["our broker", "a broker of 0.7"])
def consume(
    request: pytest.FixtureRequest,
    running_broker: Broker,
    broker_of_07: BrokerOf07,
    invoke: Invoke,
) -> Consume:
    """Run `consume` to the end with the pattern matched at the broker."""
    address = at(running_broker) if request.param == "our broker" else broker_of_07.address

    def run(*args: str) -> Result:
        return invoke("consume", "-b", address, "-e", "--grep-at", "broker", *args)

    return run


@pytest.fixture
def consume_here(running_broker: Broker, invoke: Invoke) -> Consume:
    """Run `consume` to the end with the pattern matched by the command itself."""

    def run(*args: str) -> Result:
        return invoke("consume", "-b", at(running_broker), "-e", *args)

    return run


@pytest.fixture
def mixed(running_broker: Broker) -> None:
    """A topic of plain and compressed messages, many of which have an `a` in them."""
    numbers = random.Random(3)
    for codec in (Codec.NONE, Codec.GZIP, Codec.NONE, Codec.SNAPPY):
        payloads = [bytes(numbers.choices(b"abcAB\n", k=numbers.randrange(8))) for _ in range(100)]
        fill(running_broker, "t", payloads, codec=codec)


@pytest.mark.parametrize(
    "options",
    [
        ("--grep", "ab"),
        ("--grep", "^a.*b$", "-i"),
        ("--grep", "b", "--invert"),
        ("--grep", "a|b", "--invert", "-i"),
        ("--grep", "nothing of that kind"),
        ("--grep", ""),
        ("--grep", "a", "-n", "7"),
        ("--grep", "a", "-n", "150"),
        ("--grep", "a", "--skip", "3", "--sample", "1/4"),
        ("--grep", "a", "--where", "size>4", "--where", "codec==gzip"),
        ("--grep", "a", "-X", "fetch.size=50"),
        ("--grep", "a", "-F", "%o %s %k\\n"),
        ("--grep", "a", "--raw", "--order", "partition"),
    ],
)
def test_consume_when_the_broker_matches_writes_the_same(
    options: tuple[str, ...], mixed: None, consume: Consume, consume_here: Consume
) -> None:
    expected = consume_here("t", "--from-beginning", "--jsonl", *options[:2])
    found = consume("t", "--from-beginning", "--jsonl", *options[:2])
    assert (found.status, found.stdout, found.stderr) == expected[:3]

    expected = consume_here("t", "--from-beginning", *options)
    found = consume("t", "--from-beginning", *options)
    assert (found.status, found.stdout, found.stderr) == expected[:3]


def test_consume_when_a_range_is_given_and_the_broker_matches_writes_the_same(
    mixed: None, consume: Consume, consume_here: Consume
) -> None:
    lines = consume_here("t", "--from-beginning", "-F", "%o\\n").text.split()
    offsets = sorted({int(one) for one in lines})
    for start, end in ((0, 57), (20, 90), (50, 101), (99, 100), (100, 100)):
        spec = f"{offsets[start]}:{offsets[end]}"
        for grep in ("a", "A.*B"):
            args = ("t", "-o", spec, "--grep", grep, "-F", "%o %s\\n")
            assert consume(*args).stdout == consume_here(*args).stdout
    for spec in ("-150", "-50:-10"):
        wanted = ("t", "-o", spec, "--grep", "a", "--jsonl")
        assert consume(*wanted).stdout == consume_here(*wanted).stdout


def test_consume_when_the_broker_matches_then_what_does_not_match_is_not_sent(
    running_broker: Broker, consume_here: Consume
) -> None:
    def sent() -> int:
        return int(running_broker.status()["metrics"]["SocketServerStats"]["TotalBytesWritten"])

    fill(running_broker, "t", [b"no line of interest"] * 20_000 + [b"error"])
    args = ("t", "--from-beginning", "--grep", "error")
    before = sent()
    assert consume_here(*args).stdout == b"error\n"
    wait_until(lambda: sent() - before > 20_000 * 29, "the messages in the broker's count")
    between = sent()
    assert consume_here(*args, "--grep-at", "broker").stdout == b"error\n"
    assert sent() - between < 2000


def test_consume_when_a_message_is_corrupt_and_the_broker_matches_stops_at_it(
    running_broker: Broker, consume: Consume
) -> None:
    fill(running_broker, "t", [b"one", b"two", b"three"])
    damage(running_broker, 13 + 10)
    result = consume("t", "--from-beginning", "--grep", "e")
    assert (result.status, result.stdout) == (8, b"one\n")
    assert "t[0-0]: the message at 13 is invalid" in result.stderr
    result = consume("t", "--from-beginning", "--grep", "e", "--on-corrupt", "skip")
    assert (result.status, result.stdout) == (6, b"one\nthree\n")


@pytest.mark.parametrize(
    ("position", "bits"), [(13, 0x70), (16, 0x18), (17, 0x70)], ids=["long", "short", "magic"]
)
@pytest.mark.parametrize("how", [(), ("--on-corrupt", "skip"), ("-X", "fetch.size=8")])
def test_consume_when_damage_hides_what_follows_and_the_broker_matches_does_the_same(
    running_broker: Broker, consume: Consume, position: int, bits: int, how: tuple[str, ...]
) -> None:
    fill(running_broker, "t", [b"one", b"two", b"three", b"four", b"five"])
    damage(running_broker, position, bits)
    args = ("t", "--from-beginning", "--grep", "e", "--timeout", "60s", *how)
    found = consume(*args)
    assert found[:3] == consume(*args, "--grep-at", "consumer")[:3]
    assert found.stdout.startswith(b"one\n")
    assert found.status in (6, 8)


def test_consume_when_nothing_matches_and_nothing_comes_ends_after_the_idle_time(
    running_broker: Broker, invoke: Invoke
) -> None:
    fill(running_broker, "t", [b"a"] * 10)
    waits = ("-X", "fetch.wait.max.ms=20")
    base = ("consume", "t", "-b", at(running_broker), "--from-beginning", *waits)
    result = invoke(*base, "--grep", "b", "--grep-at", "broker", "--idle-timeout", "50ms")
    assert (result.status, result.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--grep", "a(b"), "missing ): a(b"),
        (("--grep", "x" * 1025), "a broker takes a pattern of 1024 bytes, and --grep has 1025"),
        ((), "--grep-at says where --grep is matched, which is not given"),
        (("--grep-at", "nowhere"), "'nowhere' is not one of 'consumer', 'broker'"),
    ],
)
def test_consume_when_the_broker_cannot_match_that_is_a_usage_error_before_any_connection(
    options: tuple[str, ...], reason: str, invoke: Invoke
) -> None:
    result = invoke("consume", "t", "-b", "127.0.0.1:1", "--grep-at", "broker", *options)
    assert result.status == 2
    assert reason in result.stderr


@pytest.mark.zookeeper
def test_consume_when_in_a_group_and_the_broker_matches_commits_what_was_left_out_too(
    publish: Callable[..., None],
    consume_in_group: Consume,
    session: Session,
    group: str,
) -> None:
    publish("t", [b"no", b"yes 1", b"no", b"yes 2", b"no"])
    publish("t", [b"no", b"no"], index=1)
    args = ("t", "--from-beginning", "--grep", "yes", "--grep-at", "broker")
    assert consume_in_group(*args).stdout == b"yes 1\nyes 2\n"
    end = len(encode([b"no"] * 3 + [b"yes 1"] * 2))
    assert stored(session, group, "t") == {"0-0": end, "0-1": len(encode([b"no"] * 2))}
    assert consume_in_group("t").stdout == b""


@pytest.mark.zookeeper
def test_consume_when_in_a_group_and_limited_and_the_broker_matches_commits_just_that(
    publish: Callable[..., None],
    consume_in_group: Consume,
    session: Session,
    group: str,
) -> None:
    publish("t", [b"no", b"yes 1", b"no", b"yes 2", b"no"])
    args = ("t", "--from-beginning", "-n", "1", "--grep", "yes", "--grep-at", "broker")
    assert consume_in_group(*args).stdout == b"yes 1\n"
    assert stored(session, group, "t")["0-0"] == len(encode([b"no", b"yes 1"]))
    assert consume_in_group("t", "--grep", "yes", "--grep-at", "broker").stdout == b"yes 2\n"

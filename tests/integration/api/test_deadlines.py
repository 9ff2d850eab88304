"""The time limits of calls, at brokers that hang: they accept connections and say nothing."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import pylogctl
from bench.broker_process import BrokerProcess
from broker import deadlines
from pylogctl.testing import Broker
from tests.support.waiting import wait_until

LIMIT_S = 1.5
GRACE_S = 15.0  # for a machine that does other things; without the limit it takes longer still


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    yield process
    process.kill()


@pytest.fixture
def broker(process: BrokerProcess) -> Iterator[BrokerProcess]:
    """A broker that a test can stop from doing anything."""
    yield process
    process.signal(signal.SIGCONT)


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[pylogctl.Client]:
    client = pylogctl.connect(f"127.0.0.1:{broker.port}", timeout=20)
    client.send("t", "first")
    yield client
    client.close(0)


def seconds_of(call: Callable[[], object], error: type[Exception] = pylogctl.TimedOut) -> float:
    """Return how long a call took until it failed."""
    started_s = time.monotonic()
    with pytest.raises(error):
        call()
    return time.monotonic() - started_s


CALLS: list[tuple[str, Callable[[pylogctl.Client], object]]] = [
    ("send", lambda c: c.send("t", "x", timeout=LIMIT_S)),
    ("send to a new topic", lambda c: c.send("new", "x", timeout=LIMIT_S)),
    ("send_many", lambda c: c.send_many("t", ["x", "y"], timeout=LIMIT_S)),
    ("read", lambda c: c.read("t", timeout=LIMIT_S)),
    ("read the end", lambda c: c.read("t", start="-1", timeout=LIMIT_S)),
    ("read_batches", lambda c: c.read_batches("t", timeout=LIMIT_S)),
    ("group", lambda c: c.group("g", "t", timeout=LIMIT_S)),
    ("producer", lambda c: c.producer().send("new", "x", timeout=LIMIT_S)),
    ("topics", lambda c: c.topics(timeout=LIMIT_S)),
    ("health", lambda c: c.health(timeout=LIMIT_S)),
    ("decommission", lambda c: c.decommission(0, timeout=LIMIT_S)),
    ("plan of decommission", lambda c: c.decommission(0, plan=True, timeout=LIMIT_S)),
    ("move_log", lambda c: c.move_log("t[0-0]", "elsewhere", timeout=LIMIT_S)),
]


@pytest.mark.parametrize("call", [call for _, call in CALLS], ids=[name for name, _ in CALLS])
def test_call_when_the_broker_hangs_then_it_ends_at_its_own_deadline(
    call: Callable[[pylogctl.Client], object], broker: BrokerProcess, client: pylogctl.Client
) -> None:
    broker.signal(signal.SIGSTOP)
    assert LIMIT_S * 0.9 <= seconds_of(lambda: call(client)) < LIMIT_S + GRACE_S


def test_connect_when_the_broker_hangs_then_it_ends_in_time(broker: BrokerProcess) -> None:
    broker.signal(signal.SIGSTOP)
    address = f"127.0.0.1:{broker.port}"
    assert seconds_of(lambda: pylogctl.connect(address, timeout=LIMIT_S)) < LIMIT_S + GRACE_S


def test_call_when_another_one_waits_for_the_hung_broker_then_it_does_not_wait_as_long(
    broker: BrokerProcess, client: pylogctl.Client
) -> None:
    broker.signal(signal.SIGSTOP)
    first = threading.Thread(target=client.topics)
    first.start()
    time.sleep(0.2)
    assert seconds_of(lambda: client.read("t", timeout=0.5)) < 0.5 + GRACE_S
    broker.signal(signal.SIGCONT)
    first.join(60)
    assert not first.is_alive()


def test_rebalance_when_brokers_hang_then_its_wait_for_members_does_not_begin(
    broker: BrokerProcess,
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        ports = [broker.port, *(silent.getsockname()[1] for silent in (one, other))]
        with pylogctl.connect([f"127.0.0.1:{port}" for port in ports], timeout=LIMIT_S) as client:
            broker.signal(signal.SIGSTOP)
            assert seconds_of(lambda: client.rebalance("g", wait=60)) < LIMIT_S + GRACE_S


def test_call_when_an_earlier_request_waits_for_the_broker_then_names_that_as_the_cause(
    broker: BrokerProcess, client: pylogctl.Client
) -> None:
    broker.signal(signal.SIGSTOP)
    held = threading.Thread(target=client.topics)
    held.start()

    def cause() -> str:
        with pytest.raises(pylogctl.TimedOut) as failed:
            client.topics(timeout=0.2)
        return str(failed.value)

    wait_until(lambda: "to an earlier request of this client" in cause(), "the true cause")
    broker.signal(signal.SIGCONT)
    held.join(60)


def test_reader_when_the_broker_hangs_then_the_iteration_ends_after_the_timeout(
    broker: BrokerProcess, client: pylogctl.Client
) -> None:
    reader = client.read("t", start="-1", stop=None, timeout=LIMIT_S)
    assert next(reader).topic == "t"
    broker.signal(signal.SIGSTOP)
    passed_s = seconds_of(lambda: next(reader))
    assert LIMIT_S * 0.4 <= passed_s < LIMIT_S + GRACE_S


def test_reader_when_no_message_comes_then_its_timeout_does_not_end_it(
    client: pylogctl.Client,
) -> None:
    # a pause of the machine is shorter than the timeout
    with client.read("t", start="end", stop=None, timeout=2.5) as reader:
        sender = threading.Timer(3.5, lambda: client.send("t", "late"))
        sender.start()
        assert next(reader).text() == "late"
        sender.join(60)


def test_timed_out_when_nothing_was_asked_for_yet_then_it_is_known_not_to_be_done(
    broker: BrokerProcess, client: pylogctl.Client
) -> None:
    broker.signal(signal.SIGSTOP)
    with pytest.raises(pylogctl.TimedOut) as queued:
        client.send("t", "x", timeout=0.3)
    with pytest.raises(TimeoutError) as before:
        client.send("new", "x", timeout=0.3)
    assert isinstance(before.value, pylogctl.TimedOut)
    assert (queued.value.outcome, before.value.outcome) == ("unknown", "not_done")


def test_client_when_the_broker_hangs_then_close_ends_in_time(broker: BrokerProcess) -> None:
    client = pylogctl.connect(f"127.0.0.1:{broker.port}", timeout=30)
    producer = client.producer(linger=60)
    producer.send("t", "x")
    producer.flush()
    broker.signal(signal.SIGSTOP)
    delivery = producer.send("t", "y")

    def ask() -> None:
        with suppress(pylogctl.Error):
            client.topics()

    other = threading.Thread(target=ask)
    other.start()
    time.sleep(0.1)
    assert seconds_of(lambda: client.close(1), pylogctl.DeliveryFailed) < 1 + 2 + GRACE_S
    assert client.closed
    assert isinstance(delivery.exception(10), pylogctl.Error)
    broker.signal(signal.SIGCONT)
    other.join(60)
    assert not other.is_alive()
    with pytest.raises(pylogctl.Closed):
        producer.send("t", "z")


def test_topics_when_one_of_the_brokers_hangs_then_another_one_tells(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, Broker() as broker:
        hung = f"127.0.0.1:{silent.getsockname()[1]}"
        with pylogctl.connect([hung, broker.address], timeout=20) as client:
            client.send("t", "x")
            assert [one.name for one in client.topics()] == ["t"]


def test_call_when_brokers_come_back_in_time_then_it_succeeds_and_without_retries_it_fails(
    tmp_path: Path,
) -> None:
    with Broker(data_dir=tmp_path) as broker:
        client = broker.connect(timeout=30)
        once = pylogctl.connect(broker.address, timeout=30, retries=0)
        client.send("t", "x")
        reader = client.read("t", stop=None)
        lost = once.read("t", stop=None)
        assert next(reader).text() == next(lost).text() == "x"
    assert seconds_of(lambda: once.read("t"), pylogctl.Unreachable) < GRACE_S
    assert seconds_of(lambda: next(lost), pylogctl.Unreachable) < GRACE_S
    assert seconds_of(lambda: once.send("t", "never"), pylogctl.Unreachable) < GRACE_S
    again: list[Broker] = []
    settings = {"port": str(broker.port)}
    start = threading.Timer(1, lambda: again.append(Broker(settings, data_dir=tmp_path)))
    start.start()
    try:
        assert [one.text() for one in client.read("t")] == ["x"]
        client.send("t", "y")
        assert next(reader).text() == "y"
    finally:
        start.join()
        once.close()
        client.close()
        again[0].close()


def test_limit_when_nested_then_the_shorter_one_holds_and_is_counted_from_its_start() -> None:
    with deadlines.Limit(5), deadlines.Limit(60) as inner:
        assert deadlines.left_s() <= 5
        inner.set_limit(1)
        assert deadlines.left_s() <= 1
        assert deadlines.outcome() == "not_done"
        deadlines.note_change()
        with deadlines.Limit(None):
            assert deadlines.outcome() == "unknown"
    assert deadlines.left_s() == float("inf")
    with deadlines.Limit(0), pytest.raises(pylogctl.Error):
        deadlines.sleep(1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"retries": -1}, ValueError), ({"retries": "1"}, TypeError), ({"client_id": 5}, TypeError)],
)
def test_connect_when_an_argument_is_wrong_then_says_which(
    arguments: dict[str, object], error: type[Exception], pylog_broker: Broker
) -> None:
    with pytest.raises(error, match=next(iter(arguments))):
        pylogctl.connect(pylog_broker.address, **arguments)  # type: ignore[arg-type]


def test_connect_when_given_a_client_id_then_requests_carry_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen: list[bytes] = []

        def listen() -> None:
            connection, _ = server.accept()
            with connection:
                seen.append(connection.recv(100))

        thread = threading.Thread(target=listen)
        thread.start()
        with pytest.raises(pylogctl.Error):
            pylogctl.connect(
                f"127.0.0.1:{server.getsockname()[1]}", timeout=2, client_id="orders-of-a-test"
            )
        thread.join(60)
    assert b"orders-of-a-test" in seen[0]

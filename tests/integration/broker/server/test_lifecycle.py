from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.errors import (
    AddressInUseError,
    BrokerError,
    BrokerStoppedError,
    ConfigError,
    LogLockedError,
    ShuttingDownError,
)
from broker.log.manager import LogManager
from broker.protocol.codec import decode, encode
from broker.protocol.extension_requests import ShutdownRequest
from broker.protocol.layouts import DATA
from broker.protocol.requests import FetchRequest, encode_request
from broker.protocol.responses import decode_read_response
from broker.server.broker import Broker
from broker.server.network.acceptor import listen
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, extension_frame, read_request
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
MARKER = ".pylog_clean_shutdown"
LONG_MS = 60_000


def descriptor_count() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def config(tmp_path: Path, **settings: object) -> BrokerConfig:
    defaults: dict[str, object] = {"port": 0, "data_dirs": (tmp_path / "data",), "num_threads": 2}
    return BrokerConfig(**(defaults | settings))  # type: ignore[arg-type]  # test settings by name


def in_background(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_stop_when_started_then_leaves_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    threads = set(threading.enumerate())  # those of earlier tests may end meanwhile
    descriptors = descriptor_count()
    for _ in range(5):
        broker = Broker(config(tmp_path))
        broker.start()
        with Peer(broker.port) as peer:
            peer.publish("events", ONE)
            peer.fetch("events", 0)
            peer.read("events", 0)
        broker.stop()
    assert set(threading.enumerate()) <= threads
    assert descriptor_count() <= descriptors


def test_stop_when_called_twice_then_does_nothing_more(
    running_broker: Broker, tmp_path: Path
) -> None:
    running_broker.stop()
    (tmp_path / "data" / MARKER).unlink()
    running_broker.stop()
    assert not (tmp_path / "data" / MARKER).exists()


def test_stop_when_never_started_then_does_nothing(tmp_path: Path) -> None:
    threads = set(threading.enumerate())  # those of earlier tests may end meanwhile
    Broker(config(tmp_path)).stop()
    assert set(threading.enumerate()) <= threads
    assert not (tmp_path / "data").exists()


def failing_configs(tmp_path: Path) -> dict[str, BrokerConfig]:
    (tmp_path / "file").touch()
    return {
        "data directory is a file": config(tmp_path, data_dirs=(tmp_path / "file",)),
        "data directory is below a file": config(tmp_path, data_dirs=(tmp_path / "file" / "data",)),
        "host is nobody's": config(tmp_path, host="no-such-host.invalid"),
        "host is another machine's": config(tmp_path, host="192.0.2.1"),
        "port is too large": config(tmp_path, port=70_000),
    }


@pytest.mark.parametrize(
    "case",
    [
        "data directory is a file",
        "data directory is below a file",
        "host is nobody's",
        "host is another machine's",
        "port is too large",
    ],
)
def test_stop_when_start_failed_then_works_and_leaves_nothing_behind(
    case: str, tmp_path: Path
) -> None:
    threads = set(threading.enumerate())  # those of earlier tests may end meanwhile
    descriptors = descriptor_count()
    broker = Broker(failing_configs(tmp_path)[case])
    with pytest.raises(BrokerError):
        broker.start()
    broker.stop()
    assert set(threading.enumerate()) <= threads
    assert descriptor_count() <= descriptors


def test_start_when_an_earlier_one_failed_then_data_directory_is_free(
    start_broker: BrokerFactory, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = Broker(config(tmp_path, port=taken.getsockname()[1]))
        with pytest.raises(AddressInUseError):
            broker.start()
    start_broker()


def test_start_when_port_is_taken_then_says_where_and_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            AddressInUseError,
            match=f"^cannot listen on 127.0.0.1:{port}: address already in use; choose another",
        ):
            Broker(config(tmp_path, port=port)).start()


def test_listen_when_address_is_not_of_this_machine_then_no_hint_at_the_port() -> None:
    with pytest.raises(
        AddressInUseError, match=r"^cannot listen on 192.0.2.1:0: [a-z ]+; choose another --host$"
    ):
        listen("192.0.2.1", 0, receive_bytes=0)


def test_listen_when_receive_buffer_is_given_then_sockets_have_it() -> None:
    with listen("127.0.0.1", 0, receive_bytes=100_000) as listener:
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 100_000


def test_start_when_data_directory_is_a_file_then_says_so(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(ConfigError, match=r"cannot write to data directory .*/data: "):
        Broker(config(tmp_path)).start()


def test_start_when_data_directory_is_in_use_then_names_the_process(
    running_broker: Broker, tmp_path: Path
) -> None:
    with pytest.raises(LogLockedError, match=f"in use by process {os.getpid()} \\(broker 0\\)"):
        Broker(config(tmp_path, broker_id=1)).start()


def test_start_when_data_directory_is_of_another_broker_then_names_it(
    running_broker: Broker, tmp_path: Path
) -> None:
    running_broker.stop()
    with pytest.raises(LogLockedError, match="belongs to broker 0, not to broker 1"):
        Broker(config(tmp_path, broker_id=1)).start()


def test_restart_when_stopped_before_then_clean_and_all_data_there(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    first = start_broker()
    connect(first).produce("events", ONE)
    connect(first).publish("events", b"")
    assert not (tmp_path / "data" / MARKER).exists()
    first.stop()
    assert (tmp_path / "data" / MARKER).exists()
    second = start_broker()
    assert second.status()["clean_start"] is True
    assert second.recoveries == []
    assert connect(second).fetch("events", 0) == (0, ONE)


def test_stop_when_data_is_unflushed_then_flushes_it(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    first = start_broker(flush_interval_ms=LONG_MS)
    peer = connect(first)
    peer.produce("events", ONE)
    peer.status()
    first.stop()
    assert connect(start_broker()).fetch("events", 0) == (0, ONE)


def test_stop_when_clients_are_connected_then_their_connections_end(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peers = [connect(running_broker) for _ in range(5)]
    for peer in peers:
        peer.status()
    running_broker.stop()
    assert all(peer.is_closed() for peer in peers)


def test_stop_when_reads_are_delayed_then_completes_them(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    peer.publish("events", ONE)
    peer.send_extension(read_request("events", len(ONE), max_wait_ms=LONG_MS))
    peer.send_extension(read_request("events", len(ONE), max_wait_ms=LONG_MS), 2)
    processors = running_broker.server.processors
    wait_until(lambda: sum(len(one.purgatory) for one in processors) == 2, "the reads")
    assert not peer.has_answer(0.05)
    running_broker.stop()
    for correlation_id in (1, 2):
        (part,) = decode_read_response(peer.receive_extension(correlation_id))
        assert (part.error, part.message_set) == (0, b"")
    with pytest.raises(BrokerStoppedError):
        peer.receive_extension()
    assert peer.is_closed()


@pytest.fixture
def held_flush_of_all(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Hold the shutdown at its step `flush` until the event is set."""
    may_flush = threading.Event()
    flush_all = LogManager.flush_all

    def flush_later(logs: LogManager) -> None:
        may_flush.wait(60)
        flush_all(logs)

    monkeypatch.setattr(LogManager, "flush_all", flush_later)
    return may_flush


def test_stop_when_it_has_come_to_the_flush_then_appends_are_refused_and_reads_served(
    running_broker: Broker, connect: PeerFactory, held_flush_of_all: threading.Event
) -> None:
    reader, producer = connect(running_broker), connect(running_broker)
    reader.publish("events", ONE)
    stopping = in_background(running_broker.stop)
    wait_until(lambda: running_broker.shutdown.refuses_appends, "the refusal of appends")
    refused = reader.publish("events", ONE)
    assert (refused.error, refused.text) == (ShuttingDownError.code, "broker 0 is shutting down")
    producer.produce("events", ONE)
    assert producer.is_closed()
    assert reader.fetch("events", 0) == (0, ONE)
    held_flush_of_all.set()
    stopping.join()


def test_shutdown_request_when_answered_then_tells_the_steps_and_closes_after_the_marker(
    running_broker: Broker, connect: PeerFactory, tmp_path: Path
) -> None:
    peer = connect(running_broker)
    peer.publish("events", ONE)
    peer.send_extension(ShutdownRequest(force=True))
    assert running_broker.wait_for_shutdown_request(20)
    stopping = in_background(running_broker.stop)
    steps = json.loads(DATA.decode(peer.receive_extension()))
    assert (tmp_path / "data" / MARKER).exists()
    assert [one["step"] for one in steps] == [
        "deregister",
        "refuse appends",
        "flush",
        "close connections",
        "close logs",
        "checkpoint",
        "marker",
    ]
    assert {(one["done"], one["note"]) for one in steps} == {(True, None)}
    assert all(one["seconds"] >= 0 for one in steps)
    assert peer.is_closed()
    stopping.join()


def test_shutdown_request_when_several_ask_then_all_are_answered_last_of_all(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the request is handled in the turn of the fetch before it, whose response is awaited
    monkeypatch.setattr("broker.server.requests.handlers.TURN_S", 60.0)
    peers = [connect(running_broker) for _ in range(3)]
    fetch = encode_request(FetchRequest("events", 0, 0, 10))
    for peer in peers:
        peer.send_bytes(fetch + extension_frame(ShutdownRequest(force=True)) + fetch)
    for peer in peers:
        assert peer.receive_fetched() == (0, b"")
    stopping = in_background(running_broker.stop)
    for peer in peers:
        assert json.loads(DATA.decode(peer.receive_extension()))[-1]["step"] == "marker"
        assert peer.is_closed()  # and what came behind is not answered any more
    stopping.join()


def test_shutdown_request_when_earlier_responses_are_not_taken_then_closed_without_one(
    start_broker: BrokerFactory, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # in a later turn the request would wait for the client to take the responses
    monkeypatch.setattr("broker.server.requests.handlers.TURN_S", 60.0)
    broker = start_broker()
    peer, other = connect(broker), connect(broker)
    large = encode([b"x" * 900_000])
    other.publish("events", large)
    fetch = encode_request(FetchRequest("events", 0, 0, len(large)))
    peer.send_bytes(fetch * 20 + extension_frame(ShutdownRequest(force=True)))
    assert broker.wait_for_shutdown_request(20)
    broker.stop()  # the client takes nothing meanwhile
    received = 0
    while part := peer.socket.recv(1 << 20):
        received += len(part)
    assert received < 20 * len(large)


def test_shutdown_request_when_its_client_leaves_then_the_broker_stops_all_the_same(
    running_broker: Broker, connect: PeerFactory, tmp_path: Path
) -> None:
    peer = connect(running_broker)
    peer.send_extension(ShutdownRequest(force=True))
    assert running_broker.wait_for_shutdown_request(20)
    peer.close()
    running_broker.stop()
    assert (tmp_path / "data" / MARKER).exists()


def send_unanswered(broker: Broker, client: Peer) -> None:
    """Send a 0.7 produce, and wait until the turn that handles it is over."""
    client.produce("events", ONE)
    wait_until(lambda: broker.status()["bytes"], "the append")
    assert client.fetch("events", 0)[0] == 0


def test_shutdown_request_when_not_forced_then_waits_for_clients_to_move_on(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.cluster.shutdown.QUIET_CLIENT_S", 1000.0)
    monkeypatch.setattr("broker.server.cluster.shutdown.MAX_CLIENT_WAIT_S", 1000.0)
    peer, client = connect(running_broker), connect(running_broker)
    send_unanswered(running_broker, client)
    peer.send_extension(ShutdownRequest(force=False))
    assert running_broker.wait_for_shutdown_request(20)
    stopping = in_background(running_broker.stop)
    for _ in range(20):
        client.produce("events", ONE)
        assert not client.has_answer(0.02)  # nor the end
    monkeypatch.setattr("broker.server.cluster.shutdown.QUIET_CLIENT_S", 0.05)
    steps = json.loads(DATA.decode(peer.receive_extension()))
    assert [one["step"] for one in steps] == [
        "deregister",
        "wait for clients",
        "refuse appends",
        "flush",
        "close connections",
        "close logs",
        "checkpoint",
        "marker",
    ]
    stopping.join()


def test_shutdown_request_when_clients_do_not_move_on_then_says_how_many(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.cluster.shutdown.QUIET_CLIENT_S", 1000.0)
    monkeypatch.setattr("broker.server.cluster.shutdown.MAX_CLIENT_WAIT_S", 0.05)
    peer, client = connect(running_broker), connect(running_broker)
    send_unanswered(running_broker, client)
    peer.send_extension(ShutdownRequest(force=False))
    assert running_broker.wait_for_shutdown_request(20)
    stopping = in_background(running_broker.stop)
    steps = json.loads(DATA.decode(peer.receive_extension()))
    assert steps[1]["note"] == "1 client still sends without acknowledgements"
    assert steps[1]["done"] is True
    stopping.join()


def test_shutdown_request_when_a_second_one_forces_then_clients_are_not_waited_for(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.cluster.shutdown.QUIET_CLIENT_S", 1000.0)
    monkeypatch.setattr("broker.server.cluster.shutdown.MAX_CLIENT_WAIT_S", 1000.0)
    client, patient, hasty = (connect(running_broker) for _ in range(3))
    send_unanswered(running_broker, client)
    patient.send_extension(ShutdownRequest(force=False))
    assert running_broker.wait_for_shutdown_request(20)
    stopping = in_background(running_broker.stop)
    assert not patient.has_answer(0.1)
    hasty.send_extension(ShutdownRequest(force=True))
    assert json.loads(DATA.decode(patient.receive_extension()))
    assert json.loads(DATA.decode(hasty.receive_extension()))
    stopping.join()


def test_stop_when_flushing_fails_then_the_rest_is_done_and_no_marker_written(
    start_broker: BrokerFactory,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    def refuse(fd: int) -> None:
        raise OSError(5, "Input/output error")

    broker = start_broker(flush_interval_ms=LONG_MS)  # else it may be flushed before
    peer = connect(broker)
    peer.produce("events", ONE)
    peer.status()
    (log,) = broker.logs.table.all()
    monkeypatch.setattr(log, "_disk", type(log._disk)(sync=refuse))
    peer.send_extension(ShutdownRequest(force=True))
    assert broker.wait_for_shutdown_request(20)
    stopping = in_background(broker.stop)
    steps = json.loads(DATA.decode(peer.receive_extension()))
    assert "cannot flush events[0-0]" in caplog.text
    assert not (tmp_path / "data" / MARKER).exists()
    failed = {one["step"]: one["note"] for one in steps if not one["done"]}
    assert list(failed) == ["flush", "close logs", "marker"]
    assert "cannot flush events[0-0]" in failed["flush"]
    assert "is not marked clean" in failed["marker"]
    assert peer.is_closed()
    stopping.join()


def test_stop_when_clients_publish_all_the_time_then_exactly_what_is_acknowledged_is_kept(
    start_broker: BrokerFactory,
) -> None:
    first = start_broker(num_threads=2)
    acknowledged: set[bytes] = set()

    def publish(client: int) -> None:
        with Peer(first.port) as peer:
            for number in range(1_000_000):
                payload = b"%d %d" % (client, number)
                try:
                    published = peer.publish("events", encode([payload]))
                except BrokerStoppedError:
                    return
                if published.error == 0:
                    acknowledged.add(payload)

    publishing = [threading.Thread(target=publish, args=(client,)) for client in range(4)]
    for thread in publishing:
        thread.start()
    wait_until(lambda: len(acknowledged) > 100, "a hundred sets")
    first.stop()
    for thread in publishing:
        thread.join()
    second = start_broker()
    assert second.status()["clean_start"] is True
    with Peer(second.port) as peer:
        found = [
            payload
            for _, _, payload in decode(peer.fetch("events", 0, max_bytes=1 << 28)[1], 0).messages
        ]
    assert sorted(found) == sorted(acknowledged)


def test_broker_when_listening_on_an_ipv6_address_then_serves_there(
    start_broker: BrokerFactory,
) -> None:
    try:
        broker = start_broker(host="::1")
    except AddressInUseError:
        pytest.skip("this machine has no IPv6")
    with socket.create_connection(("::1", broker.port), timeout=60) as sock:
        sock.sendall(encode_request(FetchRequest("events", 0, 0, 10)))
        assert sock.recv(6) == b"\0\0\0\2\0\0"


def test_address_when_listening_on_all_then_the_host_name_is_advertised(
    start_broker: BrokerFactory,
) -> None:
    broker = start_broker(host="0.0.0.0")
    assert broker.address().host == socket.gethostname()
    assert broker.address().port == broker.port


def test_address_when_a_host_name_is_set_then_it_is_advertised(
    start_broker: BrokerFactory,
) -> None:
    assert start_broker(hostname="logs.example").address().host == "logs.example"


def test_acceptor_when_out_of_descriptors_then_serves_on_when_there_are_some(
    running_broker: Broker,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer = connect(running_broker)
    peer.publish("events", ONE)
    failures = iter([24, 23, 105, 12])
    accept = socket.socket.accept

    def failing_accept(listener: socket.socket) -> tuple[socket.socket, object]:
        number = next(failures, None)
        if number is not None:
            raise OSError(number, os.strerror(number))
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", failing_accept)
    late = connect(running_broker)
    assert late.fetch("events", 0) == (0, ONE)
    assert caplog.text.count("cannot accept connections") == 1

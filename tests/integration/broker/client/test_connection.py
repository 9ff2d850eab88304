from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from broker import deadlines
from broker.client.connection import Connection, addresses_text, parse_broker_list
from broker.errors import (
    BrokerUnreachableError,
    InvalidTopicError,
    ProtocolError,
    RequestTimeoutError,
    UnknownTopicError,
)
from broker.protocol.client_requests import (
    HelloRequest,
    MetadataRequest,
)
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    StatusRequest,
)
from broker.protocol.framing import encode_frame
from broker.protocol.primitives import INT16, INT32
from broker.protocol.requests import FetchRequest, ProduceRequest
from broker.protocol.responses import (
    BrokerAddress,
    MetadataResponse,
    decode_fetch_response,
    encode_extension_error,
    encode_extension_response,
)
from broker.server.broker import Broker
from tests.doubles import FakeClock
from tests.integration.broker.factories import (
    BrokerFactory,
    ConnectionFactory,
    ServerFactory,
    address_of,
)
from tests.integration.broker.peers import (
    Server,
    answer_as_kafka,
    as_late_door_to,
    hang_up,
    say,
    stay_silent,
)
from tests.support.ports import port_of_its_own


def test_connect_when_nobody_listens_then_tries_again_and_says_how_often(
    open_connection: ConnectionFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    time = SimpleNamespace(monotonic=clock.monotonic_s, sleep=clock.advance)
    monkeypatch.setattr("broker.client.connection.time", time)
    address = BrokerAddress(-1, "127.0.0.1", port_of_its_own())
    connection = open_connection(address, connect_timeout_s=0.2)
    with pytest.raises(
        BrokerUnreachableError,
        match=r"^cannot reach 127.0.0.1:\d+: connection refused \([4-6] attempts in 0\.[12]s\)$",
    ):
        connection.connect()


@pytest.mark.parametrize(("left_s", "error"), [(0.02, "the call is over"), (1.5, "no answer")])
def test_connect_when_a_host_is_silent_then_is_unreachable_unless_the_call_had_no_time_to_tell(
    open_connection: ConnectionFactory, left_s: float, error: str
) -> None:
    with socket.socket() as listener, ExitStack() as crowd:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):  # more than wait to be accepted; whoever comes later hears nothing
            one = crowd.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        connection = open_connection(BrokerAddress(-1, *listener.getsockname()))
        with (
            pytest.raises((BrokerUnreachableError, RequestTimeoutError), match=error) as caught,
            deadlines.Limit(left_s),
        ):
            connection.connect()
    assert isinstance(caught.value, RequestTimeoutError) == (left_s < 0.1)


def test_connect_when_broker_id_is_known_then_named(open_connection: ConnectionFactory) -> None:
    connection = open_connection(
        BrokerAddress(3, "127.0.0.1", port_of_its_own()), connect_timeout_s=0.01
    )
    with pytest.raises(BrokerUnreachableError, match=r"^cannot reach broker 3 at 127.0.0.1:\d+: "):
        connection.connect()


def test_connect_when_host_is_unknown_then_gives_up_at_once(
    open_connection: ConnectionFactory,
) -> None:
    connection = open_connection(BrokerAddress(-1, "no-such-host.invalid", 9092))
    with pytest.raises(
        BrokerUnreachableError, match=r"no-such-host.invalid:9092: .*\(1 attempt in"
    ):
        connection.connect()


def test_connect_when_broker_comes_up_late_then_succeeds(
    start_broker: BrokerFactory, open_connection: ConnectionFactory
) -> None:
    port = port_of_its_own()
    connection = open_connection(BrokerAddress(-1, "127.0.0.1", port), connect_timeout_s=60.0)
    connecting = threading.Thread(target=connection.connect)
    connecting.start()
    start_broker(port=port)
    connecting.join()
    assert connection.is_open


def test_hello_when_broker_is_ours_then_tells_who_it_is(
    start_broker: BrokerFactory, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(address_of(start_broker(broker_id=6)))
    hello = connection.hello()
    assert hello is not None
    assert hello.broker_id == 6


def test_hello_when_asked_again_then_the_broker_is_not(
    running_broker: Broker, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(address_of(running_broker))
    first = connection.hello()
    running_broker.stop()
    connection.close()
    assert connection.hello() is first


def test_hello_when_broker_is_of_0_7_then_none_and_connection_is_of_use(
    old_broker: Server, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(old_broker.address)
    assert connection.hello() is None
    connection.send_request(FetchRequest("events", 0, 0, 100))
    assert decode_fetch_response(connection.receive())[0] == 0


def test_hello_when_broker_goes_down_meanwhile_then_not_taken_for_0_7(
    running_broker: Broker, start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    """A broker that is just going down closes the connection as well."""
    hung_up = threading.Event()

    def hang_up_once(sock: socket.socket) -> None:
        frame = sock.recv(1 << 16)
        if not hung_up.is_set():
            hung_up.set()
            return
        with socket.create_connection(("127.0.0.1", running_broker.port)) as upstream:
            upstream.sendall(frame)
            sock.sendall(upstream.recv(1 << 16))

    connection = open_connection(start_server(hang_up_once).address)
    hello = connection.hello()
    assert hung_up.is_set()
    assert hello is not None


def test_hello_when_a_proxy_has_closed_it_until_the_broker_was_there_then_not_taken_for_0_7(
    running_broker: Broker, start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    server = start_server(as_late_door_to(running_broker.port, closed_count=2))
    connection = open_connection(server.address)
    assert connection.hello() is not None


def test_hello_when_a_broker_is_silent_for_long_then_its_late_response_counts(
    running_broker: Broker, start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    def respond_after_the_end(sock: socket.socket) -> None:
        frame = sock.recv(1 << 16)
        assert sock.recv(1) == b""
        with socket.create_connection(("127.0.0.1", running_broker.port)) as upstream:
            upstream.sendall(frame)
            sock.sendall(upstream.recv(1 << 16))

    connection = open_connection(start_server(respond_after_the_end).address, timeout_s=60.0)
    assert connection.hello() is not None
    assert not connection.is_open


def test_hello_when_the_end_after_silence_closes_the_connection_then_not_taken_for_0_7(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    def wait_for_the_end(sock: socket.socket) -> None:
        while sock.recv(1 << 16):
            pass

    connection = open_connection(start_server(wait_for_the_end).address, timeout_s=1.0)
    with pytest.raises(RequestTimeoutError, match=r"did nothing for \d\S*s while waiting"):
        connection.hello()


def test_hello_when_a_slow_broker_of_0_7_closes_after_a_silence_then_taken_for_0_7(
    old_broker: Server,
    start_server: ServerFactory,
    open_connection: ConnectionFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.protocol.client_connection.SILENCE_S", 0.05)
    calm = threading.Event()

    def serve(sock: socket.socket) -> None:
        if not calm.is_set():
            stay_silent(sock)
            calm.set()
            return
        frame = sock.recv(1 << 16)
        with socket.create_connection(("127.0.0.1", old_broker.port)) as upstream:
            upstream.sendall(frame)
            sock.sendall(upstream.recv(1 << 16))

    connection = open_connection(start_server(serve).address)
    assert connection.hello() is None
    assert calm.is_set()


def test_hello_when_a_broker_is_of_a_later_kafka_then_says_so(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(start_server(answer_as_kafka).address)
    with pytest.raises(ProtocolError, match=r"is a broker of Kafka 0\.10 or later"):
        connection.hello()
    assert not connection.is_open


def test_hello_when_everything_is_closed_at_once_then_unreachable(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(start_server(hang_up).address)
    with pytest.raises(BrokerUnreachableError, match=r"it closed the connection|reset"):
        connection.hello()


@pytest.mark.parametrize(
    "banner",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"220 mail.example ESMTP\r\n",
        b"-ERR unknown command\r\n",
        b"+PONG\r\n",
        b"<html>",
    ],
)
def test_hello_when_something_else_answers_then_says_what_it_said(
    banner: bytes, start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(start_server(say(banner)).address)
    with pytest.raises(ProtocolError) as raised:
        connection.hello()
    assert str(raised.value) == (
        f"{connection.name} answered but does not speak the log protocol "
        f"(first bytes: '{banner[:4].decode()}')"
    )
    assert not connection.is_open


def test_hello_when_something_else_answers_in_control_bytes_then_shown_escaped(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(start_server(say(b"\xff\x00\x0d\x0a....")).address)
    with pytest.raises(ProtocolError, match=r"first bytes: '\\xff\\x00\\r\\n'"):
        connection.hello()


def test_receive_when_nothing_comes_in_time_then_timeout_and_closed(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(start_server(stay_silent).address, timeout_s=0.1)
    with pytest.raises(
        RequestTimeoutError, match=r"did nothing for \d\S*s while waiting for a response$"
    ):
        connection.hello()
    assert not connection.is_open


def test_receive_when_answer_stops_half_way_then_timeout(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    half = encode_frame(b"\0" * 100)[:50]
    connection = open_connection(start_server(say(half)).address, timeout_s=0.2)
    connection.send_request(FetchRequest("events", 0, 0, 100))
    with pytest.raises(RequestTimeoutError):
        connection.receive()


def test_receive_when_answers_of_all_sizes_come_at_once_then_each_is_whole(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    bodies = [bytes([n % 256]) * size for n, size in enumerate((2, 90_000, 7, 8_188, 8_192, 3, 2))]
    connection = open_connection(start_server(say(b"".join(map(encode_frame, bodies)))).address)
    connection.send_request(FetchRequest("events", 0, 0, 100))
    assert [bytes(connection.receive()) for _ in bodies] == bodies


def test_receive_when_closed_in_between_then_answers_left_over_are_forgotten(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    two = encode_frame(b"first") + encode_frame(b"second")
    connection = open_connection(start_server(say(two)).address)
    for _ in range(2):
        connection.send_request(FetchRequest("events", 0, 0, 100))
        assert bytes(connection.receive()) == b"first"
        connection.close()


def test_send_when_broker_takes_no_bytes_then_timeout(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    stopped = threading.Event()
    server = start_server(lambda sock: stopped.wait(60))
    connection = open_connection(server.address, timeout_s=0.2)
    request = ProduceRequest("events", 0, bytes(32 << 20))
    with pytest.raises(RequestTimeoutError, match="while sending"):
        connection.send_request(request)
    stopped.set()


def test_receive_when_not_connected_then_says_so(open_connection: ConnectionFactory) -> None:
    connection = open_connection(BrokerAddress(-1, "127.0.0.1", 1))
    with pytest.raises(BrokerUnreachableError, match=r"the connection to 127.0.0.1:1 is closed"):
        connection.receive()


def test_call_when_refused_then_error_and_connection_goes_on(
    running_broker: Broker, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(address_of(running_broker))
    with pytest.raises(InvalidTopicError, match="invalid topic name 'a/b'"):
        connection.call(CreateTopicRequest("a/b", 1))
    connection.call(StatusRequest())


def test_call_when_answer_is_to_another_request_then_error_and_closed(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    answer = encode_extension_response(99, b"")
    connection = open_connection(start_server(say(answer)).address)
    with pytest.raises(ProtocolError, match="the response to request 99 came where 1 was due"):
        connection.call(HelloRequest())
    assert not connection.is_open


def test_call_when_answer_is_too_short_then_error_and_closed(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(start_server(say(encode_frame(b"\0\0\0"))).address)
    with pytest.raises(ProtocolError):
        connection.call(HelloRequest())
    assert not connection.is_open


def test_call_when_error_code_is_known_then_its_exception(
    start_server: ServerFactory, open_connection: ConnectionFactory
) -> None:
    answer = encode_extension_error(1, UnknownTopicError.code, "no topic 'x'")
    connection = open_connection(start_server(say(answer)).address)
    with pytest.raises(UnknownTopicError, match=r"^no topic 'x'$"):
        connection.call(MetadataRequest(("x",)))


def test_connection_when_closed_then_next_request_connects_again(
    running_broker: Broker, open_connection: ConnectionFactory
) -> None:
    connection = open_connection(address_of(running_broker))
    connection.call(StatusRequest())
    connection.close()
    connection.close()
    assert MetadataResponse.decode(connection.call(MetadataRequest(None))).topics == ()


def test_connection_when_client_id_is_given_then_sent(start_server: ServerFactory) -> None:
    seen: list[bytes] = []
    server = start_server(lambda sock: seen.append(sock.recv(1 << 16)))
    connection = Connection(server.address, client_id="audit")
    with pytest.raises(BrokerUnreachableError):
        connection.call(HelloRequest())
    assert seen == [INT32.pack(15) + INT16.pack(64) + INT16.pack(0) + INT32.pack(1) + b"\0\5audit"]


def test_connection_when_made_to_itself_then_refused(
    open_connection: ConnectionFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port of the range for outgoing connections can happen to be its own peer."""

    def connect_to_itself(address: tuple[str, int], timeout_s: float) -> socket.socket:
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        sock.connect(sock.getsockname())
        return sock

    monkeypatch.setattr(socket, "create_connection", connect_to_itself)
    connection = open_connection(BrokerAddress(-1, "127.0.0.1", 9), connect_timeout_s=0.01)
    with pytest.raises(BrokerUnreachableError, match="connection refused"):
        connection.connect()


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("", []),
        ("localhost:9092", [(-1, "localhost", 9092)]),
        ("2:localhost:9092", [(2, "localhost", 9092)]),
        (" a:1 , 0:b:65535 ,", [(-1, "a", 1), (0, "b", 65535)]),
        ("[::1]:9092", [(-1, "::1", 9092)]),
        ("localhost,[::1]", [(-1, "localhost", 9092), (-1, "::1", 9092)]),
        ("7:[::1]:9092", [(7, "::1", 9092)]),
        ("::1,fe80::1%lo", [(-1, "::1", 9092), (-1, "fe80::1%lo", 9092)]),
    ],
)
def test_parse_broker_list_when_good_then_addresses(
    text: str, addresses: list[tuple[int, str, int]]
) -> None:
    assert parse_broker_list(text) == addresses


@pytest.mark.parametrize(
    "text",
    ["host:", ":9092", "host:0", "host:65536", "host:x", "9092", "http://host:9092", "tls://h"],
)
def test_parse_broker_list_when_malformed_then_names_the_item(text: str) -> None:
    with pytest.raises(ProtocolError, match=f"^'{text}' is no broker address"):
        parse_broker_list(f"good:1,{text}")


def test_addresses_text_when_given_addresses_then_a_list() -> None:
    assert addresses_text(parse_broker_list("a:1,2:b:3,::1")) == "a:1,b:3,[::1]:9092"

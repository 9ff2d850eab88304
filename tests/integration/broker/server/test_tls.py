"""TLS listeners of a broker, from raw sockets."""

from __future__ import annotations

import datetime
import os
import re
import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import cast

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from broker.protocol.client_requests import ClusterMetadataRequest
from broker.protocol.codec import encode
from broker.protocol.requests import FetchRequest, encode_request
from broker.protocol.responses import ClusterMetadataResponse
from broker.server.broker import Broker
from broker.server.network import connection, connections, handshakes, processor, tls_transport
from broker.server.network.handshakes import (
    MAX_HANDSHAKES,
    MAX_HANDSHAKES_PER_ADDRESS,
    RESERVED_HANDSHAKES,
)
from tests.integration.broker.server.peer import Peer, extension_frame, publish_request
from tests.support.certificates import Certificates
from tests.support.waiting import wait_until

ConnectTls = Callable[..., Peer]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls_broker(start_broker: Callable[..., Broker], certificates: Certificates) -> Broker:
    return start_broker(**certificates.settings())


@pytest.fixture
def connect_tls(certificates: Certificates) -> Iterator[ConnectTls]:
    """Connect to a broker's TLS listener; closed at the end."""
    peers: list[Peer] = []

    def make(broker: Broker, tls: ssl.SSLContext | None = None, receive_bytes: int = 0) -> Peer:
        peer = Peer(tls_port(broker), tls=tls or certificates.client(), receive_bytes=receive_bytes)
        peers.append(peer)
        return peer

    yield make
    for peer in peers:
        peer.close()


def tls_port(broker: Broker) -> int:
    (port,) = (one["port"] for one in broker.status()["listeners"] if one["tls"])
    return int(port)


def test_tls_when_messages_are_published_then_plain_and_tls_clients_read_the_same(
    tls_broker: Broker, connect_tls: ConnectTls
) -> None:
    secure = connect_tls(tls_broker)
    data = encode([os.urandom(5000) for _ in range(300)])

    assert secure.publish("events", data).error == 0

    with Peer(tls_broker.port) as plain:
        assert plain.fetch("events", 0, max_bytes=1 << 24) == (0, data)
    assert secure.fetch("events", 0, max_bytes=1 << 24) == (0, data)
    assert secure.read("events", 0, max_bytes=1 << 24).error == 0


def test_tls_when_a_slow_client_pipelines_then_each_response_comes_whole_and_in_order(
    tls_broker: Broker, connect_tls: ConnectTls
) -> None:
    client = connect_tls(tls_broker, receive_bytes=4096)
    data = encode([os.urandom(900_000)])
    for _ in range(3):
        assert client.publish("events", data).error == 0
    size = len(data)

    frames = [extension_frame(publish_request("events", data), number) for number in range(3)]
    client.send_bytes(b"".join(frames))
    for number in range(3):
        client.receive_extension(number)
    for number in range(6):
        assert client.fetch("events", number * size, max_bytes=size) == (0, data)


def test_metadata_when_a_client_comes_by_tls_then_has_the_tls_addresses_of_all_brokers(
    zookeeper: str,
    start_broker: Callable[..., Broker],
    certificates: Certificates,
    connect_tls: ConnectTls,
    tmp_path: Path,
) -> None:
    brokers = [
        start_broker(
            data_dir=tmp_path / str(number),
            broker_id=number,
            zookeeper=zookeeper,
            advertised_listeners=f"SECURE=broker-{number}.example:{9094 + number}",
            **certificates.settings(),
        )
        for number in (1, 2)
    ]
    secure = connect_tls(brokers[0])

    def addresses(peer: Peer) -> list[tuple[int, str, int]]:
        found = ClusterMetadataResponse.decode(peer.call(ClusterMetadataRequest(None)))
        return [(one.id, one.host, one.port) for one in found.brokers]

    expected = [(1, "broker-1.example", 9095), (2, "broker-2.example", 9096)]
    wait_until(lambda: addresses(secure) == expected, "broker 1 knowing both endpoints")
    with Peer(brokers[0].port) as plain:
        ports = enumerate((one.port for one in brokers), 1)
        assert addresses(plain) == [(number, "127.0.0.1", port) for number, port in ports]


def ends(sock: socket.socket) -> bool:
    """Read to the end; return True if the broker ends the connection, with an alert or without."""
    try:
        while sock.recv(1 << 16):
            pass
    except (ssl.SSLError, ConnectionError):
        return True
    return True


@pytest.mark.parametrize(
    ("first_bytes", "answer"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b""),
        (b"SSH-2.0-OpenSSH_9.6\r\n", b""),
        (encode_request(FetchRequest("events", 0, 0, 1000)), b""),
        (b"\0", b""),
        (extension_frame(ClusterMetadataRequest(None), 1), b"\x15\x03\x03\0\2\2\x46"),
    ],
)
def test_tls_port_when_a_client_does_not_speak_tls_then_is_closed_and_the_log_says_so(
    tls_broker: Broker, first_bytes: bytes, answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_connection(("127.0.0.1", tls_port(tls_broker)), 60) as client:
        client.sendall(first_bytes)
        assert client.recv(1 << 16) == answer
        assert ends(client)

    assert "it does not speak TLS, which listener SECURE demands" in caplog.text


def test_plain_port_when_a_client_speaks_tls_then_is_closed_and_the_log_says_so(
    tls_broker: Broker, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Peer(tls_broker.port, tls=certificates.client())

    assert "it speaks TLS, and this listener is plain" in caplog.text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_when_a_client_knows_old_versions_only_then_is_refused(
    tls_broker: Broker,
    certificates: Certificates,
    version: ssl.TLSVersion,
    caplog: pytest.LogCaptureFixture,
) -> None:
    old = certificates.client()
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = version

    with pytest.raises((ssl.SSLError, ConnectionError)):
        Peer(tls_port(tls_broker), tls=old)

    wait_until(lambda: "1.2 is the least here" in caplog.text, "the log telling it")


@pytest.mark.parametrize("ciphers", ["eNULL:@SECLEVEL=0", "aNULL:@SECLEVEL=0"])
def test_tls_when_a_client_wants_no_encryption_then_is_refused(
    tls_broker: Broker, certificates: Certificates, ciphers: str
) -> None:
    weak = certificates.client()
    weak.maximum_version = ssl.TLSVersion.TLSv1_2
    weak.set_ciphers(ciphers)

    with pytest.raises((ssl.SSLError, ConnectionError)):
        Peer(tls_port(tls_broker), tls=weak)


@pytest.mark.parametrize(("version", "commands"), [("-tls1_2", "R\n"), ("-tls1_3", "K\n" * 1000)])
def test_tls_when_a_client_renegotiates_or_updates_keys_then_others_are_served(
    tls_broker: Broker, connect_tls: ConnectTls, version: str, commands: str
) -> None:
    where = f"127.0.0.1:{tls_port(tls_broker)}"
    run = subprocess.run(
        ["openssl", "s_client", "-connect", where, version],
        input=commands,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert "CONNECTED" in run.stdout
    assert connect_tls(tls_broker).publish("events", encode([b"x"])).error == 0


def client_hello() -> bytes:
    """Return the first record of a client."""
    outgoing = ssl.MemoryBIO()
    hello = ssl.create_default_context().wrap_bio(
        ssl.MemoryBIO(), outgoing, server_hostname="localhost"
    )
    with suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    return outgoing.read()


def test_tls_when_many_handshakes_stop_half_way_then_few_are_under_way_and_others_are_served(
    tls_broker: Broker, certificates: Certificates
) -> None:
    (processor,) = tls_broker.server.processors  # of which there is one
    under_way = processor._connections._handshakes._under_way
    hello = client_hello()
    with ExitStack() as closing:
        stopped = []
        for number in range(200):
            client = socket.create_connection(("127.0.0.1", tls_port(tls_broker)), 60)
            stopped.append(closing.enter_context(client))
            client.sendall(hello[: (0, 5, len(hello))[number % 3]])
        wait_until(
            lambda: len(under_way) == MAX_HANDSHAKES_PER_ADDRESS,
            "as many being under way as an address may have",
        )
        with Peer(tls_port(tls_broker), tls=certificates.client(), address="127.0.0.2") as other:
            assert other.publish("events", encode([b"x"])).error == 0
        assert len(under_way) <= MAX_HANDSHAKES_PER_ADDRESS
        for client in stopped:
            client.close()
        with Peer(tls_port(tls_broker), tls=certificates.client()) as same:  # its turn comes
            assert same.publish("events", encode([b"x"])).error == 0
    wait_until(lambda: tls_broker.status()["connections"] == 0, "all being closed")
    assert not under_way


@pytest.fixture
def open_many() -> Iterator[Callable[[int, bytes], None]]:
    """Connect to a port from more addresses than there are places, and send some bytes."""
    with ExitStack() as closing:

        def open_all(port: int, data: bytes) -> None:
            for number in range(MAX_HANDSHAKES + RESERVED_HANDSHAKES):
                source = f"127.1.{number >> 8}.{number & 255 or 1}", 0
                client = socket.create_connection(("127.0.0.1", port), 60, source)
                closing.enter_context(client).sendall(data)

        yield open_all


@pytest.mark.parametrize("says_hello", [False, True])
def test_tls_when_clients_of_very_many_addresses_go_silent_then_others_get_in(
    says_hello: bool,
    tls_broker: Broker,
    connect_tls: ConnectTls,
    open_many: Callable[[int, bytes], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(connection, "HANDSHAKE_S", 3600.0)  # it must not need their end
    open_many(tls_port(tls_broker), client_hello() if says_hello else b"")

    assert connect_tls(tls_broker).publish("events", encode([b"x"])).error == 0
    assert caplog.text.count("places for TLS handshakes are taken") == says_hello


def test_tls_when_all_places_are_taken_then_the_listener_of_brokers_has_more(
    start_broker: Callable[..., Broker],
    certificates: Certificates,
    open_many: Callable[[int, bytes], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "HANDSHAKE_S", 3600.0)
    monkeypatch.setattr(handshakes, "SCARCE_S", 3600.0)
    broker = start_broker(
        **certificates.settings(
            listeners="OUTER=tls://127.0.0.1:0,INTERNAL=tls://127.0.0.1:0",
            inter_broker_listener="INTERNAL",
        )
    )
    ports = {one["name"]: one["port"] for one in broker.status()["listeners"]}
    open_many(ports["OUTER"], client_hello())

    with Peer(ports["INTERNAL"], tls=certificates.client()) as of_a_broker:
        assert of_a_broker.publish("events", encode([b"x"])).error == 0


@pytest.mark.parametrize("failing", ["TlsTransport", "ServerConnection", "_register"])
def test_tls_when_the_start_of_a_handshake_fails_by_a_bug_then_only_its_connection_closes(
    failing: str,
    tls_broker: Broker,
    connect_tls: ConnectTls,
    expects_bugs: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = connect_tls(tls_broker)
    (processor,) = tls_broker.server.processors
    places = {
        "TlsTransport": tls_transport,
        "ServerConnection": connections,
        "_register": processor._connections,
    }

    def fail(*args: object, **options: object) -> None:
        raise ZeroDivisionError

    with (
        monkeypatch.context() as patch,
        socket.create_connection(("127.0.0.1", tls_port(tls_broker)), 60) as client,
    ):
        patch.setattr(places[failing], failing, fail)
        client.sendall(client_hello())
        assert ends(client)

    assert other.publish("events", encode([b"x"])).error == 0
    assert "failed, and goes on" not in caplog.text
    wait_until(lambda: tls_broker.status()["connections"] == 1, "its place being free")


def test_tls_when_a_client_sends_nothing_then_is_closed_after_a_while(
    tls_broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_S", 0.2)
    monkeypatch.setattr(processor, "_SWEEP_INTERVAL_S", 0.05)
    tls_broker.server.processors[0]._next_sweep_s = 0.0
    address = "127.0.0.1", tls_port(tls_broker)
    with (
        socket.create_connection(address, 60) as client,
        socket.create_connection(address, 60),  # which ends the processor's wait
    ):
        assert ends(client)

    assert "no TLS handshake in 0.2s" in caplog.text


def test_tls_when_a_client_says_hello_slowly_then_its_handshake_ends_after_a_while(
    tls_broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "HANDSHAKE_S", 0.2)
    monkeypatch.setattr(processor, "_SWEEP_INTERVAL_S", 0.05)
    tls_broker.server.processors[0]._next_sweep_s = 0.0
    with socket.create_connection(("127.0.0.1", tls_port(tls_broker)), 60) as client:
        hello = iter(client_hello())
        while not select.select([client], [], [], 0.01)[0]:
            client.sendall(bytes([next(hello)]))
        assert ends(client)

    assert "its TLS handshake was not complete within 0.2s" in caplog.text


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        # fragments of a hello of 128 KiB, each in a record of its own
        (
            b"\x16\x03\x01\x40\x00\x01\xff\xff\xff"
            + bytes(0x3FFC)
            + (b"\x16\x03\x01\x40\x00" + bytes(0x4000)) * 64,
            "with it failed|has more than 65536 bytes",
        ),
        (b"\x16\x03\x01\x48\x01" + bytes(0x4801), "with it failed"),
    ],
)
def test_tls_when_a_handshake_is_too_long_then_is_refused(
    tls_broker: Broker, data: bytes, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_connection(("127.0.0.1", tls_port(tls_broker)), 60) as client:
        with suppress(ConnectionError):
            client.sendall(data)
        assert ends(client)

    wait_until(lambda: re.search(sentence, caplog.text) is not None, "the log telling it")


def test_publish_when_the_connection_ends_without_tls_ending_then_nothing_of_it_is_appended(
    tls_broker: Broker, connect_tls: ConnectTls
) -> None:
    client = connect_tls(tls_broker)
    client.publish("events", encode([b"before"]))
    frame = extension_frame(publish_request("events", encode([bytes(100_000)])))
    client.send_bytes(frame[:-1])
    raw = socket.socket(fileno=client.socket.detach())
    raw.settimeout(60)
    raw.shutdown(socket.SHUT_WR)

    assert ends(raw)
    raw.close()
    assert connect_tls(tls_broker).fetch("events", 0) == (0, encode([b"before"]))


def test_tls_when_a_client_ends_it_then_the_requests_before_are_answered(
    tls_broker: Broker, connect_tls: ConnectTls
) -> None:
    client = connect_tls(tls_broker)
    client.make_topics(["events"])
    client.send_extension(publish_request("events", encode([b"last"])))
    secure = cast(ssl.SSLSocket, client.socket)
    secure.settimeout(60)
    assert client.receive_extension() is not None
    secure.unwrap()

    assert connect_tls(tls_broker).fetch("events", 0) == (0, encode([b"last"]))


def test_broker_when_it_stops_then_tls_clients_get_their_last_answer_and_the_end_of_tls(
    tls_broker: Broker, connect_tls: ConnectTls
) -> None:
    client = connect_tls(tls_broker)
    assert client.publish("events", encode([b"x"])).error == 0
    tls_broker.stop()

    assert client.receive()  # that the broker is shutting down
    assert client.socket.recv(1) == b""


def test_tls_when_a_session_is_resumed_then_the_whole_handshake_is_done(
    tls_broker: Broker, certificates: Certificates
) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = certificates.client()
        context.minimum_version = context.maximum_version = version
        with Peer(tls_port(tls_broker), tls=context) as first:
            first.publish("events", b"")
            session = cast(ssl.SSLSocket, first.socket).session
        raw = socket.create_connection(("127.0.0.1", tls_port(tls_broker)), 60)
        with context.wrap_socket(raw, server_hostname="localhost", session=session) as again:
            assert session is None or not session.has_ticket
            assert not again.session_reused


def identity_of(broker: Broker) -> str:
    """Return whom the broker takes its only client for."""
    wait_until(lambda: len(broker.server.connections) == 1, "the client being served")
    return str(broker.server.connections[0].client.authentication.identity)


@pytest.fixture
def mutual_broker(start_broker: Callable[..., Broker], certificates: Certificates) -> Broker:
    """A broker that requires certificates of its clients."""
    return start_broker(
        **certificates.settings(ssl_client_auth="required", ssl_ca=certificates.ca_file)
    )


@pytest.mark.parametrize("common_name", ["alice", "Smith, Alice", "Zo\u00eb+1"])
def test_client_when_its_certificate_is_verified_then_is_the_user_that_the_subject_names(
    mutual_broker: Broker, certificates: Certificates, connect_tls: ConnectTls, common_name: str
) -> None:
    leaf = certificates.ca.issue_cert(
        "alice@example.org",
        common_name=common_name,
        organization_name="Example",
        organization_unit_name="logs",
    )
    client = connect_tls(mutual_broker, certificates.client(leaf))

    assert client.publish("events", encode([b"x"])).error == 0
    escaped = common_name.replace(",", "\\,").replace("+", "\\+")
    assert identity_of(mutual_broker) == f"User:CN={escaped},OU=logs,O=Example"


def test_client_when_rules_map_its_subject_then_is_the_user_they_name(
    start_broker: Callable[..., Broker], certificates: Certificates, connect_tls: ConnectTls
) -> None:
    broker = start_broker(
        **certificates.settings(
            ssl_client_auth="requested",
            ssl_ca=certificates.ca_file,
            ssl_principal_rules=r"RULE:^CN=([^,]+),.*$/$1/L",
        )
    )
    leaf = certificates.ca.issue_cert("a@example.org", common_name="ALICE")
    with Peer(tls_port(broker), tls=certificates.client(leaf)) as client:
        client.publish("events", b"")
        assert identity_of(broker) == "User:alice"
    wait_until(lambda: not broker.server.connections, "the client having left")

    connect_tls(broker).publish("events", b"")  # without a certificate
    assert identity_of(broker) == "User:ANONYMOUS"


NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


def signed(
    ca: trustme.CA | None = None, *, name: str = "a", usage: x509.ObjectIdentifier | None = None
) -> trustme.LeafCert:
    """Return a client's certificate, of what trustme does not make; signed by itself without CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder(
        subject if ca is None else x509.load_pem_x509_certificate(ca.cert_pem.bytes()).subject,
        subject,
        key.public_key(),
        x509.random_serial_number(),
        NOW - DAY,
        NOW + DAY,
    )
    if usage is not None:
        made = made.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    ca_key = key if ca is None else load_pem_private_key(ca.private_key_pem.bytes(), None)
    certificate = made.sign(cast(ec.EllipticCurvePrivateKey, ca_key), hashes.SHA256())
    pem = Encoding.PEM
    return trustme.LeafCert(
        key.private_bytes(pem, PrivateFormat.PKCS8, NoEncryption()),
        certificate.public_bytes(pem),
        [],
    )


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda ca: None, "it shows no certificate, which this listener requires"),
        (lambda ca: trustme.CA().issue_cert("a@example.org"), "its certificate is refused"),
        (lambda ca: ca.issue_cert("a@example.org", not_after=NOW - DAY), "has expired"),
        (
            lambda ca: ca.issue_cert(
                "a@example.org", not_before=NOW + DAY, not_after=NOW + 2 * DAY
            ),
            "is not yet valid",
        ),
        (lambda ca: signed(), "its certificate is refused: self-signed certificate"),
        (lambda ca: signed(ca, usage=ExtendedKeyUsageOID.SERVER_AUTH), "unsuitable certificate"),
    ],
    ids=["none", "other CA", "expired", "future", "self-signed", "for servers only"],
)
def test_tls_when_the_client_shows_no_good_certificate_then_is_refused_and_the_log_says_why(
    mutual_broker: Broker,
    certificates: Certificates,
    make: Callable[[trustme.CA], trustme.LeafCert | None],
    sentence: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = certificates.client(make(certificates.ca))

    with (
        pytest.raises((ssl.SSLError, ConnectionError, EOFError)),
        Peer(tls_port(mutual_broker), tls=context) as client,
    ):
        client.publish("events", encode([b"x"]))

    wait_until(lambda: sentence in caplog.text, "the log telling it")
    assert mutual_broker.status()["topics"] == 0


@pytest.mark.parametrize("name", ["alice,CN=root", "alice\0.example", "alice\nroot", "a+CN=root"])
def test_client_when_its_name_has_characters_of_subjects_then_is_one_escaped_user(
    mutual_broker: Broker, certificates: Certificates, name: str
) -> None:
    tls = certificates.client(signed(certificates.ca, name=name))
    with Peer(tls_port(mutual_broker), tls=tls) as client:
        client.publish("events", b"")
        who = identity_of(mutual_broker)
    assert who.startswith("User:CN=a")
    assert not re.search(r"(?<!\\)[,+]|[\0\n]", who)


def shown_certificate(broker: Broker, certificates: Certificates) -> bytes:
    with Peer(tls_port(broker), tls=certificates.client()) as client:
        return cast(ssl.SSLSocket, client.socket).getpeercert(True) or b""


def test_certificate_when_its_files_change_then_is_used_by_new_connections(
    start_broker: Callable[..., Broker],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    certificates = Certificates(tmp_path)
    broker = start_broker(**certificates.settings())
    first = shown_certificate(broker, certificates)
    with Peer(tls_port(broker), tls=certificates.client()) as open_before:
        for key_type in (trustme.KeyType.RSA, trustme.KeyType.ECDSA):
            leaf = certificates.ca.issue_cert("localhost", key_type=key_type)
            certificates.write_key(leaf)  # the half of it
            broker.reload_certificates()
            wait_until(lambda: "loaded before stays in use" in caplog.text, "the log telling it")
            assert shown_certificate(broker, certificates) == first

            certificates.write(leaf)
            broker.reload_certificates()
            wait_until(
                lambda known=first: shown_certificate(broker, certificates) != known,  # type: ignore[misc]  # a default
                "the new certificate being shown",
            )
            first = shown_certificate(broker, certificates)
            caplog.clear()

        certificates.certificate.write_text("garbage")
        broker.reload_certificates()
        wait_until(lambda: "loaded before stays in use" in caplog.text, "the log telling it")
        assert shown_certificate(broker, certificates) == first
        assert open_before.publish("events", encode([b"x"])).error == 0


def test_certificate_when_replaced_again_and_again_then_all_who_connect_meanwhile_get_in(
    start_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path)
    broker = start_broker(**certificates.settings())
    kinds = (trustme.KeyType.RSA, trustme.KeyType.ECDSA)
    leaves = [certificates.ca.issue_cert("localhost", key_type=kind) for kind in kinds]
    context, is_over = certificates.client(), threading.Event()
    counts = [0] * 3

    def connect_on(number: int) -> None:
        while not is_over.is_set():
            with Peer(tls_port(broker), tls=context) as peer:
                assert peer.publish("events", encode([b"x"])).error == 0
            counts[number] += 1

    with ThreadPoolExecutor() as threads:
        clients = [threads.submit(connect_on, number) for number in range(3)]
        try:
            for number in range(10):
                before = shown_certificate(broker, certificates)
                certificates.write(leaves[number % 2])
                broker.reload_certificates()
                wait_until(
                    lambda known=before: shown_certificate(broker, certificates) != known,  # type: ignore[misc]  # a default
                    "the new certificate being shown",
                )
            wait_until(
                lambda: min(counts) > 1 or any(one.done() for one in clients),
                "two connections of each client",
            )
        finally:
            is_over.set()
        for one in clients:
            one.result(60)
    assert min(counts) > 1


@pytest.mark.parametrize(
    ("left", "sentence"),
    [
        (datetime.timedelta(days=20), "expires at"),
        (datetime.timedelta(hours=3), "expires at"),
        (-datetime.timedelta(hours=3), "expired at"),
    ],
)
def test_certificate_when_it_ends_soon_then_the_log_warns_and_the_metric_has_the_days(
    start_broker: Callable[..., Broker],
    tmp_path: Path,
    left: datetime.timedelta,
    sentence: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    certificates = Certificates(tmp_path)
    certificates.write(
        certificates.ca.issue_cert("localhost", not_before=NOW - 9 * DAY, not_after=NOW + left)
    )
    broker = start_broker(**certificates.settings())

    assert f"the certificate of {certificates.certificate} {sentence}" in caplog.text
    requests = broker.status()["metrics"]["SocketServerStats"]
    assert requests["CertificateDaysLeft"] == pytest.approx(left / DAY, abs=0.1)
    assert broker.status()["certificate"]["not_after_ms"] == pytest.approx(
        1000 * (NOW + left).timestamp(), abs=2000
    )


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_replication_when_brokers_reach_each_other_by_tls_only_then_messages_are_copied(
    zookeeper: str,
    start_broker: Callable[..., Broker],
    certificates: Certificates,
    tmp_path: Path,
    client_auth: str,
) -> None:
    settings = certificates.settings(
        port=-1, ssl_client_auth=client_auth, ssl_ca=certificates.ca_file
    )
    brokers = [
        start_broker(
            data_dir=tmp_path / str(number),
            broker_id=number,
            zookeeper=zookeeper,
            default_replication_factor=2,
            min_insync_replicas=2,
            **settings,
        )
        for number in (1, 2)
    ]
    leaf = certificates.ca.issue_cert("localhost", common_name="alice")

    def is_published() -> bool:  # once the topic is made, and both are in sync
        with Peer(tls_port(brokers[0]), tls=certificates.client(leaf)) as client:
            return client.publish("events", encode([b"x"])).error == 0

    wait_until(is_published, "both replicas having the message")

"""A ZooKeeper that speaks TLS only, as sessions, brokers, commands and programs meet it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

import pylogctl
from broker.errors import ConfigError, RegistryAccessError, RegistryUnreachableError
from broker.security.client_security import TlsFiles
from broker.zk.security import ZooKeeperCredential, ZooKeeperSecurity, security_in
from broker.zk.session import Session
from broker.zk.tls import TlsHandler
from pylogctl.cli.environment import ExitStatus
from pylogctl.testing.brokers import Broker
from tests.support.command_line import Invoke, Spawn
from tests.support.secure_zookeeper import SUPER_PASSWORD, SecureZooKeeper
from tests.support.secure_zookeeper import secure_zookeeper as secure_zookeeper
from tests.support.secure_zookeeper import secure_zookeeper_server as secure_zookeeper_server
from tests.support.tls_front import Certificates, tls_front
from tests.support.tls_front import certificates as certificates

pytestmark = pytest.mark.zookeeper


def written(file: Path, properties: dict[str, str]) -> str:
    file.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    return str(file)


def refusal(connect: str, security: ZooKeeperSecurity | None) -> RegistryUnreachableError:
    session = Session(connect, security=security)
    with pytest.raises(RegistryUnreachableError) as caught:
        session.start(20, retries_refused=False)
    return caught.value


def test_brokers_commands_and_programs_reach_a_zookeeper_over_tls(
    invoke: Invoke, spawn: Spawn, secure_zookeeper: SecureZooKeeper, tmp_path: Path
) -> None:
    properties = secure_zookeeper.properties()
    config = written(tmp_path / "zk.properties", {**properties, "log.dir": "of a broker"})

    options = ("-Z", secure_zookeeper.connect, "--zk-tls-config", config)

    def run(*words: str, stdin: bytes = b"") -> bytes:
        result = invoke(*words, *options, stdin=stdin)
        assert result.status == 0, result.stderr
        return result.stdout

    with Broker({"zk.connect": secure_zookeeper.connect, **properties}):
        run("topic", "create", "orders", "--yes")
        run("produce", "orders", stdin=b"one\n")
        read = run("consume", "orders", "--group", "g", "-o", "start", "-n", "1")
        assert read == b"one\n"
        assert b"g" in run("group", "list")
        assert b"standalone" in run("zk", "health", "--output", "json")
        with pylogctl.connect(
            zookeeper=secure_zookeeper.connect, zookeeper_tls_config=config
        ) as client:
            assert [one.name for one in client.topics()] == ["orders"]

        with spawn("web", "--listen", "127.0.0.1:0", *options) as web:
            assert web.stdout is not None
            assert web.stdout.readline().startswith(b"READY")
            web.terminate()

        invoke("context", "add", "safe", *options)
        result = invoke("context", "test", "safe")
        assert "has brokers 0" in result.stderr


def test_the_superuser_of_zookeeper_gives_nodes_of_a_lost_credential_to_another(
    secure_zookeeper: SecureZooKeeper,
) -> None:
    def session(user: str, *others: ZooKeeperCredential) -> Session:
        tls = TlsFiles(secure_zookeeper.ca, secure_zookeeper.cert, secure_zookeeper.key)
        credential = ZooKeeperCredential(user, "s3cret", others)
        return Session(secure_zookeeper.connect, security=ZooKeeperSecurity(credential, True, tls))

    with session("lost") as lost, session("new") as new:
        lost.create("/acls", b"rules")
        with pytest.raises(RegistryAccessError):
            new.get("/acls")
        with session("new", ZooKeeperCredential("super", SUPER_PASSWORD)) as repairing:
            repairing.set_acls(["/acls"], is_secured=True)

        assert new.get("/acls")[0] == b"rules"


def test_a_certificate_that_does_not_fit_is_named_with_the_reason(
    secure_zookeeper: SecureZooKeeper, tmp_path: Path
) -> None:
    connect, ca, cert, key = secure_zookeeper
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)

    def over_tls(files: TlsFiles) -> ZooKeeperSecurity:
        return ZooKeeperSecurity(tls=files)

    strange = refusal(connect, over_tls(TlsFiles(other, cert, key, "zookeeper.")))
    misnamed = refusal(
        connect.replace("localhost", "127.0.0.1"), over_tls(TlsFiles(ca, cert, key, "zookeeper."))
    )
    missing = refusal(connect, over_tls(TlsFiles(ca, None, None, "zookeeper.")))
    absent = refusal(connect, over_tls(TlsFiles(tmp_path / "no.pem", None, None, "zookeeper.")))
    plain = refusal(connect, ZooKeeperSecurity())

    assert "shows a certificate of no CA that is trusted here" in str(strange)
    assert f"the CA file is {other}" in strange.hints
    assert "not for '127.0.0.1'; names in it: localhost" in str(misnamed)
    assert "asks for a certificate of the client" in str(missing)
    assert missing.hints == ("give zookeeper.ssl.certificate.location",)
    assert f"cannot read '{tmp_path / 'no.pem'}'" in str(absent)
    assert "or one for TLS (zookeeper.ssl.client.enable=true)" in str(plain)


def test_tls_to_a_plain_zookeeper_says_that_its_port_may_be_plain(
    invoke: Invoke, zookeeper: str, secure_zookeeper: SecureZooKeeper, tmp_path: Path
) -> None:
    config = written(tmp_path / "zk.properties", secure_zookeeper.properties())

    result = invoke("topic", "list", "-Z", zookeeper, "--zk-tls-config", config)

    assert result.status == ExitStatus.UNREACHABLE
    assert "ended the connection in the TLS handshake" in result.stderr
    assert "without zookeeper.ssl.* the connection is plain" in result.stderr


def test_requests_name_the_certificate_of_a_server_that_cannot_be_reached_any_more(
    zookeeper: str, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    context = certificates.server()
    address, _, chroot = zookeeper.partition("/")
    front = tls_front(context, int(address.rpartition(":")[2]))
    session = Session(
        f"localhost:{front.port}/{chroot}",
        request_timeout_s=3,
        security=ZooKeeperSecurity(tls=TlsFiles(certificates.ca, None, None, "zookeeper.")),
    )
    with ExitStack() as closing, session:
        closing.callback(front.stop)
        session.create("/a", b"1")
        trustme.CA().issue_cert("localhost").configure_cert(context)
        front.drop_connections()

        with pytest.raises(RegistryUnreachableError) as caught:
            session.get("/a")

    reason = f"ZooKeeper at localhost:{front.port} shows a certificate of no CA that is trusted"
    assert f"no connection to ZooKeeper: {reason}" in str(caught.value)
    assert f"the CA file is {certificates.ca}" in caught.value.hints
    assert caplog.text.count(reason) == 1


def test_a_file_without_settings_of_tls_or_with_unknown_ones_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "zk.properties"

    with pytest.raises(ConfigError, match=r"none of the properties zookeeper\.ssl\.\*"):
        security_in(None, written(file, {"broker.id": "1"}))
    with pytest.raises(ConfigError, match=r"no property is named zookeeper\.ssl\.truststore"):
        security_in(None, written(file, {"zookeeper.ssl.truststore": "a"}))


def test_a_session_ends_although_a_server_is_silent_in_the_handshake(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        session = Session(
            f"127.0.0.1:{silent.getsockname()[1]}",
            session_timeout_ms=600_000,
            security=ZooKeeperSecurity(tls=TlsFiles(None, None, None)),
        )
        with pytest.raises(RegistryUnreachableError, match=r"within 0\.5s"):
            session.start(0.5)


@pytest.fixture
def pair(certificates: Certificates) -> Iterator[tuple[ssl.SSLSocket, ssl.SSLSocket]]:
    """Two ends of a connection of TLS."""
    trusting = ssl.create_default_context(cafile=certificates.ca)
    ends = socket.socketpair()
    client = trusting.wrap_socket(
        ends[0], server_hostname="localhost", do_handshake_on_connect=False
    )
    server = certificates.server().wrap_socket(
        ends[1], server_side=True, do_handshake_on_connect=False
    )
    client.setblocking(False)
    server.setblocking(False)
    with client, server:
        pending = [client, server]
        while pending:
            for side in tuple(pending):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                pending.remove(side)
        yield client, server


def test_a_response_that_came_in_one_record_with_another_is_not_waited_for(
    pair: tuple[ssl.SSLSocket, ssl.SSLSocket],
) -> None:
    client, server = pair
    handler = TlsHandler(TlsFiles(None, None, None))
    server.sendall(b"first.second")
    handler.select([client], [], [], 20)
    first = b""
    while len(first) < 6:
        try:
            first += client.recv(6 - len(first))
        except ssl.SSLWantReadError:  # tickets came before it
            handler.select([client], [], [], 20)

    ready, _, _ = handler.select([client], [], [], 0)

    assert ready == [client]
    assert client.recv(100) == b"second"

"""Secure connections, of threads and of event loops: what is accepted, and what errors say."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

from broker.aio.sending import LoopConnection
from broker.client.connection import Connection
from broker.errors import (
    AuthenticationFailedError,
    BrokerUnreachableError,
    ConfigError,
    SecurityDisabledError,
    TlsError,
)
from broker.protocol.extension_requests import StatusRequest
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import ClientSecurity
from broker.server.broker import Broker
from tests.integration.broker.peers import Server, hang_up, say, stay_silent
from tests.support.logins import PASSWORD
from tests.support.logins import alice as alice
from tests.support.tls_front import Certificates, tls_front
from tests.support.tls_front import certificates as certificates

StartServer = Callable[[Server], Server]
Ask = Callable[[BrokerAddress, ClientSecurity], int]


@pytest.fixture
def started() -> Iterator[StartServer]:
    servers: list[Server] = []

    def keep(server: Server) -> Server:
        servers.append(server)
        return server

    yield keep
    for server in servers:
        server.stop()


def ask_blocking(address: BrokerAddress, security: ClientSecurity) -> int:
    """Return how many bytes a broker's status has, which is larger than one record if wanted."""
    connection = Connection(address, connect_timeout_s=20.0, security=security)
    try:
        connection.hello()
        return len(connection.call(StatusRequest()).rest)
    finally:
        connection.close()


def ask_in_loop(address: BrokerAddress, security: ClientSecurity) -> int:
    async def ask() -> int:
        opened = Connection(address, connect_timeout_s=20.0, security=security)
        await asyncio.to_thread(opened.hello)
        news = asyncio.Event()
        connection = LoopConnection(opened, news.set, has_responses=True)
        try:
            correlation_id = connection.send_extension(StatusRequest())
            await asyncio.wait_for(news.wait(), 60)
            return len(connection.receive_extension(correlation_id).rest)
        finally:
            connection.close()
            await connection.closed()

    return asyncio.run(ask())


@pytest.fixture(params=[ask_blocking, ask_in_loop])
def ask(request: pytest.FixtureRequest) -> Ask:
    found: Ask = request.param
    return found


def trusting(certificates: Certificates, cert: tuple[Path, Path] | None = None) -> ClientSecurity:
    own, key = cert or (None, None)
    return ClientSecurity.of_files(ca=certificates.ca, cert=own, key=key)


def local(port: int, host: str = "localhost") -> BrokerAddress:
    return BrokerAddress(-1, host, port)


def test_request_over_tls_gets_its_response(
    running_broker: Broker, certificates: Certificates, started: StartServer, ask: Ask
) -> None:
    front = started(tls_front(certificates.server(), running_broker.port))
    assert ask(local(front.port), trusting(certificates)) > 100


class Fault(NamedTuple):
    """Something wrong with a broker's certificate, and what the error says of it."""

    server: Callable[[Certificates], ssl.SSLContext]
    sentence: str
    hint: str
    host: str = "localhost"


NOW = datetime.now(UTC)
OF_OTHERS = trustme.CA(organization_name="Theirs")
FAULTS = {
    "unknown CA": Fault(
        lambda ours: ours.server(authority=OF_OTHERS),
        r"localhost:\d+ shows a certificate of no CA that is trusted here: unable to get local",
        r"issued by O=Theirs,OU=.*the CA file is \S+ca.pem",
    ),
    "wrong name": Fault(
        lambda ours: ours.server("b1.example", "10.1.2.3"),
        r"that is not for 'localhost'; names in it: b1.example, 10.1.2.3$",
        "connect by one of its names",
    ),
    "wrong address": Fault(
        lambda ours: ours.server("localhost"),
        r"that is not for '127.0.0.1'; names in it: localhost$",
        "connect by one of its names",
        "127.0.0.1",
    ),
    "expired": Fault(
        lambda ours: ours.server(
            not_before=datetime(2020, 1, 1, tzinfo=UTC), not_after=datetime(2021, 1, 1, tzinfo=UTC)
        ),
        rf"has expired: valid from 2020-01-01T00:00:00Z to 2021-01-01T00:00:00Z, and now is "
        rf"{NOW.year}-",
        r"it is that of O=",
    ),
    "not yet valid": Fault(
        lambda ours: ours.server(not_before=NOW + timedelta(days=2)),
        rf"is not valid yet: valid from .* to .*, and now is {NOW.year}-",
        r"it is that of O=",
    ),
    "client without a certificate": Fault(
        lambda ours: ours.server(clients=ours.authority),
        r"localhost:\d+ asks for a certificate of the client",
        "--tls-cert",
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_certificate_that_is_not_accepted_is_named_with_what_is_wrong(
    running_broker: Broker,
    certificates: Certificates,
    started: StartServer,
    ask: Ask,
    fault: Fault,
) -> None:
    front = started(tls_front(fault.server(certificates), running_broker.port))
    with pytest.raises(TlsError, match=fault.sentence) as raised:
        ask(local(front.port, fault.host), trusting(certificates))
    assert re.search(fault.hint, " ".join(raised.value.hints))
    assert not raised.value.is_retriable


def test_certificate_of_a_client_is_accepted_or_the_error_names_its_file(
    running_broker: Broker, certificates: Certificates, started: StartServer, ask: Ask
) -> None:
    context = certificates.server(clients=certificates.authority)
    front = started(tls_front(context, running_broker.port))
    own = certificates.files("alice")
    assert ask(local(front.port), trusting(certificates, own)) > 100
    foreign = certificates.files("mallory", OF_OTHERS)
    with pytest.raises(TlsError, match="does not accept this client's certificate: ") as raised:
        ask(local(front.port), trusting(certificates, foreign))
    assert str(foreign[0]) in raised.value.hints[0]


def test_tls_with_a_plain_port_fails_at_once(
    running_broker: Broker, certificates: Certificates, started: StartServer, ask: Ask
) -> None:
    for port in (running_broker.port, started(Server(hang_up)).port):
        with pytest.raises(BrokerUnreachableError, match="ended the connection in the TLS") as lost:
            ask(local(port), trusting(certificates))
        assert "is its port one for TLS?" in lost.value.hints[0]
    banner = started(Server(say(b"SSH-2.0-OpenSSH_9.2\r\n")))
    with pytest.raises(TlsError, match="does not speak TLS on this port"):
        ask(local(banner.port), trusting(certificates))


def test_handshake_without_an_answer_ends_with_the_connect_timeout(
    certificates: Certificates, started: StartServer
) -> None:
    silent = started(Server(stay_silent))
    connection = Connection(
        local(silent.port), connect_timeout_s=0.1, security=trusting(certificates)
    )
    with pytest.raises(BrokerUnreachableError, match="gave no answer to the TLS handshake"):
        connection.connect()


def test_plain_connection_to_a_tls_port_says_that_the_port_speaks_tls(
    running_broker: Broker, certificates: Certificates, started: StartServer, ask: Ask
) -> None:
    alert = started(Server(say(b"\x15\x03\x01\x00\x02\x02\x46")))
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "a", "sasl.password": "b"}
    for security in (ClientSecurity(), ClientSecurity.from_properties(login)):
        with pytest.raises(TlsError, match="speaks TLS") as raised:
            ask(local(alert.port), security)
        assert raised.value.hints == ("give --tls (or ssl.*)",)
    assert alert.connection_count == 2
    front = started(tls_front(certificates.server(), running_broker.port))
    with pytest.raises(BrokerUnreachableError) as lost:
        ask(local(front.port), ClientSecurity())
    assert "--tls" in lost.value.hints[0]


def test_files_that_are_replaced_are_used_by_the_next_connection(
    running_broker: Broker, certificates: Certificates, started: StartServer, tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    OF_OTHERS.cert_pem.write_to_path(ca)
    security = ClientSecurity.of_files(ca=ca)
    front = started(tls_front(certificates.server(), running_broker.port))
    with pytest.raises(TlsError):
        ask_blocking(local(front.port), security)
    ca.write_text("half of a file")
    with pytest.raises(TlsError):  # the one read before stays in use
        ask_blocking(local(front.port), security)
    certificates.authority.cert_pem.write_to_path(ca)
    assert ask_blocking(local(front.port), security) > 100


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"ca": "missing.pem"}, r"cannot read '\S+missing.pem': no such file"),
        ({"ca": "text"}, r"'\S+text' is no PEM file of a CA's certificate"),
        ({"cert": "text"}, r"'\S+text' is no PEM file of a certificate"),
        ({"cert": "alice.pem", "key": "bob.key"}, r"is not that of '\S+alice.pem'"),
        ({"cert": "alice.pem", "key": "open.key"}, r"all users can read: chmod 600 \S+"),
    ],
)
def test_file_that_cannot_be_used_is_named(
    certificates: Certificates, settings: dict[str, str], sentence: str
) -> None:
    folder = certificates.directory
    for name in ("alice", "bob", "open"):
        certificates.files(name)
    (folder / "text").write_text("text")
    (folder / "text").chmod(0o600)
    (folder / "open.key").chmod(0o644)
    files: dict[str, Any] = {name: folder / file for name, file in settings.items()}
    security = ClientSecurity.of_files(**files)
    with pytest.raises(ConfigError, match=sentence):
        Connection(local(1), security=security, connect_timeout_s=0.1).connect()


def test_user_logs_in_by_a_password(
    alice: str,
    running_broker: Broker,
    certificates: Certificates,
    started: StartServer,
    ask: Ask,
) -> None:
    plain = ClientSecurity.of_files(user=alice, password=PASSWORD)
    assert ask(local(running_broker.port), plain) > 100
    front = started(tls_front(certificates.server(), running_broker.port))
    over_tls = ClientSecurity.of_files(ca=certificates.ca, user=alice, password=PASSWORD)
    assert ask(local(front.port), over_tls) > 100


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("bob", PASSWORD)])
def test_wrong_login_names_user_and_broker_and_is_not_repeated(
    alice: str, running_broker: Broker, ask: Ask, user: str, password: str
) -> None:
    wrong = ClientSecurity.of_files(user=user, password=password)
    where = f"localhost:{running_broker.port}"
    with pytest.raises(AuthenticationFailedError) as raised:
        ask(local(running_broker.port), wrong)
    assert str(raised.value).startswith(f"{where} does not log in user '{user}': ")
    assert not raised.value.is_retriable


def test_login_where_none_is_offered_says_so(running_broker: Broker, ask: Ask) -> None:
    with pytest.raises(SecurityDisabledError, match="asks for no identity") as raised:
        ask(local(running_broker.port), ClientSecurity.of_files(user="alice", password="x"))
    assert raised.value.hints == (
        "connect without --user (or sasl.*), or at another port of the broker",
    )

"""A port of TLS before a plain broker, and the certificates of its tests."""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest
import trustme

from tests.integration.broker.peers import Server


class Certificates:
    """A CA that clients trust, as a file in a directory, and certificates of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = trustme.CA(organization_name="Ours")
        self.ca = directory / "ca.pem"
        self.authority.cert_pem.write_to_path(self.ca)

    def files(self, name: str, authority: trustme.CA | None = None) -> tuple[Path, Path]:
        """Return the certificate and key of a client, as two files."""
        made = (authority or self.authority).issue_cert(f"{name}@example", common_name=name)
        cert, key = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        cert.write_bytes(b"".join(one.bytes() for one in made.cert_chain_pems))
        made.private_key_pem.write_to_path(key)
        key.chmod(0o600)
        return cert, key

    def server(
        self,
        *names: str,
        authority: trustme.CA | None = None,
        not_before: datetime | None = None,
        not_after: datetime | None = None,
        clients: trustme.CA | None = None,
    ) -> ssl.SSLContext:
        """Return what a broker of these names has; with `clients` it wants certificates of that."""
        made = (authority or self.authority).issue_cert(
            *(names or ("localhost", "127.0.0.1")), not_before=not_before, not_after=not_after
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.configure_cert(context)
        if clients is not None:
            clients.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A CA that is made once."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


def tls_front(context: ssl.SSLContext, broker_port: int) -> Server:
    """Start a port that speaks TLS with clients, and plainly with the broker behind it."""

    def serve(sock: socket.socket) -> None:
        # the server, which shuts `sock` down at its end, must keep it
        with (
            suppress(OSError),
            context.wrap_socket(sock.dup(), server_side=True) as client,
            socket.create_connection(("127.0.0.1", broker_port)) as broker,
        ):
            _join(client, broker)

    return Server(serve)


def _join(client: ssl.SSLSocket, broker: socket.socket) -> None:
    while True:
        ready = [client] if client.pending() else select.select([client, broker], [], [])[0]
        for one in ready:
            data = one.recv(1 << 16)
            if not data:
                return
            (broker if one is client else client).sendall(data)

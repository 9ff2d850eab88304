"""A real ZooKeeper whose port speaks TLS, with certificates of a CA for tests."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from broker.security.client_security import TlsFiles
from broker.zk.embedded import find_jars
from broker.zk.java import Java
from broker.zk.security import ZooKeeperSecurity
from broker.zk.session import Session
from tests.support.tls_front import Certificates
from tests.support.waiting import wait_until

SUPER_PASSWORD = "of the superuser"
_NETTY = ("netty-transport-native-unix-common", "netty-transport-classes-epoll")


class SecureZooKeeper(NamedTuple):
    """Where it listens: over TLS, for all and for those with a certificate."""

    connect: str
    ca: Path
    cert: Path
    key: Path

    def properties(self, *, with_certificate: bool = True) -> dict[str, str]:
        """Return the settings of its clients."""
        own = {
            "zookeeper.ssl.certificate.location": str(self.cert),
            "zookeeper.ssl.key.location": str(self.key),
        }
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.ca.location": str(self.ca),
            **(own if with_certificate else {}),
        }


@pytest.fixture(scope="session")
def secure_zookeeper_server(
    java: Java, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureZooKeeper]:
    """A server that asks its clients for a certificate."""
    with _running(java, certificates, tmp_path_factory.mktemp("secure-zookeeper")) as started:
        yield started


@pytest.fixture
def secure_zookeeper(secure_zookeeper_server: SecureZooKeeper) -> SecureZooKeeper:
    """The server with a chroot of the test's own."""
    chroot = f"{secure_zookeeper_server.connect}/{uuid.uuid4().hex}"
    return secure_zookeeper_server._replace(connect=chroot)


@contextmanager
def _running(java: Java, certificates: Certificates, directory: Path) -> Iterator[SecureZooKeeper]:
    identity = directory / "server.pem"
    identity.write_bytes(_pem(certificates.authority.issue_cert("localhost")))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "dataDir": directory / "data",
        "secureClientPort": port,
        "secureClientPortAddress": "127.0.0.1",
        "tickTime": 500,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok,srvr,mntr",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": identity,
        "ssl.trustStore.location": certificates.ca,
        "ssl.clientAuth": "need",
    }
    config = directory / "zoo.cfg"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    jars = find_jars()
    jars += [one for name in _NETTY for one in jars[0].parent.glob(f"{name}-[0-9]*.jar")]
    log_file = directory / "zookeeper.log"
    digest = base64.b64encode(hashlib.sha1(f"super:{SUPER_PASSWORD}".encode()).digest()).decode()
    superuser = f"-Dzookeeper.DigestAuthenticationProvider.superDigest=super:{digest}"
    flags = [superuser, "-Xmx96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command = [str(java.executable), *flags, "-cp", os.pathsep.join(map(str, jars))]
    with log_file.open("wb") as log:
        child = subprocess.Popen(
            [*command, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config],
            cwd=directory,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:

        def listens() -> bool:
            assert child.poll() is None, log_file.read_text()
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, "ZooKeeper over TLS")
        cert, key = certificates.files("zk-client")
        started = SecureZooKeeper(f"localhost:{port}", certificates.ca, cert, key)
        tls = TlsFiles(certificates.ca, cert, key)
        # the first handshake takes Java seconds
        session = Session(started.connect, security=ZooKeeperSecurity(tls=tls))
        session.start(60)
        session.stop()
        yield started
    finally:
        child.terminate()
        child.wait()


def _pem(made: trustme.LeafCert) -> bytes:
    """Return a certificate and its key as Java reads them, the key as PKCS #8."""
    key = serialization.load_pem_private_key(made.private_key_pem.bytes(), None)
    return b"".join(one.bytes() for one in made.cert_chain_pems) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

"""Throw-away certificates for tests of TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme


class Certificates:
    """A CA, and the files of a broker's certificate for `localhost` and 127.0.0.1."""

    def __init__(self, directory: Path) -> None:
        self.ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.certificate = directory / "broker.pem"
        self.key = directory / "broker.key"
        self.ca_file = directory / "ca.pem"
        self.ca.cert_pem.write_to_path(self.ca_file)
        self.renew()

    def renew(self) -> None:
        """Have another certificate of the CA, for another key."""
        self.write(self.ca.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.ECDSA))

    def write(self, leaf: trustme.LeafCert) -> None:
        """Write a certificate and its key to the broker's files, each by a rename."""
        self.write_key(leaf)
        chain = self.certificate.with_suffix(".new")
        chain.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        chain.rename(self.certificate)

    def write_key(self, leaf: trustme.LeafCert) -> None:
        """Write the key only."""
        new = self.key.with_suffix(".newkey")
        leaf.private_key_pem.write_to_path(new)
        new.chmod(0o600)
        new.rename(self.key)

    def settings(self, **others: object) -> dict[str, object]:
        """Return the settings of a broker with a TLS listener beside the plain one."""
        return {
            "listeners": "SECURE=tls://127.0.0.1:0",
            "ssl_certificate": self.certificate,
            "ssl_key": self.key,
            **others,
        }

    def client(self, leaf: trustme.LeafCert | None = None) -> ssl.SSLContext:
        """Return the context of a client that trusts the CA, perhaps with a certificate."""
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        if leaf is not None:
            leaf.configure_cert(context)
        return context

"""The users of a cluster, as brokers know them: what checks the proof of a password.

A credential is kept as Kafka keeps it: as a text under the mechanism's name in the settings of a
user. Who has it can play the broker, and can try passwords: it is no password, but a secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Mapping
from typing import NamedTuple

from broker.errors import CoordinationError

SCRAM = "SCRAM-SHA-256"
SCRAM_PLUS = "SCRAM-SHA-256-PLUS"
GENERATED_ITERATIONS = 16_384
CHOSEN_ITERATIONS = 100_000
"""Of PBKDF2: a login costs the client 4 ms, or 21 ms; guessing a chosen password must be slow."""
SALT_BYTES = 16
_KEY_BYTES = 32
_TEXT = re.compile(r"salt=(.+),stored_key=(.+),server_key=(.+),iterations=([0-9]{1,9})")


class Credential(NamedTuple):
    """What a broker keeps of a password: enough to check a proof of it, not to make one."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"Credential(iterations={self.iterations})"

    def encode(self) -> str:
        """Return the text that Kafka keeps."""
        keys = ("salt", "stored_key", "server_key")
        texts = (base64.b64encode(one).decode() for one in self[:3])
        pairs = (f"{key}={text}" for key, text in zip(keys, texts, strict=True))
        return f"{','.join(pairs)},iterations={self.iterations}"

    @classmethod
    def decode(cls, text: str) -> Credential:
        """Parse the text that Kafka keeps; its order is fixed here, as in Kafka."""
        try:
            found = _TEXT.fullmatch(text)
            if found is None:
                raise ValueError
            salt, stored, server = (
                base64.b64decode(one, validate=True) for one in found.groups()[:3]
            )
            return cls(salt, stored, server, int(found[4]))
        except (ValueError, binascii.Error):
            raise CoordinationError(
                "a credential is not salt=..,stored_key=..,server_key=..,iterations=.."
            ) from None


class Users:
    """The users as they were last read, for any thread; nothing here waits."""

    def __init__(self, mock_secret: bytes = b"") -> None:
        self._credentials: Mapping[str, Credential] = {}  # replaced, never changed in place
        self._mock_secret = mock_secret or secrets.token_bytes(_KEY_BYTES)

    def use(self, credentials: Mapping[str, Credential], mock_secret: bytes) -> None:
        """Know these users from now on; the secret makes the salts of those that are not there."""
        self._credentials, self._mock_secret = credentials, mock_secret

    def names(self) -> Collection[str]:
        """Return the users that have a password."""
        return self._credentials.keys()

    def __contains__(self, name: str) -> bool:
        return name in self._credentials

    def credential(self, name: str) -> Credential:
        """Return the credential of a user; for an unknown one always the same that never fits."""
        known = self._credentials.get(name)
        made = hmac.digest(
            self._mock_secret, SCRAM.encode() + b"\0" + name.encode(), hashlib.sha256
        )
        # both counts occur among users, so either tells nothing
        iterations = CHOSEN_ITERATIONS if made[SALT_BYTES] & 1 else GENERATED_ITERATIONS
        stored, server = secrets.token_bytes(_KEY_BYTES), secrets.token_bytes(_KEY_BYTES)
        mock = Credential(made[:SALT_BYTES], stored, server, iterations)  # work for known ones, too
        return known or mock

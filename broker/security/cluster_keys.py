"""The keys of a cluster: what its brokers know and nobody else, as ZooKeeper and a file keep them.

The first key is the one that brokers choose; those behind it are accepted. A key that another one
has replaced is accepted until `until_ms`, so that connections have time to prove anew.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from broker.errors import ConfigError

CLUSTER_PROOF = "CLUSTER-SCRAM-SHA-256"
"""The mechanism of `cluster_proof`."""
LIFETIME_MS = 3_600_000
"""Of a proof; connections prove anew within it."""
KEY_BYTES = 32
MAX_KEYS = 4
_VERSION = 1
_KEPT_FORMER = 32


class ClusterKey(NamedTuple):
    """One key; its text shows no secret."""

    secret: bytes
    made_ms: int
    until_ms: int = 0  # not accepted from then on; 0: no limit

    @property
    def id(self) -> bytes:
        """Return what names the key on the wire: 8 bytes that do not tell it."""
        return hmac.digest(self.secret, b"pylogctl cluster key id", "sha256")[:8]

    def __repr__(self) -> str:
        return f"ClusterKey({self.id.hex()})"


class BrokerIdentity(NamedTuple):
    """A broker, in its present registration, and the keys that it accepts, the first chosen."""

    id: int
    epoch: int
    cluster_id: str
    keys: Sequence[ClusterKey]


class ClusterKeys(NamedTuple):
    """The keys of a cluster, and the ids of those that they have replaced, latest first."""

    keys: tuple[ClusterKey, ...]
    former: tuple[bytes, ...] = ()

    def accepted(self, now_ms: int) -> list[ClusterKey]:
        """Return the keys that are accepted now, the one to choose first."""
        return [one for one in self.keys if not one.until_ms or now_ms < one.until_ms]

    def replaces(self, others: ClusterKeys) -> bool:
        """Return whether these are the keys of the same cluster, then or later."""
        known = {*(one.id for one in self.keys), *self.former}
        return any(one.id in known for one in others.keys)

    def with_next(self, now_ms: int) -> ClusterKeys:
        """Return the keys with a new one that is accepted, and not chosen yet."""
        first, *_ = self.accepted(now_ms) or self.keys
        return ClusterKeys((first, new_key(now_ms)), self._formers({first.id}))

    def with_next_first(self, now_ms: int, kept_ms: int) -> ClusterKeys:
        """Return the keys with the newest first; the others end after `kept_ms`, or at once."""
        newest = max(self.keys, key=lambda one: one.made_ms)
        others = tuple(
            one._replace(until_ms=one.until_ms or now_ms + kept_ms)
            for one in self.keys
            if one is not newest and kept_ms
        )
        kept = (newest._replace(until_ms=0), *others[: MAX_KEYS - 1])
        return ClusterKeys(kept, self._formers({one.id for one in kept}))

    def _formers(self, kept: set[bytes]) -> tuple[bytes, ...]:
        gone = [one.id for one in self.keys if one.id not in kept]
        return (*gone, *self.former)[:_KEPT_FORMER]

    def ids_text(self) -> str:
        """Return the ids of the keys, for messages."""
        return ", ".join(one.id.hex() for one in self.keys)

    def encode(self) -> bytes:
        """Return the document that the node and the file have."""
        keys = [
            {
                "id": one.id.hex(),
                "key": one.secret.hex(),
                "made_ms": one.made_ms,
                "until_ms": one.until_ms,
            }
            for one in self.keys
        ]
        former = [one.hex() for one in self.former]
        return json.dumps({"version": _VERSION, "keys": keys, "former": former}).encode()

    @classmethod
    def decode(cls, content: bytes, where: str) -> ClusterKeys:
        """Read the document; `ConfigError` names where it is, and nothing that it contains."""
        try:
            found: dict[str, Any] = json.loads(content)
            keys = tuple(
                ClusterKey(bytes.fromhex(one["key"]), int(one["made_ms"]), int(one["until_ms"]))
                for one in found["keys"]
            )
            former = tuple(map(bytes.fromhex, found.get("former", ())))
            if found["version"] != _VERSION or not 0 < len(keys) <= MAX_KEYS:
                raise ValueError
            if any(len(one.secret) != KEY_BYTES for one in keys):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError(f"{where} has no keys of a cluster") from None
        return cls(keys, former)


def new_key(now_ms: int) -> ClusterKey:
    """Return a new key."""
    return ClusterKey(secrets.token_bytes(KEY_BYTES), now_ms)

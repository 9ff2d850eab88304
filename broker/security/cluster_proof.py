"""CLUSTER-SCRAM-SHA-256: two brokers prove to each other that they know a key of the cluster.

It is SCRAM-SHA-256 (RFC 5802 and 7677) with the key as password, and a claim as the name of the
user: who the client is, whom it means to reach, and with TLS the server's certificate. SCRAM proves
the name together with the password, so an exchange cannot be relayed to another broker, listener
or port. The client's certificate is no part of it, as a client cannot know whether the server asked
for one. A broker may connect to itself, as the controller does to give its own broker orders.
Import this module late: scramp takes 40 ms, and brokers without a cluster need no proof.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from broker.errors import AuthenticationFailedError, ProtocolError
from broker.properties import Secret
from broker.protocol import layouts
from broker.protocol.primitives import Reader
from broker.security import mechanisms, principal, scram, users
from broker.security.cluster_keys import (
    CLUSTER_PROOF,
    LIFETIME_MS,
    MAX_KEYS,
    BrokerIdentity,
    ClusterKey,
)

_ITERATIONS = 4096
"""The fewest that SCRAM knows: more would make guessing slow, and nobody guesses a random key."""
_REFUSED = "the other side did not prove to be a broker of this cluster"


class Claim(NamedTuple):
    """Who a client is, and whom it means to reach."""

    broker_id: int
    broker_epoch: int  # of its registration
    cluster_id: str
    server_id: int
    listener: str  # the name of the server's
    endpoint: str  # as it was dialled, `host:port`
    certificate: bytes  # SHA-256 of the server's, empty without TLS
    key_id: bytes


CLAIM = layouts.record(
    Claim,
    broker_id=layouts.INT32,
    broker_epoch=layouts.INT64,
    cluster_id=layouts.STRING,
    server_id=layouts.INT32,
    listener=layouts.STRING,
    endpoint=layouts.STRING,
    certificate=layouts.DATA,
    key_id=layouts.DATA,
)


class BrokerProof:
    """The client's half: proves to one broker, at the address that it is registered with."""

    name = CLUSTER_PROOF

    def __init__(
        self, own: Callable[[], BrokerIdentity], server_id: int, listener: str, endpoint: str
    ) -> None:
        self._own = own
        self._at = server_id, listener, endpoint

    def exchange(self, channel: mechanisms.Channel) -> mechanisms.ClientExchange:
        """Yield both messages to the broker."""
        own = self._own()
        if not own.keys:
            raise AuthenticationFailedError(_REFUSED)
        key = own.keys[0]
        claim = Claim(*(own.id, own.epoch, own.cluster_id, *self._at, _digest_of(channel), key.id))
        try:
            yield from scram.prove(
                CLAIM.encode(claim).hex(), _password_of(key), max_iterations=_ITERATIONS
            )
        except scram.FAILURES as error:
            raise AuthenticationFailedError(_REFUSED) from error


class Door(NamedTuple):
    """The server's half: a broker at one listener, and what it knows of the others."""

    own: Callable[[], BrokerIdentity]
    listener: str
    endpoint: Callable[[], str]
    # returns whether a broker is registered with an epoch; called for one that knows a key
    is_registered: Callable[[int, int], bool]

    def serve(self, channel: mechanisms.Channel) -> mechanisms.ServerExchange:
        """Take both messages of a client; see `ServerExchange`."""
        claimed: list[Claim] = []

        def credential_of(user: str) -> users.Credential:
            claim = _decode(user)
            claimed.append(claim)
            return _credential_of(self._key_of(claim, channel))

        try:
            final = yield from scram.serve_proof(credential_of)
        except scram.FAILURES:
            raise AuthenticationFailedError(_REFUSED) from None
        (claim,) = claimed
        if not self.is_registered(claim.broker_id, claim.broker_epoch):
            raise AuthenticationFailedError(_REFUSED)
        return mechanisms.Proved(
            principal.broker_principal(claim.broker_id),
            final,
            LIFETIME_MS,
            lambda: any(one.id == claim.key_id for one in self.own().keys),
        )

    def _key_of(self, claim: Claim, channel: mechanisms.Channel) -> ClusterKey:
        """Return the key that a client names, if its claim is about this broker and connection."""
        own = self.own()
        here = (own.cluster_id, own.id, self.listener, self.endpoint(), _digest_of(channel))
        key = next((one for one in own.keys if one.id == claim.key_id), None)
        if key is None or claim.broker_id < 0 or claim[2:7] != here:
            raise AuthenticationFailedError(_REFUSED)
        return key


def _decode(user: str) -> Claim:
    try:
        reader = Reader(bytes.fromhex(user))
        found = CLAIM.decode(reader)
    except (ValueError, ProtocolError):
        raise AuthenticationFailedError(_REFUSED) from None
    if reader.remaining:
        raise AuthenticationFailedError(_REFUSED)
    return found


def _digest_of(channel: mechanisms.Channel) -> bytes:
    return sha256(channel.server_certificate).digest() if channel.server_certificate else b""


def _password_of(key: ClusterKey) -> Secret:
    return Secret(key.secret.hex())


@lru_cache(MAX_KEYS)
def _credential_of(key: ClusterKey) -> users.Credential:
    """Return what checks the proof of a key; computed once, so that attempts cost no hashing."""
    return scram.make_credential(_password_of(key), _ITERATIONS)

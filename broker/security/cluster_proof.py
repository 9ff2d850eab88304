"""CLUSTER-HMAC-SHA-256: two brokers prove to each other that they know a key of the cluster.

The client proves first, so a stranger gets a nonce and the id of a key, and nothing made with it.
Both proofs cover both opening messages whole, and with TLS the server's certificate: an exchange
cannot be replayed, reflected, or relayed to another broker, listener or port. The client's is not
covered, as it cannot know whether the server asked for one. A broker may connect to itself, as the
controller does to give its own broker orders.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple

from broker import errors
from broker.errors import AuthenticationFailedError
from broker.protocol import layouts
from broker.protocol.primitives import INT32, Reader
from broker.security.cluster_keys import MAX_KEYS, ClusterKey
from broker.security.mechanisms import Channel, ClientExchange, Proved, ServerExchange
from broker.security.principal import broker_principal

CLUSTER_PROOF = "CLUSTER-HMAC-SHA-256"
LIFETIME_MS = 3_600_000
_VERSION = 1
_NONCE_BYTES = 32
_CLIENT, _SERVER = 1, 2
_REFUSED = "the other side did not prove to be a broker of this cluster"


class ClientOpen(NamedTuple):
    """What the client offers, who it is, and whom it means to reach."""

    greatest_version: int
    least_version: int
    broker_id: int
    broker_epoch: int  # of its registration
    cluster_id: str
    server_id: int
    listener: str  # the name of the server's
    endpoint: str  # as it was dialled, `host:port`
    nonce: bytes
    key_ids: tuple[bytes, ...]  # newest first


class ServerOpen(NamedTuple):
    """What the server chose, and who it is."""

    version: int
    broker_id: int
    broker_epoch: int
    nonce: bytes
    key_id: bytes


CLIENT_OPEN = layouts.record(
    ClientOpen,
    greatest_version=layouts.INT16,
    least_version=layouts.INT16,
    broker_id=layouts.INT32,
    broker_epoch=layouts.INT64,
    cluster_id=layouts.STRING,
    server_id=layouts.INT32,
    listener=layouts.STRING,
    endpoint=layouts.STRING,
    nonce=layouts.DATA,
    key_ids=layouts.array(layouts.DATA),
)
SERVER_OPEN = layouts.record(
    ServerOpen,
    version=layouts.INT16,
    broker_id=layouts.INT32,
    broker_epoch=layouts.INT64,
    nonce=layouts.DATA,
    key_id=layouts.DATA,
)


def proof(
    key: ClusterKey, role: int, client_open: bytes, server_open: bytes, channel: Channel
) -> bytes:
    """Return what proves that a side, 1 client or 2 server, knows the key."""
    binding = b""
    if channel.server_certificate:
        binding = sha256(channel.server_certificate).digest()
    parts = [b"pylogctl cluster proof\0", bytes((role, bool(binding)))]
    for one in (client_open, server_open, binding):
        parts += (INT32.pack(len(one)), one)
    return hmac.digest(auth_key(key), b"".join(parts), "sha256")


def auth_key(key: ClusterKey) -> bytes:
    """Return the key of the proofs, derived from a key of the cluster."""
    return hmac.digest(key.secret, b"pylogctl cluster auth 1", "sha256")


class OwnBroker(NamedTuple):
    """A broker, in its present registration, and the keys that it accepts, the first chosen."""

    id: int
    epoch: int
    cluster_id: str
    keys: Sequence[ClusterKey]


class BrokerProof:
    """The client's half: proves to one broker, at the address that it is registered with."""

    name = CLUSTER_PROOF

    def __init__(
        self,
        own: Callable[[], OwnBroker],
        server_id: int,
        listener: str,
        endpoint: str,
        is_required: Callable[[], bool],
    ) -> None:
        self._own = own
        self._server_id = server_id
        self._listener = listener
        self._endpoint = endpoint
        self._is_required = is_required  # else brokers that do not know the proof need none

    def exchange(self, channel: Channel) -> ClientExchange:
        """Yield both messages to the broker."""
        own = self._own()
        key_ids = tuple(one.id for one in own.keys[:MAX_KEYS])
        opened = ClientOpen(
            *(_VERSION, _VERSION, own.id, own.epoch, own.cluster_id),
            *(self._server_id, self._listener, self._endpoint),
            *(secrets.token_bytes(_NONCE_BYTES), key_ids),
        )
        client_open = CLIENT_OPEN.encode(opened)
        try:
            server_open = yield client_open
        except errors.UnsupportedVersionError:
            if self._is_required():
                raise
            return  # a broker of a release before the proof
        answer = _decode(SERVER_OPEN, server_open)
        key = next((one for one in own.keys if one.id == answer.key_id), None)
        if (
            key is None
            or answer.version != _VERSION
            or answer.broker_id != self._server_id
            or len(answer.nonce) != _NONCE_BYTES
            or answer.nonce == opened.nonce
        ):
            raise AuthenticationFailedError(_REFUSED)
        server_proof = yield proof(key, _CLIENT, client_open, server_open, channel)
        expected = proof(key, _SERVER, client_open, server_open, channel)
        if not hmac.compare_digest(server_proof, expected):
            raise AuthenticationFailedError(_REFUSED)


class Door(NamedTuple):
    """The server's half: a broker at one listener, and what it knows of the others."""

    own: Callable[[], OwnBroker]
    listener: str
    endpoint: Callable[[], str]
    # returns whether a broker is registered with an epoch; called for one that knows a key
    is_registered: Callable[[int, int], bool]

    def serve(self, channel: Channel) -> ServerExchange:
        """Take both messages of a client; see `ServerExchange`."""
        client_open = yield b""
        opened = _decode(CLIENT_OPEN, client_open)
        own = self.own()
        key = next((one for one in own.keys if one.id in opened.key_ids), None)
        if (
            key is None
            or not opened.least_version <= _VERSION <= opened.greatest_version
            or len(opened.nonce) != _NONCE_BYTES
            or len(opened.key_ids) > MAX_KEYS
            or opened.broker_id < 0
            or (opened.cluster_id, opened.server_id) != (own.cluster_id, own.id)
            or (opened.listener, opened.endpoint) != (self.listener, self.endpoint())
        ):
            raise AuthenticationFailedError(_REFUSED)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        server_open = SERVER_OPEN.encode(ServerOpen(_VERSION, own.id, own.epoch, nonce, key.id))
        client_proof = yield server_open
        expected = proof(key, _CLIENT, client_open, server_open, channel)
        is_proved = hmac.compare_digest(client_proof, expected)
        if not is_proved or not self.is_registered(opened.broker_id, opened.broker_epoch):
            raise AuthenticationFailedError(_REFUSED)
        return Proved(
            broker_principal(opened.broker_id),
            proof(key, _SERVER, client_open, server_open, channel),
            LIFETIME_MS,
            lambda: any(one.id == key.id for one in self.own().keys),
        )


def _decode(layout: layouts.Layout[layouts.T], data: bytes) -> layouts.T:
    """Read a message, which must have nothing behind it."""
    reader = Reader(data)
    try:
        found = layout.decode(reader)
    except errors.ProtocolError:
        raise AuthenticationFailedError(_REFUSED) from None
    if reader.remaining:
        raise AuthenticationFailedError(_REFUSED)
    return found

"""SCRAM-SHA-256 (RFC 5802 and 7677): a password is proved, and never sent or kept.

`-PLUS` binds the exchange to the certificate of the broker, so that nobody between the two can
pass the proof on; it is offered where the connection has a certificate, and never required.
Import this module late: scramp takes 40 ms.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator

from scramp import ScramClient as _Client
from scramp import ScramException, ScramMechanism
from scramp.core import CBindData, Username

from broker import errors
from broker.properties import Secret
from broker.security.mechanisms import Channel, ClientExchange, Proved, ServerExchange
from broker.security.principal import ANONYMOUS, USER, Principal
from broker.security.users import SALT_BYTES, SCRAM, SCRAM_PLUS, Credential, Users

_MAX_ITERATIONS = 1_000_000
"""What a broker may cost a client: about 0.2 s of computing; scramp refuses fewer than 4,096."""
_MAX_NAME_BYTES = 255
_MAX_OPENING_BYTES = 1024
_RESERVED = (ANONYMOUS.name, "<default>", ".", "..")
"""Clients without an identity, users without quotas, and what ZooKeeper cannot name a node."""
_BINDING = "tls-server-end-point"
_Binding = tuple[str, bytes]
FAILURES = (ScramException, ValueError)
"""What both halves raise if the other side's messages are wrong, or not of SCRAM."""


class ScramClient:
    """Proves a password to a broker, which must prove that it knows the user's credential.

    Args:
        user: the name.
        password: of the user.
        name: `SCRAM-SHA-256`, or `SCRAM-SHA-256-PLUS` to bind the proof to the TLS connection.
    """

    def __init__(self, user: str, password: Secret, name: str = SCRAM) -> None:
        self.name = name
        self._user = user
        self._password = password

    def exchange(self, channel: Channel) -> ClientExchange:
        """Return the client's half; `AuthenticationFailedError` for a broker without the proof."""
        binding = _binding_of(channel) if self.name == SCRAM_PLUS else None
        try:
            yield from prove(self._user, self._password, self.name, binding)
        except FAILURES as error:
            raise errors.AuthenticationFailedError(
                f"{self.name} for user '{self._user}' failed, nothing else was sent: {error}"
            ) from error


def prove(
    user: str,
    password: Secret,
    name: str = SCRAM,
    binding: _Binding | None = None,
    *,
    max_iterations: int = _MAX_ITERATIONS,
) -> ClientExchange:
    """Return the client's half; it raises one of `FAILURES`."""
    client = _Client([name], user, password.reveal(), binding)
    answer = yield client.get_client_first().encode()
    client.set_server_first(answer.decode())
    if int(client.iterations) > max_iterations:
        raise ScramException(f"it asks for {client.iterations} iterations")
    answer = yield client.get_client_final().encode()
    client.set_server_final(answer.decode())


def serve_proof(
    credential_of: Callable[[str], Credential], name: str = SCRAM, binding: _Binding | None = None
) -> Generator[bytes, bytes, bytes]:
    """Return the broker's half; it ends with the last message, or raises one of `FAILURES`."""
    server = ScramMechanism(name).make_server(credential_of, binding)
    message = yield b""
    if len(message) > _MAX_OPENING_BYTES:  # 4 KiB of a name take 16 ms to normalise
        raise ScramException("the opening message is too long")
    server.set_client_first(message.decode())
    message = yield server.get_server_first().encode()
    server.set_client_final(message.decode())
    final: str = server.get_server_final()
    return final.encode()


def serve_scram(users: Users, channel: Channel, name: str = SCRAM) -> ServerExchange:
    """Return the broker's half of SCRAM-SHA-256, or of `-PLUS`, which needs a certificate."""
    user = ""

    def note_user(named: str) -> Credential:
        nonlocal user
        user = named
        return users.credential(named)

    binding = _binding_of(channel)
    if name == SCRAM_PLUS and binding is None:
        raise errors.UnsupportedMechanismError(f"{name} needs TLS; offered without: {SCRAM}")
    try:
        final = yield from serve_proof(note_user, name, binding)
        return Proved(Principal(USER, user), final, still_holds=lambda: user in users)
    except FAILURES:
        # nothing of the cause: it would tell which users there are; the name is for the audit log
        raise errors.AuthenticationFailedError(
            "the user or the password is wrong",
            details={"user": user[:_MAX_NAME_BYTES]} if user else None,
        ) from None


def _binding_of(channel: Channel) -> _Binding | None:
    """Return what `-PLUS` binds to; None without a certificate, or for one of Ed25519."""
    if not channel.server_certificate:
        return None
    try:
        return _BINDING, bytes(CBindData.from_der(channel.server_certificate))
    except ScramException:
        return None


def make_credential(password: Secret, iterations: int) -> Credential:
    """Return the credential to keep for a password, with a new salt.

    Raises:
        ArgumentError: the password is empty, or has characters that cannot be typed alike.
    """
    text = password.reveal()
    if not text:
        raise errors.ArgumentError("the password is empty")
    try:
        made = ScramMechanism(SCRAM).make_auth_info(
            text, iterations, secrets.token_bytes(SALT_BYTES)
        )
    except ScramException as error:
        raise errors.ArgumentError(f"the password cannot be used: {error}") from error
    return Credential(*made)


def normalize_user(name: str) -> str:
    """Return the form of a user's name that is kept and compared (SASLprep, RFC 4013).

    Raises:
        ArgumentError: it is empty, too long, reserved, or has characters that are not allowed.
    """
    try:
        found = str(Username(name))
    except ScramException as error:
        raise errors.ArgumentError(f"'{name}' is no name of a user: {error}") from error
    if len(found.encode()) > _MAX_NAME_BYTES:
        raise errors.ArgumentError(
            f"the name of a user has {len(found.encode())} bytes: {_MAX_NAME_BYTES} are possible"
        )
    if found in _RESERVED:
        raise errors.ArgumentError(f"'{found}' is reserved: no user can have this name")
    return found

"""TLS on a client's socket: it receives and sends as the socket would, and never waits.

Records pass through memory, as a TLS socket that does not block must repeat a refused write with
the same bytes, which a queue of responses does not do.
"""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from typing import cast

from broker.protocol.primitives import Buffer
from broker.security.mechanisms import PLAIN, Channel
from broker.security.principal import USER, Principal
from broker.security.subject import Subject, subject_text
from broker.security.tls import ServerTls
from broker.server.requests.client import tls_refusal

MAX_HANDSHAKE_BYTES = 1 << 16
_RECORD_BYTES = 1 << 14
"""Of plaintext. More at a time would make OpenSSL's buffers larger, and they never shrink."""
_TURN_BYTES = 1 << 18
_SEND_BYTES = 1 << 16
_MAX_UNSENT_BYTES = 4 * _SEND_BYTES
"""Of ciphertext; it exceeds `_SEND_BYTES` only by answers to a client that reads nothing."""
_HANDSHAKE_RECORD = b"\x16"
_NOTHING = memoryview(b"")
_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, which this listener requires",
    "UNSUPPORTED_PROTOCOL": "its version of TLS is too old: 1.2 is the least here",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not know the CA of this broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it refuses this broker's certificate, perhaps as that is "
    "for another host name",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it holds this broker's certificate for expired",
    "NO_SHARED_CIPHER": "it has no cipher that this listener accepts",
}


class BrokenTlsError(OSError):
    """The other side breaks TLS, or shows a certificate that is not accepted."""


class TlsTransport:
    """The server's side of TLS on one non-blocking socket.

    `scratch` is shared by the transports of a thread: of 64 KiB at least.
    """

    def __init__(
        self, sock: socket.socket, tls: ServerTls, *, listener: str, scratch: bytearray
    ) -> None:
        self._sock = sock
        self._rules = tls.rules
        self._listener = listener
        self._scratch = memoryview(scratch)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        current = tls.current
        self._certificate = current.certificate
        self._object = current.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._handshake_bytes = 0
        self._unsent = _NOTHING
        self._has_ended = False
        self.is_open = False  # whether the handshake is complete
        self.channel = PLAIN
        """The certificates of both sides."""
        self.principal: Principal | None = None
        """The user that the client's certificate names; None without one, or by no rule."""
        self.has_decrypted = False
        """Whether more can be received although the socket may have nothing."""

    @property
    def has_unsent(self) -> bool:
        """Return whether ciphertext waits for room in the socket."""
        return bool(self._unsent)

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive plaintext, as `socket.recv_into`; shake hands first.

        Raises:
            BlockingIOError: nothing has come.
            ConnectionError: the connection is lost, also if it ends without TLS's own end.
            TlsError: the other side breaks TLS.
        """
        filled = 0
        try:
            while True:
                if not self.has_decrypted and not self._fill(may_block=bool(filled)):
                    break
                if not self.is_open:
                    self._shake_hands()
                filled += self._decrypt(buffer[filled:])
                if self.has_decrypted or self._has_ended or filled >= _TURN_BYTES:
                    break
        except ssl.SSLError as error:
            self._send_alert()
            raise self._error(error) from error
        finally:
            self.flush()  # answers of TLS itself
        return filled

    def _fill(self, *, may_block: bool) -> bool:
        """Give OpenSSL what the socket has; return False if that is nothing, and `may_block`."""
        try:
            size = self._sock.recv_into(self._scratch[: 2 * _RECORD_BYTES])
        except BlockingIOError:
            if may_block:
                return False
            raise
        if not size:
            self._incoming.write_eof()
            return True
        if not self.is_open:
            if not self._handshake_bytes and self._scratch[:1] != _HANDSHAKE_RECORD:
                if refusal := tls_refusal(bytes(self._scratch[:size])):
                    with suppress(OSError):
                        self._sock.send(refusal)
                raise BrokenTlsError(
                    f"it does not speak TLS, which listener {self._listener} demands"
                )
            self._handshake_bytes += size
            if self._handshake_bytes > MAX_HANDSHAKE_BYTES:
                raise BrokenTlsError(f"its TLS handshake has more than {MAX_HANDSHAKE_BYTES} bytes")
        self._incoming.write(self._scratch[:size])
        return True

    def _shake_hands(self) -> None:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            raise BlockingIOError from None
        self.channel = Channel(self._certificate)
        if found := self._object.getpeercert():
            user = self._rules.user(subject_text(cast(Subject, found.get("subject", ()))))
            self.principal = Principal(USER, user) if user else None
        self.is_open = True

    def _decrypt(self, buffer: memoryview) -> int:
        """Read until there is no more, or the buffer is full."""
        filled = 0
        self.has_decrypted = False
        try:
            while filled < len(buffer):
                # the types know of bytearrays only, and of what it returns without a buffer
                size: int = self._object.read(len(buffer) - filled, buffer[filled:])  # type: ignore[assignment]
                if not size:  # the other side has ended TLS
                    self._has_ended = True
                    break
                filled += size
        except ssl.SSLWantReadError:
            if not filled:
                self._check_unsent()
            return filled
        except ssl.SSLError:
            if not filled:
                raise
        self.has_decrypted = bool(filled)  # also if the end, or the error, is to be seen next time
        return filled

    def _check_unsent(self) -> None:
        """Refuse a client that has OpenSSL answer, and takes no answers."""
        if len(self._unsent) > _MAX_UNSENT_BYTES:
            raise BrokenTlsError("it reads nothing")

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        """Send some of the data, as `socket.send`."""
        self._flush()
        size = 0
        sealed = []
        view = memoryview(data)[:_SEND_BYTES]
        while size < len(view):
            size += self._object.write(view[size : size + _RECORD_BYTES])
            sealed.append(self._outgoing.read())
        self._unsent = memoryview(b"".join(sealed))
        with suppress(BlockingIOError):
            self._flush(flags)
        return size

    def send_file(self, descriptor: int, start: int, size: int) -> int:
        """Send some bytes of a file; return how many, 0 at its end."""
        self._flush()
        view = self._scratch[: min(size, _SEND_BYTES)]
        read = os.preadv(descriptor, [view], start)
        return self.send(view[:read]) if read else 0

    def _flush(self, flags: int = 0) -> None:
        if self._outgoing.pending:
            self._unsent = memoryview(bytes(self._unsent) + self._outgoing.read())
        while self._unsent:
            sent = self._sock.send(self._unsent, flags)
            self._unsent = self._unsent[sent:] if sent < len(self._unsent) else _NOTHING

    def flush(self) -> None:
        """Send ciphertext that is left over, as far as the socket takes it now."""
        with suppress(BlockingIOError, InterruptedError):
            self._flush()

    def _send_alert(self) -> None:
        """Tell the other side why it is refused; the error that is known already matters more."""
        with suppress(OSError):
            self._flush()

    def end(self) -> None:
        """End TLS on this side; it is not waited for the other one."""
        if self.is_open:
            with suppress(OSError):
                self._object.unwrap()
        with suppress(OSError):
            self._flush()

    def last_bytes(self, data: bytes) -> bytes:
        """Return what must go out so that `data` is received, and the end after it."""
        sealed = [bytes(self._unsent)]
        self._unsent = _NOTHING
        for start in range(0, len(data), _RECORD_BYTES):
            self._object.write(data[start : start + _RECORD_BYTES])
            sealed.append(self._outgoing.read())
        with suppress(OSError):
            self._object.unwrap()
        return b"".join((*sealed, self._outgoing.read()))

    def _error(self, error: ssl.SSLError) -> OSError:
        if isinstance(error, ssl.SSLEOFError):
            return ConnectionResetError("the connection was lost: TLS was not ended")
        if isinstance(error, ssl.SSLCertVerificationError):
            return BrokenTlsError(f"its certificate is refused: {error.verify_message}")
        reason = error.reason or str(error)
        known = _REASONS.get(reason)
        return BrokenTlsError(known or f"TLS with it failed: {reason.lower().replace('_', ' ')}")

"""TLS of clients: contexts made of files, the handshake, and a sentence for each failure.

Imported with the first TLS connection, as `ssl` costs much of a short command's time.
"""

from __future__ import annotations

import logging
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from broker.errors import BrokerUnreachableError, ConfigError, TlsError
from broker.files import FileStamp, stamp_of
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import TlsFiles
from broker.security.mechanisms import Channel

logger = logging.getLogger(__name__)

_OTHERS_READ = 0o004
_NOT_YET_VALID, _EXPIRED, _OTHER_NAMES = 9, 10, (62, 64)  # of `verify_code`
_WANTS_ONE = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "ALERT_BAD_CERTIFICATE")
_ACCEPTS_NONE = ("UNKNOWN_CA", "CERTIFICATE_EXPIRED", "CERTIFICATE_UNKNOWN", "_CERTIFICATE")
_SHORT = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU"}
_Stamps = tuple[FileStamp | None, ...]
_Certificate = Mapping[str, Any]  # as `getpeercert` has it


class TlsContext(NamedTuple):
    """What connections are secured with, as its files were at a time."""

    ssl: ssl.SSLContext
    stamps: _Stamps


_contexts: dict[TlsFiles, TlsContext] = {}


def context_of(files: TlsFiles) -> TlsContext:
    """Return the context of files, a new one if they have changed since the last call.

    Raises:
        ConfigError: a file cannot be used; if an earlier one could, that context stays in use.
    """
    stamps = tuple(None if path is None else stamp_of(path) for path in files[:3])
    known = _contexts.get(files)
    if known is not None and known.stamps == stamps:
        return known
    try:
        made = _contexts[files] = _made(files, stamps)
    except ConfigError as error:
        if known is None:
            raise
        # half of the files may be new already
        logger.warning("%s; the certificates read before stay in use", error)
        return known
    return made


def _made(files: TlsFiles, stamps: _Stamps) -> TlsContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    if files.ca is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cafile=files.ca)
        except OSError as error:
            raise _unusable(files.ca, "no PEM file of a CA's certificate", error) from error
    if files.cert is None:
        return TlsContext(context, stamps)
    key = files.key or files.cert
    try:
        if key.stat().st_mode & _OTHERS_READ:
            raise ConfigError(f"'{key}' is a key that all users can read: chmod 600 {key}")
        # a key with a passphrase would ask for it on the terminal
        context.load_cert_chain(files.cert, key, password=lambda: "")
    except OSError as error:
        path = Path(error.filename) if error.filename else files.cert
        mismatch = getattr(error, "reason", None) in (
            "KEY_VALUES_MISMATCH",
            "NO_CERTIFICATE_ASSIGNED",
        )
        if mismatch:
            raise ConfigError(f"the key in '{key}' is not that of '{files.cert}'") from error
        what = f"no PEM file of a certificate, or '{key}' none of a key without passphrase"
        raise _unusable(path, what, error) from error
    return TlsContext(context, stamps)


def _unusable(path: Path, what: str, error: OSError) -> ConfigError:
    if not isinstance(error, ssl.SSLError):
        return ConfigError(f"cannot read '{path}': {(error.strerror or str(error)).lower()}")
    return ConfigError(f"'{path}' is {what}")


def secured(
    sock: socket.socket, files: TlsFiles, address: BrokerAddress, name: str
) -> ssl.SSLSocket:
    """Return the socket of a new connection after the handshake, which its timeout limits.

    `name` is the broker's for messages. After an error the socket is closed.
    """
    context = context_of(files)
    tls = context.ssl.wrap_socket(sock, server_hostname=address.host, do_handshake_on_connect=False)
    try:
        tls.do_handshake()
    except OSError as error:
        failed = _failed_handshake(tls, files, address, name, error)
        tls.close()
        raise failed from error
    return tls


def channel_of(tls: ssl.SSLSocket | ssl.SSLObject) -> Channel:
    """Return what a proof on a connection is bound to."""
    return Channel(tls.getpeercert(True) or b"")


def _failed_handshake(
    tls: ssl.SSLSocket, files: TlsFiles, address: BrokerAddress, name: str, error: OSError
) -> BrokerUnreachableError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _untrusted(_chain_of(tls), files, address, name, error)
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return refused(error, files, name)
    what = "gave no answer to" if isinstance(error, TimeoutError) else "ended the connection in"
    return BrokerUnreachableError(
        f"{name} {what} the TLS handshake", hints=[f"is its port one for TLS? {_plain(files)}"]
    )


def refused(error: OSError, files: TlsFiles, name: str) -> TlsError:
    """Return the error for what OpenSSL, or an alert of the broker, says.

    With TLS 1.3 a broker that wants another certificate says so after the handshake.
    """
    reason: str = getattr(error, "reason", None) or str(error)
    if files.cert is None and reason.endswith(_WANTS_ONE):
        options = "" if files.prefix else "--tls-cert FILE and --tls-key FILE, or "
        return TlsError(
            f"{name} asks for a certificate of the client",
            hints=[f"give {options}{files.prefix}ssl.certificate.location"],
        )
    if "ALERT" in reason and reason.endswith(_ACCEPTS_NONE):
        words = reason.partition("ALERT_")[2].lower().replace("_", " ")
        return TlsError(
            f"{name} does not accept this client's certificate: {words}",
            hints=[f"it is in {files.cert}; its log says more"],
        )
    if reason.endswith(("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL")):
        return TlsError(f"{name} has no TLS version of this client, which are 1.2 and 1.3")
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"):
        return TlsError(f"{name} does not speak TLS on this port", hints=[_plain(files)])
    return TlsError(f"TLS with {name} failed: {reason.lower().replace('_', ' ')}")


def _plain(files: TlsFiles) -> str:
    setting = f"{files.prefix}ssl.*" if files.prefix else "--tls (or ssl.*)"
    return f"without {setting} the connection is plain"


def _chain_of(tls: ssl.SSLSocket) -> list[_Certificate]:
    """Return what the broker showed, its own certificate first."""
    try:  # public from Python 3.13 on, but without the decoded fields
        shown = tls._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
        return [one.get_info() for one in shown or ()]
    except AttributeError:
        return []


def _untrusted(
    chain: Sequence[_Certificate],
    files: TlsFiles,
    address: BrokerAddress,
    name: str,
    error: ssl.SSLCertVerificationError,
) -> TlsError:
    option = f"{files.prefix}ssl.ca.location" if files.prefix else "--tls-ca"
    ca = (
        f"the CA file is {files.ca}"
        if files.ca
        else f"the CAs are the system's; {option} names one"
    )
    own = chain[0] if chain else {}
    whose = f"its certificate is {_name_of(own, 'subject')}, issued by {_name_of(own, 'issuer')}"
    if error.verify_code in _OTHER_NAMES:
        names = ", ".join(value for _, value in own.get("subjectAltName", ())) or "none"
        return TlsError(
            f"{name} shows a certificate that is not for '{address.host}'; names in it: {names}",
            hints=["connect by one of its names, or have one made that names this host", whose],
        )
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        is_early = error.verify_code == _NOT_YET_VALID
        at_fault = next((one for one in chain if not _is_valid_now(one)), None)
        state = "is not valid yet" if is_early else "has expired"
        if at_fault is None:
            return TlsError(f"a CA's certificate for {name} {state}", hints=[ca, whose])
        return TlsError(
            f"the certificate of {name} {state}: valid from {_time(at_fault, 'notBefore')} to "
            f"{_time(at_fault, 'notAfter')}, and now is {_text_of(time.time())}",
            hints=[f"it is that of {_name_of(at_fault, 'subject')}"],
        )
    return TlsError(
        f"{name} shows a certificate of no CA that is trusted here: {error.verify_message}",
        hints=[whose, ca],
    )


def _is_valid_now(certificate: _Certificate) -> bool:
    start_s = ssl.cert_time_to_seconds(certificate["notBefore"])
    return start_s <= time.time() <= ssl.cert_time_to_seconds(certificate["notAfter"])


def _time(certificate: _Certificate, key: str) -> str:
    return _text_of(ssl.cert_time_to_seconds(certificate[key]))


def _text_of(time_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_s))


def _name_of(certificate: _Certificate, key: str) -> str:
    parts = [pair for one in certificate.get(key, ()) for pair in one]
    return ",".join(f"{_SHORT.get(kind, kind)}={text}" for kind, text in parts) or "without a name"

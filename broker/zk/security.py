"""How a session proves to ZooKeeper who it is, and whether it protects the nodes that it makes."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from broker.errors import ConfigError
from broker.files import is_open_to_others
from broker.security.client_security import TlsFiles

NOTE_NAME = "server.json"
"""The file where an embedded server, in its working directory, tells its port."""
SECRET_NAME = "zk.secret"
"""The file of its clients' credential beside it."""

_TLS = "zookeeper.ssl."
_TLS_ENABLED = f"{_TLS}client.enable"
_TLS_FILES = tuple(f"{_TLS}{one}.location" for one in ("ca", "certificate", "key"))
_LOOPBACK = frozenset(("localhost", "127.0.0.1"))
_MAX_CREDENTIAL_BYTES = 4096
_LISTEN = "0A"  # the state of a socket, in /proc/net/tcp


@dataclass(frozen=True, slots=True)
class ZooKeeperCredential:
    """A user of ZooKeeper, by its digest scheme.

    `others` are proved as well, and have no ACLs made for them: those of before, or to come.
    """

    user: str
    password: str = field(repr=False)
    others: tuple[ZooKeeperCredential, ...] = ()


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    """What a session proves itself with, by default nothing.

    `sets_acls`: give nodes the ACL of their path; None: if the cluster's own nodes have theirs.
    """

    credential: ZooKeeperCredential | None = None
    sets_acls: bool | None = None
    tls: TlsFiles | None = None


class SecuritySettings(Protocol):
    """The settings of a broker, producer or consumer that are about its ZooKeeper's security."""

    @property
    def zk_credential_file(self) -> Path | None:
        """The file of `read_credential`."""

    @property
    def zk_tls(self) -> bool:
        """Whether connections are encrypted."""

    @property
    def zk_tls_ca(self) -> Path | None:
        """See `TlsFiles`."""

    @property
    def zk_tls_cert(self) -> Path | None:
        """See `TlsFiles`."""

    @property
    def zk_tls_key(self) -> Path | None:
        """See `TlsFiles`."""


def security_of(
    config: SecuritySettings, *, sets_acls: bool | None = None
) -> ZooKeeperSecurity | None:
    """Return the security that settings ask for, None if they ask for none."""
    file, tls = config.zk_credential_file, tls_files_of(config)
    if sets_acls and file is None:
        raise ConfigError(
            "zookeeper.set.acl=true needs zookeeper.credential.file: nodes are closed to all but "
            "the user of a credential"
        )
    if file is None and tls is None:
        return None
    return ZooKeeperSecurity(None if file is None else read_credential(file), sets_acls, tls)


def read_tls_settings(file: Path) -> dict[str, str]:
    """Return the properties zookeeper.ssl.* of a file, such as a broker's, with TLS enabled.

    Certificates without a directory lie beside it.
    """
    from broker.config import load_file  # late: few commands read a file of settings

    texts = {name: text for name, text in load_file(file).items() if name.startswith(_TLS)}
    if unknown := texts.keys() - {_TLS_ENABLED, *_TLS_FILES}:
        raise ConfigError(f"{file}: no property is named {min(unknown)}")
    if not texts:
        raise ConfigError(f"{file} has none of the properties {_TLS}*")
    found = {name: str(file.parent / texts[name]) for name in _TLS_FILES if texts.get(name)}
    return {_TLS_ENABLED: "true"} | found


def security_in(
    credential: str | Path | None, tls_config: str | Path | None
) -> ZooKeeperSecurity | None:
    """Return the security of files: of `read_credential`, and of `read_tls_settings`."""
    if credential is None and tls_config is None:
        return None
    known = None if credential is None else read_credential(Path(credential).expanduser())
    if tls_config is None:
        return ZooKeeperSecurity(known)
    texts = read_tls_settings(Path(tls_config).expanduser())
    ca, cert, key = (Path(texts[name]) if name in texts else None for name in _TLS_FILES)
    return ZooKeeperSecurity(known, tls=TlsFiles(ca, cert, key, "zookeeper."))


def tls_files_of(config: SecuritySettings) -> TlsFiles | None:
    """Return the files of connections that settings have encrypted, None for plain ones."""
    files = TlsFiles(config.zk_tls_ca, config.zk_tls_cert, config.zk_tls_key, "zookeeper.")
    if config.zk_tls:
        return files
    if any(files[:3]):
        raise ConfigError(f"{_TLS}* has no effect without {_TLS_ENABLED}=true")
    return None


def make_credential(file: Path) -> None:
    """Write a credential of a random password, for its owner alone, unless there is one."""
    with suppress(FileExistsError):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as made:
            made.write(f"pylogctl:{secrets.token_urlsafe(32)}\n")


def found_security(hosts: Iterable[tuple[str, int]]) -> ZooKeeperSecurity:
    """Return the credential of an embedded server at a port of this machine, if it is one's own.

    The system tells in which directory a process runs only to its user, and to root. Without /proc
    none is found.
    """
    ports = {port for host, port in hosts if host in _LOOPBACK}
    if not ports:
        return ZooKeeperSecurity()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, KeyError, TypeError, ConfigError):
            directory = (process / "cwd").readlink()
            note = json.loads((directory / NOTE_NAME).read_bytes())
            port, is_it = note["port"], process.name == str(note["pid"])
            if port in ports and is_it and _listens(process.stat().st_uid, port):
                return ZooKeeperSecurity(read_credential(directory / SECRET_NAME))
    return ZooKeeperSecurity()


def _listens(user: int, port: int) -> bool:
    """Return whether a user has a port of this machine; else anybody could plant a credential."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, _, state, _, _, _, owner, *_ = line.split()
            if (state, int(local.rpartition(":")[2], 16), int(owner)) == (_LISTEN, port, user):
                return True
    return False


def read_credential(file: Path) -> ZooKeeperCredential:
    """Return the credential of a file with a line `user:password`, which no other user may read.

    Further lines are others that it has besides.
    """
    try:
        with file.open("rb") as opened:
            found = os.fstat(opened.fileno())
            text = opened.read(_MAX_CREDENTIAL_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise ConfigError(f"cannot read ZooKeeper's credential {file}: {reason}") from error
    if is_open_to_others(file, found):
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigError(
            f"{file} has a credential, and other users may read it (mode {mode:04o})",
            hints=[f"try: chmod 600 {file}"],
        )
    parts = [line.strip().partition(":") for line in text.splitlines() if line.strip()]
    if not (parts and all(map(all, parts))) or len(text) > _MAX_CREDENTIAL_BYTES:
        raise ConfigError(f"{file} must have lines user:password, ZooKeeper's credentials")
    first, *others = [ZooKeeperCredential(user, password) for user, _, password in parts]
    return replace(first, others=tuple(others))

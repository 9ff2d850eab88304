"""How a session proves to ZooKeeper who it is, and whether it protects the nodes that it makes."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from broker.errors import ConfigError

NOTE_NAME = "server.json"
"""The file where an embedded server, in its working directory, tells its port."""
SECRET_NAME = "zk.secret"
"""The file of its clients' credential beside it."""

_LOOPBACK = frozenset(("localhost", "127.0.0.1"))
_MAX_CREDENTIAL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Credential:
    """A user of ZooKeeper, by its digest scheme."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    """What a session proves itself with, by default nothing.

    `sets_acls`: give nodes the ACL of their path; None: if the cluster's own nodes have theirs.
    """

    credential: Credential | None = None
    sets_acls: bool | None = None


class SecuritySettings(Protocol):
    """The settings of a broker, producer or consumer that are about its ZooKeeper's security."""

    @property
    def zk_credential_file(self) -> Path | None:
        """The file of `read_credential`."""


def security_of(
    config: SecuritySettings, *, sets_acls: bool | None = None
) -> ZooKeeperSecurity | None:
    """Return the security that settings ask for, None if they ask for none."""
    file = config.zk_credential_file
    if file is not None:
        return ZooKeeperSecurity(read_credential(file), sets_acls)
    if sets_acls:
        raise ConfigError(
            "zookeeper.set.acl=true needs zookeeper.credential.file: nodes are closed to all but "
            "the user of a credential"
        )
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
            if note["port"] in ports and process.name == str(note["pid"]):
                return ZooKeeperSecurity(read_credential(directory / SECRET_NAME))
    return ZooKeeperSecurity()


def read_credential(file: Path) -> Credential:
    """Return the credential of a file with a line `user:password`, which no other user may read."""
    try:
        with file.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            text = opened.read(_MAX_CREDENTIAL_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise ConfigError(f"cannot read ZooKeeper's credential {file}: {reason}") from error
    if mode & 0o077:
        raise ConfigError(
            f"{file} has a credential, and other users may read it (mode {mode:04o})",
            hints=[f"try: chmod 600 {file}"],
        )
    user, colon, password = text.strip().partition(":")
    if not (user and colon and password) or "\n" in password or len(text) > _MAX_CREDENTIAL_BYTES:
        raise ConfigError(f"{file} must have one line user:password, ZooKeeper's credential")
    return Credential(user, password)

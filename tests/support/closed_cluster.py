"""A cluster with everything on that keeps strangers out, for tests that are also of an open one.

Brokers listen at TLS only, let in who has logged in, judge by rules, limit users, write an audit
log, and close their nodes in ZooKeeper. `pytest --closed` runs all tests of clusters so, else only
those marked `both_ways` do, beside an open one.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

from broker.admin.rules import add_rules
from broker.admin.users import set_credential
from broker.properties import Secret
from broker.security.client_security import ClientSecurity
from broker.security.principal import Principal
from broker.security.rules import Operation, Rule, parse_pattern
from broker.security.scram import make_credential
from broker.zk.paths import parse_connect_string
from broker.zk.security import ZooKeeperCredential, ZooKeeperSecurity, found_security
from broker.zk.session import Session
from tests.support.certificates import Certificates

_Config = TypeVar("_Config", bound=ClientSecurity)
_USER = "tester"
_PLENTY = "1000000000"


class OpenCluster:
    """Nothing is configured."""

    def __init__(self) -> None:
        self.client: dict[str, str] = {}
        """Properties of clients."""
        self.environment: dict[str, str] = {}
        """Of the command line."""
        self.security: ClientSecurity | None = None

    def arguments(self, given: Sequence[str]) -> list[str]:
        """Return the arguments of a command with those that let it in."""
        return list(given)

    def context(self, name: str, zookeeper: str) -> str:
        """Return the lines of a configuration file for a context of the command line."""
        return f'[contexts.{name}]\nzookeeper = "{zookeeper}"\n'

    def secured(self, config: _Config) -> _Config:
        """Return the settings of a client with those that let it in."""
        names = [] if self.security is None else [one.name for one in fields(ClientSecurity)]
        return replace(config, **{name: getattr(self.security, name) for name in names})

    def broker_properties(self, directory: Path, port: int | None = None) -> dict[str, str]:
        """Return the properties of a broker with its directory, perhaps advertised with a port."""
        if port is None:
            return {}
        return {"hostname": "127.0.0.1", "advertised.port": str(port)}


class ClosedCluster(OpenCluster):
    """Everything is on, and one user may do everything with topics and the cluster.

    Args:
        zookeeper: connect string of a cluster that has no broker yet.
        directory: for certificates and credentials.
    """

    def __init__(self, zookeeper: str, directory: Path) -> None:
        super().__init__()
        directory.mkdir(exist_ok=True)
        self.certificates = Certificates(directory)
        hosts = parse_connect_string(zookeeper).hosts
        credential = found_security(hosts).credential or ZooKeeperCredential(
            "b", secrets.token_hex()
        )
        self._credential_file = directory / "zk.secret"
        self._credential_file.touch(0o600)
        self._credential_file.write_text(f"{credential.user}:{credential.password}\n")
        self._password_file = directory / "password"
        self._password_file.touch(0o600)
        password = Secret(secrets.token_hex())
        self._password_file.write_text(password.reveal())
        patterns = (parse_pattern(one)[0] for one in ("topic:*", "group:*", "cluster"))
        rules = [Rule(Principal("User", _USER), Operation.ALL, one) for one in patterns]
        with Session(zookeeper, security=ZooKeeperSecurity(credential, sets_acls=True)) as session:
            set_credential(session, _USER, make_credential(password, 16_384))
            add_rules(session, rules, is_dry_run=False)
        self.security = ClientSecurity.of_files(
            ca=self.certificates.ca_file, user=_USER, password=password.reveal()
        )
        self.client = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.certificates.ca_file),
            "sasl.username": _USER,
            "sasl.password": password.reveal(),
        }
        self._contexts: dict[str, str] = {}
        self._file = directory / "pylogctl" / "config.toml"
        self._file.parent.mkdir()
        self.environment = {"XDG_CONFIG_HOME": str(directory)}

    def arguments(self, given: Sequence[str]) -> list[str]:
        found = list(given)
        for at, one in enumerate(found[:-1]):
            if one in ("-Z", "--zookeeper"):
                name = re.sub(r"\W", "-", found[at + 1])
                self._contexts.setdefault(name, self.context(name, found[at + 1]))
                self._file.write_text("".join(self._contexts.values()))
                found[at : at + 2] = ["-c", name]
        if "-b" in found:
            found += ["--tls-ca", str(self.certificates.ca_file), "--user", _USER]
            found += ["--password-file", str(self._password_file)]
        return found

    def context(self, name: str, zookeeper: str) -> str:
        return super().context(name, zookeeper) + (
            f'tls_ca = "{self.certificates.ca_file}"\n'
            f'user = "{_USER}"\n'
            f'password_file = "{self._password_file}"\n'
            f'zk_credential = "{self._credential_file}"\n'
        )

    def broker_properties(self, directory: Path, port: int | None = None) -> dict[str, str]:
        advertised = {} if port is None else {"advertised.listeners": f"SECURE=127.0.0.1:{port}"}
        return {
            "port": "-1",
            "listeners": "SECURE=tls://127.0.0.1:0",
            "ssl.certificate.location": str(self.certificates.certificate),
            "ssl.key.location": str(self.certificates.key),
            "ssl.ca.location": str(self.certificates.ca_file),
            "inter.broker.listener.name": "SECURE",
            "authentication.required": "true",
            "acl.enable": "true",
            "zookeeper.credential.file": str(self._credential_file),
            "zookeeper.set.acl": "true",
            "quota.producer.default": _PLENTY,
            "quota.consumer.default": _PLENTY,
            "quota.request.default": "100000",
            "audit.log": str(directory / "audit.jsonl"),
            **advertised,
        }


def cluster_access(zookeeper: str, directory: Path, *, is_closed: bool) -> OpenCluster:
    """Return how a new cluster is reached, with what that needs in ZooKeeper."""
    return ClosedCluster(zookeeper, directory / "access") if is_closed else OpenCluster()

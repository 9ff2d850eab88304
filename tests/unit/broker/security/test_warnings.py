from __future__ import annotations

from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.security.warnings import warnings_of

CERTIFICATES = {
    "listeners": "SECURE=tls://127.0.0.1:0",
    "ssl_certificate": Path("broker.pem"),
    "ssl_ca": Path("ca.pem"),
    "ssl_client_auth": "required",
}


def config(**settings: object) -> BrokerConfig:
    return BrokerConfig(**{"zookeeper": "zk1:2181", **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "users", "warning"),
    [
        ({}, {"alice"}, None),
        ({"enforces_rules": True}, (), "super.users is empty"),
        ({"super_users": "User:ANONYMOUS"}, (), None),
        ({"super_users": "User:alice"}, {"alice"}, None),
        ({"super_users": "User:alice"}, {"bob"}, "no password in ZooKeeper (pylogctl user add"),
        ({"super_users": "User:alice"}, None, None),
        ({"super_users": "User:alice", "zookeeper": ""}, None, "no password in ZooKeeper"),
        ({"super_users": "User:CN=ops,OU=it"}, (), "no TLS listener asks clients for certificates"),
        ({"super_users": "User:CN=ops"}, None, "no TLS listener asks clients for certificates"),
        ({"super_users": "User:CN=ops", **CERTIFICATES}, (), None),
        ({"super_users": "User:ops", **CERTIFICATES}, (), "no password in ZooKeeper"),
        (
            {"super_users": "User:ops", "ssl_principal_rules": "RULE:CN=(.*)/$1/", **CERTIFICATES},
            (),
            None,
        ),
        ({"host": "0.0.0.0"}, (), None),
        ({"host": "0.0.0.0"}, {"alice"}, "logins are accepted at PLAIN=plain://0.0.0.0:9092"),
        (
            {"host": "0.0.0.0", "requires_authentication": True},
            None,
            "logins are accepted at PLAIN",
        ),
        ({"host": "0.0.0.0", "sasl_mechanisms": ""}, {"alice"}, None),
        ({"port": -1, **CERTIFICATES}, {"alice"}, None),
    ],
)
def test_settings_are_warned_of_when_nobody_can_have_meant_them(
    settings: dict[str, object], users: set[str] | None, warning: str | None
) -> None:
    found = list(warnings_of(config(**settings), users))

    assert len(found) == (warning is not None)
    assert (warning or "") in "".join(found)

"""The web view of a cluster with rules, as the user that it runs as sees it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import pylogctl
from broker import Broker
from broker.admin import users
from broker.properties import Secret
from broker.security.principal import Principal
from broker.security.rules import CLUSTER, Operation, Resource, ResourceType, Rule, StoredRules
from broker.security.scram import make_credential
from broker.zk.session import Session
from broker.zk.settings import change_rules
from tests.support.web_site import served

pytestmark = pytest.mark.zookeeper

PASSWORD = "pencil"
ALICE = Principal("User", "alice")
PATHS = (
    *("/", "/topics", "/topics/hidden1", "/brokers", "/groups", "/health"),
    *("/topics/hidden1/messages", "/search?q=hid", "/values?topic=hidden1"),
    *("/api/v1/topics", "/api/v1/topics/hidden1", "/api/v1/brokers", "/api/v1/cluster"),
)


def test_pages_when_the_user_may_not_describe_a_topic_then_do_not_show_it(
    start_broker: Callable[..., Broker], zookeeper: str, session: Session
) -> None:
    for name in ("root", "alice"):
        users.set_credential(session, name, make_credential(Secret(PASSWORD), 4096))
    shown = Resource(ResourceType.TOPIC, "shown1")
    rules = [Rule(ALICE, Operation.READ, shown), Rule(ALICE, Operation.DESCRIBE, CLUSTER)]
    change_rules(session, lambda _: StoredRules().adding(rules).encode())
    broker = start_broker(zookeeper=zookeeper, enforces_rules=True, super_users="User:root")
    address = f"127.0.0.1:{broker.port}"
    with pylogctl.connect(address, user="root", password=PASSWORD) as root:
        root.send("hidden1", "secret of root")
        root.send("shown1", "hello")

    with (
        pylogctl.connect(address, user="alice", password=PASSWORD) as alice,
        served(alice) as site,
    ):
        site.site.sampler.look()
        site.site.sampler.look()
        found = {path: site.get(path)[:2] for path in PATHS}
        missing = site.get("/topics/missing")
    texts = {path: text for path, (_, text) in found.items() if "hidden1" not in path}
    assert [path for path, text in texts.items() if "hidden1" in text] == []
    assert "secret of root" not in "".join(text for _, text in found.values())
    assert "shown1" in texts["/topics"]
    assert found["/topics/hidden1"][0] == missing[0] == 404
    texts_of = [found["/topics/hidden1"][1].replace("hidden1", "missing"), missing[1]]
    assert len({re.sub("request [0-9a-f]+", "", one) for one in texts_of}) == 1

"""Names that ZooKeeper refuses: nobody makes such a topic, and one that is there harms no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.protocol.codec import encode
from broker.server.broker import Broker
from broker.zk.session import Session
from tests.integration.broker.server.peer import Peer
from tests.support.command_line import Invoke

pytestmark = pytest.mark.zookeeper

StartBroker = Callable[..., Broker]
EMOJI = "logs-\N{GRINNING FACE}"
ONE = encode([b"x"])


def test_topic_when_its_name_has_an_emoji_then_no_client_makes_it_and_others_are_registered(
    start_broker: StartBroker, zookeeper: str, session: Session, invoke: Invoke
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    at = ("-b", f"127.0.0.1:{broker.port}")
    refusals = [
        invoke("produce", EMOJI, *at, stdin=b"x\n"),
        invoke("topic", "create", EMOJI, *at),
        invoke("topic", "create", EMOJI, "--replication-factor", "1", "-Z", zookeeper),
    ]
    for one in refusals:
        assert (one.status, "U+1F600" in one.stderr) == (2, True), one
    with Peer(broker.port) as old_client:
        old_client.send_bytes(b"")
        old_client.produce(EMOJI, ONE)
        assert old_client.is_closed()
    assert invoke("produce", "plain", *at, stdin=b"x\n").status == 0
    assert session.children("/brokers/topics") == ["plain"]
    broker.stop()
    start_broker(zookeeper=zookeeper)


@pytest.mark.parametrize("way", ["-b", "-Z"])
def test_topic_when_it_is_on_disk_then_others_are_registered_and_health_names_it_until_its_deletion(
    start_broker: StartBroker,
    zookeeper: str,
    session: Session,
    invoke: Invoke,
    tmp_path: Path,
    way: str,
) -> None:
    broker = start_broker()
    for topic in ("plain", "other"):
        with Peer(broker.port) as peer:
            peer.publish(topic, ONE)
    broker.stop()
    data = tmp_path / "data"
    (data / "plain_0").rename(data / f"{EMOJI}_0")  # as a former release has left it
    for file in filter(Path.is_file, data.iterdir()):
        file.write_bytes(file.read_bytes().replace(b"plain", EMOJI.encode()))

    broker = start_broker(zookeeper=zookeeper)
    at = (way, zookeeper if way == "-Z" else f"127.0.0.1:{broker.port}")
    assert session.children("/brokers/topics") == ["other"]
    health = invoke("cluster", "health", *at)
    assert health.status == 12
    assert f"broker 0 unregistered: {EMOJI}[0-0]: ZooKeeper takes no U+1F600" in health.text
    words = ("consume", EMOJI, "--from-beginning", "-n", "1", "-b", f"127.0.0.1:{broker.port}")
    assert invoke(*words).stdout == b"x\n"
    assert invoke("topic", "delete", EMOJI, "--data", "--yes", "--confirm", EMOJI, *at).status == 0
    assert not (data / f"{EMOJI}_0").exists()
    assert invoke("cluster", "health", *at).status == 0


@pytest.mark.parametrize("name", ["g-\N{GRINNING FACE}", "g-\ue000", "g\u202e", "..", "g\x07"])
def test_group_when_zookeeper_refuses_its_name_then_the_command_says_so(
    start_broker: StartBroker, zookeeper: str, invoke: Invoke, name: str
) -> None:
    start_broker(zookeeper=zookeeper)
    for words in (("consume", ".*"), ("consume", "t")):
        result = invoke(*words, "--group", name, "--from-beginning", "-Z", zookeeper)
        assert result.status == 2, result
        assert "invalid group name" in result.stderr


@pytest.mark.parametrize("name", ["a\x01b", "a\N{GRINNING FACE}", "a\ud800", "a/../b"])
def test_node_when_zookeeper_refuses_its_name_then_the_command_says_so(
    zookeeper: str, invoke: Invoke, name: str
) -> None:
    for words in (("create", f"/{name}", "value"), ("get", f"/{name}")):
        result = invoke("zk", *words, "-Z", zookeeper)
        assert result.status == 2, result
        assert "invalid path" in result.stderr

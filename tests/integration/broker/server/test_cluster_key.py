"""The key of the cluster at a broker: whose file it may be, and what is done without the node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.errors import ConfigError
from broker.log.data_directory import CLUSTER_KEY_NAME
from broker.zk import paths
from broker.zk.session import Session
from tests.integration.broker.factories import BrokerFactory
from tests.support.broker_proof import give_key
from tests.support.waiting import wait_until


def readable_by_group(file: Path) -> None:
    file.chmod(0o640)


def readable_by_all(file: Path) -> None:
    file.chmod(0o604)


def link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (readable_by_group, r"can be read by others \(mode 0640\)"),
        (readable_by_all, r"can be read by others \(mode 0604\)"),
        (link, "it is a symbolic link, and none is followed"),
        (cut, CLUSTER_KEY_NAME),
    ],
    ids=["0640", "0604", "link", "cut"],
)
def test_broker_when_the_file_of_the_key_may_be_anothers_then_does_not_start(
    start_broker: BrokerFactory, tmp_path: Path, spoil: Callable[[Path], None], sentence: str
) -> None:
    file = give_key(tmp_path / "data") / CLUSTER_KEY_NAME
    spoil(file)
    before = file.read_bytes()

    with pytest.raises(ConfigError, match=sentence) as failure:
        start_broker()
    assert before.decode() not in str(failure.value)
    assert file.read_bytes() == before


@pytest.mark.zookeeper
def test_key_when_its_node_is_lost_or_garbage_then_the_broker_keeps_what_it_knows(
    start_broker: BrokerFactory,
    zookeeper: str,
    session: Session,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    before, _ = session.get(paths.CLUSTER_KEYS)
    ids = broker.keys.key_ids
    session.delete(paths.CLUSTER_KEYS)
    wait_until(lambda: session.exists(paths.CLUSTER_KEYS) is not None, "the node")
    assert session.get(paths.CLUSTER_KEYS)[0] == before

    session.set(paths.CLUSTER_KEYS, b"garbage")
    wait_until(lambda: "those of before stay in use" in caplog.text, "the broker having seen it")
    assert broker.keys.key_ids == ids
    assert "garbage" not in caplog.text

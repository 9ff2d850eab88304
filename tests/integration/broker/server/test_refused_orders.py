"""Orders of the controller that a full disk refuses to carry out."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from broker.errors import NO_ERROR
from broker.files import write_atomically
from broker.log.replica_files import EPOCH_FILE_NAME
from tests.integration.broker.server.scripted_cluster import ScriptedCluster
from tests.integration.broker.server.test_replication import ONE
from tests.integration.broker.server.test_replication import cluster as cluster
from tests.support.waiting import wait_until


def test_order_to_lead_when_the_disk_cannot_note_the_epoch_then_carried_out_once_it_can(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.decide(0, (0, 1, 2))
    assert cluster.publish(0, ONE).error == NO_ERROR
    is_full = True

    def refuse(path: Path, content: bytes) -> None:
        if is_full and path.name == EPOCH_FILE_NAME:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_atomically(path, content)

    monkeypatch.setattr("broker.log.data_directory.files.write_atomically", refuse)
    cluster.decide(1, (0, 1, 2))
    assert cluster.publish(1, ONE).error != NO_ERROR
    cluster.reconnect(1)

    is_full = False

    def leads() -> bool:
        error = cluster.publish(1, ONE).error
        if error != NO_ERROR:
            cluster.reconnect(1)
        return error == NO_ERROR

    wait_until(leads, "the term of the new leader")

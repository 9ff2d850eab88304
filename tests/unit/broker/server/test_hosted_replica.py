"""What a replica of a broker makes of its log's events."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from unittest.mock import Mock

import pytest

from broker.errors import StorageError
from broker.log.replica_files import EpochFile
from broker.protocol.codec import encode
from broker.replication.leader import Leader
from broker.server.cluster.replica_table import HostedReplica
from tests.support.log_doubles import FaultyDisk
from tests.support.log_fixtures import LogFactory

ONE = encode([b"one message"])


def test_leader_when_its_disk_refuses_then_another_is_to_lead_at_once(
    make_log: LogFactory, faulty_disk: FaultyDisk
) -> None:
    log, isr_due = make_log(disk=faulty_disk.as_disk()), Event()
    log.replicate(EpochFile(log.directory))
    hosted = HostedReplica(Mock(role=Mock(spec=Leader)), log, isr_due)

    def is_due_after_refusal() -> bool:
        isr_due.clear()
        faulty_disk.room_bytes = 1
        with pytest.raises(StorageError):
            hosted.log.append(ONE, 1)
        return isr_due.is_set()

    assert is_due_after_refusal()
    assert not is_due_after_refusal()
    faulty_disk.room_bytes = None
    log.append(ONE, 1)
    assert is_due_after_refusal()


def test_leader_when_its_epoch_cannot_be_written_then_another_is_to_lead_at_once(
    make_log: LogFactory, tmp_path: Path
) -> None:
    log, isr_due = make_log(), Event()
    log.replicate(EpochFile(tmp_path / "none"))
    hosted = HostedReplica(Mock(role=Mock(spec=Leader)), log, isr_due)
    log.begin_epoch(1, 0)
    assert not isr_due.is_set()

    hosted.log.settle_epochs()
    assert isr_due.is_set()

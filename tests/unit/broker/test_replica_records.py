"""Records of replicas: what a broker keeps beside a log, and requests carry."""

from __future__ import annotations

import pytest

from broker.cluster_state import PartitionState
from broker.replica_records import ReplicaRecord
from broker.topic import NO_HOME, TopicPartition

RECORD = ReplicaRecord(
    TopicPartition("t", 1, 0), "id", (1, 2), PartitionState(1, 5, (1, 2), 3), 7, {"a": "b"}
)


@pytest.mark.parametrize("home", [1, NO_HOME])
def test_record_when_encoded_and_decoded_then_is_the_same(home: int) -> None:
    record = RECORD._replace(partition=RECORD.partition._replace(home=home))

    assert ReplicaRecord.decode(record.encode()) == record


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b"[" * 100_000,
        RECORD.encode().replace(b'"1-0"', b"1"),
        RECORD.encode().replace(b'"1-0"', b'"1-"'),
        RECORD.encode().replace(b"[1,2]", b"1"),
        RECORD.encode().replace(b"[1,2]", b"[1e999]"),
        RECORD.encode().replace(b'{"a":"b"}', b"7"),
    ],
)
def test_record_when_a_document_is_none_then_raises_value_error(document: bytes) -> None:
    with pytest.raises(ValueError, match="no record of a replica"):
        ReplicaRecord.decode(document)

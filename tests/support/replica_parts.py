"""The response to a replica fetch that has come as a whole."""

from __future__ import annotations

from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import ReplicaPart, ReplicaParts


def read_replica_parts(reader: Reader) -> list[ReplicaPart]:
    parts = ReplicaParts(reader)
    pieces, taken_bytes = parts.take(reader.rest, is_end=True)
    reader.data(taken_bytes)
    return [one.part for one in pieces]

"""One request that brings parcels to a broker, in the best way the broker knows.

In the thread of its lane. Knows nothing of queues and retries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from broker.client.connection import Connection
from broker.errors import NO_ERROR, BrokerError, ProtocolError, error_for_code
from broker.producer.accumulator import Parcel
from broker.producer.encoder import Packer
from broker.producer.link import SendRules
from broker.producer.readable import commit_timeout_ms, latest_07
from broker.protocol.extension_requests import Acks, PartitionSet, PublishRequest
from broker.protocol.requests import MultiProduceRequest, ProduceRequest
from broker.protocol.responses import decode_publish_response
from broker.topic import TopicPartition


class Outcome(NamedTuple):
    """What became of one parcel: its offset, -1 where the broker does not tell, or why not."""

    base_offset: int
    error: BrokerError | None = None


_HANDED_OVER = Outcome(-1)


class Publisher:
    """Publishes parcels to one broker.

    Args:
        packer: makes message sets.
        rules: what acknowledgement to ask for, and how long it may take.
    """

    def __init__(self, packer: Packer, rules: SendRules) -> None:
        self._packer = packer
        self._acks = rules.acks
        self._timeout_ms = commit_timeout_ms(rules.timeout_s)
        self.ends: dict[TopicPartition, int] = {}
        """Up to where what was sent reaches in each partition; 0 where that is unknown."""

    def pack(self, parcel: Parcel) -> bytes:
        """Return the message set of a parcel: that of each batch, one behind the other."""
        sets = []
        for batch in parcel.batches:
            message_set, batch.is_wrapped = self._packer.pack(
                parcel.partition.topic, batch.payloads
            )
            batch.set_bytes = len(message_set)
            sets.append(message_set)
        return sets[0] if len(sets) == 1 else b"".join(sets)

    def publish(
        self, connection: Connection, parcels: Sequence[tuple[TopicPartition, bytes]]
    ) -> list[Outcome]:
        """Send parcels in one request, and wait for what is acknowledged.

        Args:
            connection: to the broker, open.
            parcels: partition and message set of each.

        Returns:
            What became of each.

        Raises:
            BrokerError: the request failed as a whole.
        """
        if connection.hello() is None:
            return self._produce_07(connection, parcels)
        sets = tuple(PartitionSet(*parcel) for parcel in parcels)
        request = PublishRequest(self._acks, self._timeout_ms, sets)
        if self._acks is Acks.NONE:
            connection.send_extension(request)
            for partition, _ in parcels:
                self.ends.setdefault(partition, 0)
            return [_HANDED_OVER] * len(parcels)
        results = decode_publish_response(connection.call(request))
        if len(results) != len(parcels):
            connection.close()
            raise ProtocolError(f"{len(results)} results came for {len(parcels)} sets of a publish")
        outcomes = []
        for (partition, message_set), (_, code, base_offset, text) in zip(
            parcels, results, strict=True
        ):
            if code == NO_ERROR:
                self.ends[partition] = base_offset + len(message_set)
                outcomes.append(Outcome(base_offset))
            else:
                outcomes.append(Outcome(-1, error_for_code(code, text)))
        return outcomes

    def _produce_07(
        self, connection: Connection, parcels: Sequence[tuple[TopicPartition, bytes]]
    ) -> list[Outcome]:
        """Hand parcels over to a broker of 0.7, which says nothing."""
        for partition, _ in parcels:
            if partition not in self.ends:
                self.ends[partition] = latest_07(connection, partition)
        produces = tuple(
            ProduceRequest(partition.topic, partition.index, message_set)
            for partition, message_set in parcels
        )
        connection.send_request(
            produces[0] if len(produces) == 1 else MultiProduceRequest(produces)
        )
        for partition, message_set in parcels:
            self.ends[partition] += len(message_set)
        return [_HANDED_OVER] * len(parcels)

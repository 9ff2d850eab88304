"""What all that sends the messages of one producer uses."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker.client.cluster import Cluster, Connect
from broker.client.counts import Ledger, ProducerCounts
from broker.producer.delivery import Failures, OnDelivery
from broker.producer.encoder import Encoder, Packer, bytes_encoder
from broker.producer.partitioner import Partitioner, TopicPartitions, hash_partitioner
from broker.producer.settings import DEFAULTS, ProducerSettings
from broker.producer.stamper import Stamper


@dataclass(eq=False, kw_only=True)
class Parts:
    """What all that sends the messages of one producer uses; it does not know the producer.

    `ledger` is where each thread that sends opens its counts; `failures` counts what the program
    has not read; `stamper` puts envelopes in front of payloads before they are queued.
    """

    cluster: Cluster
    connect: Connect
    settings: ProducerSettings = DEFAULTS
    partitioner: Partitioner = hash_partitioner
    encoder: Encoder = bytes_encoder
    on_delivery: OnDelivery | None = None
    ledger: Ledger[ProducerCounts] = field(default_factory=lambda: Ledger(ProducerCounts))
    failures: Failures = field(default_factory=Failures)
    stamper: Stamper | None = None
    partitions: TopicPartitions = field(init=False)
    packer: Packer = field(init=False)

    @property
    def unreported(self) -> Failures | None:
        """Return where failures are counted; None if the program gets reports."""
        return None if self.on_delivery is not None else self.failures

    def __post_init__(self) -> None:
        self.partitions = TopicPartitions(self.cluster, self.settings, self.partitioner)
        self.packer = Packer(self.settings, self.encoder)

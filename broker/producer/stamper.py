"""Puts envelopes in front of a producer's messages: time, host, and a sequence for each topic."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from itertools import count

from broker.client.cluster import Cluster, Connect
from broker.client.schemas import SchemaClient
from broker.errors import UnsupportedVersionError
from broker.protocol.envelope import Envelope


class Stamper:
    """Puts envelopes in front of the messages of one producer. Safe for several threads.

    Args:
        is_wanted: whether a topic's messages get envelopes; called once for each topic.
    """

    def __init__(self, is_wanted: Callable[[str], bool] = lambda _: True) -> None:
        self._is_wanted = is_wanted
        self._host = socket.gethostname()
        self._producer = int.from_bytes(os.urandom(4), "big")
        self._sequences: dict[str, Iterator[int] | None] = {}

    def knows(self, topic: str) -> bool:
        """Return whether `stamp` does not ask about a topic, which may take a while."""
        return topic in self._sequences

    def stamp(self, topic: str, payloads: list[bytes]) -> list[bytes]:
        """Return payloads with envelopes of the present time, or as they are."""
        try:
            sequence = self._sequences[topic]
        except KeyError:
            numbers = count() if self._is_wanted(topic) else None
            sequence = self._sequences.setdefault(topic, numbers)
        if sequence is None:
            return payloads
        now_us, host, producer = time.time_ns() // 1000, self._host, self._producer
        return [
            Envelope(now_us, host, producer, next(sequence)).wrap(payload) for payload in payloads
        ]


def has_envelopes(cluster: Cluster, connect: Connect, topic: str) -> bool:
    """Return whether a topic's setting asks for envelopes; a broker is asked.

    False if they are too old to tell, `BrokerError` if none responds or may tell this user.
    """
    try:
        return SchemaClient(cluster, connect).contract(topic).has_envelopes
    except UnsupportedVersionError:
        return False

"""Produce requests of 0.7 on their way to the leader of a partition whose home this broker is.

Clients of 0.7 know a partition's home only. They get no response, as always; a message set that no
leader takes in time ends their connection, as one that the disk refuses does.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from broker.client.connection import Connection
from broker.clock import Clock
from broker.errors import (
    NO_ERROR,
    BrokerError,
    LeaderNotAvailableError,
    error_for_code,
)
from broker.protocol.extension_requests import Acks, PartitionSet, PublishRequest
from broker.protocol.responses import decode_publish_response
from broker.server.replica_manager import ReplicaManager

_DEADLINE_S = 20.0
"""Longer than it takes to elect a leader after a crash."""
_RETRY_S = 0.1
_TIMEOUT_S = 10.0
_CONNECT_TIMEOUT_S = 2.0
_WORKERS = 4


class Forwarder:
    """Sends message sets to the leaders of partitions.

    Args:
        replicas: know who leads.
        clock: for the deadline.
        broker_id: of this broker.
    """

    def __init__(self, replicas: ReplicaManager, clock: Clock, broker_id: int) -> None:
        self._replicas = replicas
        self._clock = clock
        self._broker_id = broker_id
        self._is_stopping = threading.Event()
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="forwarder")
        self._connections: dict[tuple[int, int], Connection] = {}
        """By worker, which alone uses it, and broker id."""

    def stop(self) -> None:
        """Give up what is under way, and end the threads."""
        self._is_stopping.set()
        self._workers.shutdown(cancel_futures=True)
        for connection in self._connections.values():
            connection.close()

    def produce(self, sets: list[PartitionSet]) -> Future[None]:
        """Have message sets appended by their leaders, in order.

        Args:
            sets: with bytes of their own.

        Returns:
            Done when all are appended; fails with a `BrokerError` if one is not.
        """
        return self._workers.submit(self._produce, sets)

    def _produce(self, sets: list[PartitionSet]) -> None:
        for one in sets:
            self._append(one)

    def _append(self, one: PartitionSet) -> None:
        """Have one set appended; again, until the deadline, where that may help.

        Raises:
            BrokerError: it was not appended, or it is not known whether it was.
        """
        give_up_s = self._clock.monotonic_s() + _DEADLINE_S
        while True:
            try:
                return self._attempt(one)
            except BrokerError as error:
                is_late = self._clock.monotonic_s() > give_up_s
                if not error.is_retriable or is_late or self._is_stopping.wait(_RETRY_S):
                    raise

    def _attempt(self, one: PartitionSet) -> None:
        leader_id = self._replicas.leader_id(one.partition)
        address = self._replicas.address_of(leader_id)
        if address is None:
            raise LeaderNotAvailableError(f"no broker that is live leads {one.partition}")
        key = threading.get_ident(), leader_id
        connection = self._connections.get(key)
        if connection is None or connection.address != address:
            if connection is not None:
                connection.close()
            connection = self._connections[key] = Connection(
                address,
                timeout_s=_TIMEOUT_S,
                connect_timeout_s=_CONNECT_TIMEOUT_S,
                client_id=f"broker-{self._broker_id}",
                retries_refused=False,
            )
        request = PublishRequest(Acks.WRITTEN, int(_TIMEOUT_S * 1000), (one,))
        try:
            (published,) = decode_publish_response(connection.call(request))
        except BrokerError:
            connection.close()
            raise
        if published.error != NO_ERROR:
            connection.close()  # on this one the leader may refuse all that follows
            raise error_for_code(published.error, published.text, published.base_offset)

"""What brokers have acknowledged as written and not as committed: where it ends, by term.

Whether it is still there is known once the partition's present leader has committed all it has, and
tells where each term ends in its log.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.errors import AcknowledgedLossError
from broker.leader_epochs import is_of_replicas
from broker.protocol.extension_requests import Acks
from broker.protocol.responses import NO_TERM
from broker.topic import TopicPartition

EndOfTerm = Callable[[TopicPartition, int], int]
"""Asks the leader of a partition where a term ends in its log. Raises `BrokerError`."""


class WrittenEnds:
    """The ends of what was acknowledged as written, of one producer."""

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, dict[int, int]] = {}
        self._former: list[tuple[TopicPartition, int]] = []

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have messages which are not known to be committed."""
        return list(self._ends)

    def has(self, partition: TopicPartition) -> bool:
        """Return whether a partition is one of them."""
        return partition in self._ends

    @property
    def has_former_terms(self) -> bool:
        """Return whether a partition went on in another term: what the former has is unsure."""
        return bool(self._former)

    def note(self, partition: TopicPartition, acks: Acks, term: int, end: int) -> None:
        """Note the end of an acknowledged set."""
        if acks is Acks.COMMITTED or (acks is Acks.AUTO and is_of_replicas(term)):
            return
        terms = self._ends.get(partition)
        if terms is None:
            terms = self._ends[partition] = {}
        elif term not in terms:
            self._former += [(partition, one) for one in terms if one != NO_TERM]
        terms[term] = end

    def note_stopped(self, partitions: set[TopicPartition]) -> None:
        """Note that the broker of partitions has stopped in good order.

        It has flushed what it had: all there is without replicas. Of a partition with replicas
        others lead now, which may lack the end.
        """
        for partition in partitions & self._ends.keys():
            terms = self._ends[partition]
            for term in [one for one in terms if one == NO_TERM or not is_of_replicas(one)]:
                del terms[term]
            if not terms:
                del self._ends[partition]
        self._former = [one for one in self._former if one[1] in self._ends.get(one[0], ())]

    def prove_former(self, end_of_term: EndOfTerm) -> None:
        """Ask where the former terms of partitions end, and forget them.

        Raises:
            AcknowledgedLossError: something that was acknowledged is not there.
            BrokerError: there is no answer; the question remains.
        """
        while self._former:
            partition, term = self._former[0]
            _validate(partition, self._ends[partition][term], end_of_term(partition, term))
            del self._ends[partition][term], self._former[0]

    def prove(
        self, partition: TopicPartition, term: int, log_end: int, end_of_term: EndOfTerm
    ) -> None:
        """Take note that the leader has committed all that it has of a partition.

        Args:
            partition: which one.
            term: the leader's.
            log_end: of its log.
            end_of_term: for other terms.

        Raises:
            AcknowledgedLossError: something that was acknowledged is not there.
        """
        terms = self._ends.pop(partition)
        self._former = [one for one in self._former if one[0] != partition]
        for one, end in terms.items():
            if one != NO_TERM:
                _validate(partition, end, log_end if one == term else end_of_term(partition, one))


def _validate(partition: TopicPartition, end: int, found: int) -> None:
    if found < end:
        where = f"the log has nothing of that behind offset {found}" if found > 0 else "it is gone"
        raise AcknowledgedLossError(
            f"{partition}: messages before offset {end} were acknowledged as written, and {where}: "
            "its broker failed before they were safe; send them again, or ask for acks -1"
        )

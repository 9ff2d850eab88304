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
        self._last: dict[TopicPartition, tuple[int, int]] = {}  # term and end
        self._former: dict[tuple[TopicPartition, int], int] = {}

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have messages which are not known to be committed."""
        return list(dict.fromkeys([*self._last, *(partition for partition, _ in self._former)]))

    @property
    def has_former_terms(self) -> bool:
        """Return whether a partition went on in another term: what the former has is unsure."""
        return bool(self._former)

    def note(self, partition: TopicPartition, acks: Acks, term: int, end: int) -> bool:
        """Note the end of an acknowledged set; return whether a term of its partition is over."""
        if acks is Acks.COMMITTED or (acks is Acks.AUTO and is_of_replicas(term)):
            return False
        last = self._last.get(partition)
        self._last[partition] = term, end
        if last is None or last[0] in (term, NO_TERM):
            return False
        self._former[partition, last[0]] = last[1]
        return True

    def note_stopped(self, partitions: set[TopicPartition]) -> None:
        """Note that the broker of partitions has stopped in good order.

        It has flushed what it had: all of the last term without replicas. Of a partition with
        replicas others lead now, which may lack the end.
        """
        for partition in partitions & self._last.keys():
            if not is_of_replicas(self._last[partition][0]):
                del self._last[partition]

    def prove_former(self, end_of_term: EndOfTerm) -> None:
        """Ask where the former terms of partitions end, and forget them.

        Raises:
            AcknowledgedLossError: something that was acknowledged is not there.
            BrokerError: there is no answer; the question remains.
        """
        for (partition, term), end in list(self._former.items()):
            found = end_of_term(partition, term)
            del self._former[partition, term]
            _validate(partition, end, found)

    def prove(
        self, partition: TopicPartition, term: int, log_end: int, end_of_term: EndOfTerm
    ) -> None:
        """Take note that the leader has committed all that it has of a partition.

        Args:
            partition: which one.
            term: the leader's.
            log_end: of its log.
            end_of_term: for another term.

        Raises:
            AcknowledgedLossError: something that was acknowledged is not there.
        """
        last, end = self._last.pop(partition, (NO_TERM, 0))
        if last != NO_TERM:
            _validate(partition, end, log_end if last == term else end_of_term(partition, last))


def _validate(partition: TopicPartition, end: int, found: int) -> None:
    if found < end:
        where = f"the log has nothing of that behind offset {found}" if found > 0 else "it is gone"
        raise AcknowledgedLossError(
            f"{partition}: messages before offset {end} were acknowledged as written, and {where}: "
            "its broker failed before they were safe; send them again, or ask for acks -1"
        )

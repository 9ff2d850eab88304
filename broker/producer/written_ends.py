"""The ends of sets that brokers have acknowledged as written and not as committed, by term.

Whether they are still there is known once the partition's present leader has committed all it has,
and returns where each term ends in its log.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.errors import AcknowledgedLossError
from broker.leader_epochs import is_of_replicas
from broker.protocol.extension_requests import Acks
from broker.protocol.responses import NO_TERM
from broker.topic import TopicPartition

# asks the leader of a partition where a term ends in its log; raises `BrokerError`
EndOfTerm = Callable[[TopicPartition, int], int]


class WrittenEnds:
    """The ends of the sets of one producer that were acknowledged as written.

    `AcknowledgedLossError` if messages that were acknowledged are not there.
    """

    def __init__(self) -> None:
        self._last: dict[TopicPartition, tuple[int, int]] = {}  # term and end
        self._former: dict[tuple[TopicPartition, int], int] = {}

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have messages which are not known to be committed."""
        return list(dict.fromkeys([*self._last, *(partition for partition, _ in self._former)]))

    @property
    def has_former_terms(self) -> bool:
        """Return whether a partition has a new term, so that sets of the former are unsure."""
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
        """Note that the broker of partitions has shut down in good order."""
        # It has flushed all it had: the whole last term, without replicas. A partition with
        # replicas has another leader now, which may lack the end.
        for partition in partitions & self._last.keys():
            if not is_of_replicas(self._last[partition][0]):
                del self._last[partition]

    def prove_former(self, end_of_term: EndOfTerm) -> None:
        """Check where the former terms of partitions end; forget those with a response."""
        for (partition, term), end in list(self._former.items()):
            found = end_of_term(partition, term)
            del self._former[partition, term]
            _validate(partition, end, found)

    def prove(
        self, partition: TopicPartition, term: int, log_end: int, end_of_term: EndOfTerm
    ) -> None:
        """Check a partition after its leader, in `term`, has committed its log up to `log_end`."""
        last, end = self._last.pop(partition, (NO_TERM, 0))
        if last != NO_TERM:
            _validate(partition, end, log_end if last == term else end_of_term(partition, last))


def _validate(partition: TopicPartition, end: int, found: int) -> None:
    if found < end:
        if found > 0:
            where = f"the log has nothing of that behind offset {found}"
        else:  # also after two crashes between which nothing was acknowledged
            where = "its broker does not know of them any more"
        raise AcknowledgedLossError(
            f"{partition}: messages before offset {end} were acknowledged as written, and {where}: "
            "its broker failed before they were safe; send them again, or ask for acks -1"
        )

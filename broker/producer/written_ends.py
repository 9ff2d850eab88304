"""The ends of sets that brokers have acknowledged as written and not as committed, by term.

Whether they are still there is known once the partition's present leader has committed all it has,
and returns where each term ends in its log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from broker import errors
from broker.client.cluster import Cluster, Connect
from broker.client.list_offsets import OffsetLister
from broker.leader_epochs import is_of_replicas
from broker.protocol.client_requests import Acks, OffsetKind
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import Buffer
from broker.protocol.responses import NO_TERM
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


_Term = tuple[TopicPartition, int]


@dataclass(eq=False)
class Barrier:
    """An empty set, whose acknowledgement means that all before it in the log is committed."""

    partition: TopicPartition
    log_end: int = -1
    term: int = NO_TERM
    error: errors.BrokerError | None = None
    message_set: Buffer = b""
    is_numbered: bool = True
    stamp: ProducerStamp | None = None
    can_move: ClassVar[bool] = False
    message_count: ClassVar[int] = 0
    offset_span: ClassVar[int] = 0

    def complete(
        self, base_offset: int, error: errors.BrokerError | None, *, is_raised: bool = False
    ) -> None:
        """Note the acknowledgement, or the error."""
        self.log_end, self.error = base_offset, error


@dataclass(eq=False)
class WrittenEnds:
    """The ends of the sets of one producer that were acknowledged as written.

    `AcknowledgedLossError` if messages that were acknowledged are not there.
    """

    cluster: Cluster
    connect: Connect
    _last: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict, init=False)
    """Term and end of the last set of each partition."""
    _former: dict[_Term, int] = field(default_factory=dict, init=False)
    has_new_term: bool = False  # since `find_loss`: sets of a former term are unsure
    loss: errors.AcknowledgedLossError | None = None  # found, and not raised yet

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have messages which are not known to be committed."""
        return list(dict.fromkeys([*self._last, *(partition for partition, _ in self._former)]))

    def note(self, partition: TopicPartition, acks: Acks, term: int, end: int) -> None:
        """Note the end of an acknowledged set."""
        if acks is Acks.COMMITTED or (acks is Acks.AUTO and is_of_replicas(term)):
            return
        last = self._last.get(partition)
        self._last[partition] = term, end
        if last is not None and last[0] not in (term, NO_TERM):
            self._former[partition, last[0]] = last[1]
            self.has_new_term = True

    def note_stopped(self, partitions: set[TopicPartition]) -> None:
        """Note that the broker of partitions has shut down in good order."""
        # It has flushed all it had: the whole last term, without replicas. A partition with
        # replicas has another leader now, which may lack the end.
        for partition in partitions & self._last.keys():
            if not is_of_replicas(self._last[partition][0]):
                del self._last[partition]

    def find_loss(self) -> errors.AcknowledgedLossError | None:
        """Check the former terms of partitions with their leaders, without waiting for these."""
        unsure = self.unsure()
        return self.settle(unsure, self.find_ends(unsure)) if unsure else None

    def unsure(self) -> Mapping[_Term, int]:
        """Return the ends of what was acknowledged in former terms, which are to be checked."""
        self.has_new_term = False
        return dict(self._former)

    def find_ends(self, terms: Iterable[_Term]) -> dict[_Term, int]:
        """Ask leaders where terms end in their logs; it uses no state of this object."""
        found: dict[_Term, int] = {}
        try:
            with self._lister(0.0) as lister:
                for partition, term in terms:
                    found[partition, term] = _term_end(lister, partition, term)
        except errors.BrokerError as error:
            logger.debug("it is asked later what is left of a term: %s", error)
        return found

    def settle(
        self, unsure: Mapping[_Term, int], found: Mapping[_Term, int]
    ) -> errors.AcknowledgedLossError | None:
        """Compare the ends with those that leaders have found; forget these."""
        loss = None
        for term, end in found.items():
            if self._former.get(term) == unsure[term]:  # nothing was added meanwhile
                del self._former[term]
            try:
                _validate(term[0], unsure[term], end)
            except errors.AcknowledgedLossError as error:
                logger.error("%s", error)
                loss = loss or error
        self.loss = self.loss or loss
        return loss

    def prove(self, barriers: Iterable[Barrier], limit_s: float) -> None:
        """Check all partitions after their leaders have committed all before the barriers."""
        loss, self.loss = self.loss, None
        if loss is not None:
            raise loss
        with self._lister(limit_s) as lister:
            for one in barriers:
                if one.error is not None:
                    raise one.error
                last, end = self._last.pop(one.partition, (NO_TERM, 0))
                if last != NO_TERM:
                    is_same = last == one.term
                    found = one.log_end if is_same else _term_end(lister, one.partition, last)
                    _validate(one.partition, end, found)
            self._prove_former(lister)

    def _prove_former(self, lister: OffsetLister) -> None:
        """Check where the former terms of partitions end; forget those with a response."""
        for (partition, term), end in list(self._former.items()):
            found = _term_end(lister, partition, term)
            del self._former[partition, term]
            _validate(partition, end, found)

    def _lister(self, limit_s: float) -> OffsetLister:
        return OffsetLister(
            self.cluster, self.connect, leader_wait_s=limit_s, latest_wait_s=limit_s
        )


def _term_end(lister: OffsetLister, partition: TopicPartition, term: int) -> int:
    return lister.query(partition, OffsetKind.TERM_END, term).offset


def _validate(partition: TopicPartition, end: int, found: int) -> None:
    if found < end:
        if found > 0:
            where = f"the log has nothing of that behind offset {found}"
        else:  # also after two crashes between which nothing was acknowledged
            where = "its broker does not know of them any more"
        raise errors.AcknowledgedLossError(
            f"{partition}: messages before offset {end} were acknowledged as written, and {where}: "
            "its broker failed before they were safe; send them again, or ask for acks -1"
        )

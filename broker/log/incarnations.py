"""Which runs of a broker appended to a log without replicas: by it producers ask for lost messages.

A broker gets another incarnation after a crash, which can take the end of a log. An incarnation
with the creation of the topic is a term; a producer that knows the term of its message, and its
end, learns whether the log still has it.
"""

from __future__ import annotations

from broker.cluster_state import EpochStart
from broker.leader_epochs import LeaderEpochs, term_of


class Incarnations:
    """The incarnations that appended to one log without replicas."""

    def __init__(self) -> None:
        self._epochs = LeaderEpochs()
        self._creation = 0
        self.term = term_of(self._creation, self._epochs.last_epoch)
        """The term of messages appended now."""

    def begin(
        self, incarnation: int, start_offset: int, *, log_start_offset: int, creation: int
    ) -> None:
        """Note the present incarnation, counted from `FIRST_INCARNATION`.

        Messages before `start_offset` are of the incarnation before; it is the log start offset if
        the incarnation is the same. `creation` is the topic's `creation_key`.
        """
        first = incarnation - 1 if start_offset > log_start_offset else incarnation
        epochs = LeaderEpochs([EpochStart(first, log_start_offset)])
        self._epochs = epochs.begun(incarnation, start_offset)
        self._creation = creation
        self.term = term_of(creation, self._epochs.last_epoch)

    def end_of_term(self, term: int, log_end_offset: int) -> int:
        """Return the end offset of a term, -1 if the term is unknown."""
        return self._epochs.end_of_term(term, self._creation, log_end_offset)

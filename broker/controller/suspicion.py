"""When a broker may be taken for dead, before its session with ZooKeeper ends."""

from __future__ import annotations

import math
from typing import NamedTuple

from broker.cluster_state import Finding

BACKOFF_S = {Finding.REFUSES: 10.0, Finding.SILENT: 60.0}
"""How long a broker that answers again is not suspected for the same: its session tells if it ends.

Elections because of a machine that is too busy to answer would make it busier.
"""
_WORDS = {
    Finding.ANSWERS: "it answers",
    Finding.REFUSES: "its port refuses connections",
    Finding.SILENT: "it does not answer",
}


class Witness(NamedTuple):
    """What another broker finds."""

    broker_id: int
    finding: Finding


class Suspicion:
    """What one broker makes of another, in one of its registrations.

    A process that dies is missed at once: its connections end and its port refuses. Silence is
    evidence only after `silence_s`, two thirds of it here and one at the witness; never if it is 0.
    Knows no clock.
    """

    def __init__(self, silence_s: float, now_s: float) -> None:
        self._silence_s = silence_s
        self._heard_s = now_s
        self._came_back_s = -math.inf
        self._own = Finding.ANSWERS
        self.is_missed = False
        """Whether this broker misses the other one, which may be its own fault."""
        self.evidence = ""
        """Why the other one is taken for dead; empty if it is not."""

    @property
    def patience_s(self) -> float:
        """Return how long to wait for an answer."""
        return self._silence_s * 2 / 3 or 5.0

    @property
    def witness_patience_s(self) -> float:
        """Return how long another broker is to wait for an answer."""
        return self._silence_s / 3 or 1.0

    def note(self, finding: Finding, now_s: float) -> bool:
        """Note what this broker finds; return whether another one is to be asked."""
        self._own = finding
        if finding is Finding.ANSWERS:
            self._heard_s, self.is_missed = now_s, False
            if self.evidence:
                self.evidence = ""
                self._came_back_s = now_s
            return False
        is_long_silent = self._silence_s > 0 and now_s - self._heard_s >= self.patience_s
        self.is_missed = finding is Finding.REFUSES or is_long_silent
        is_quiet = now_s - self._came_back_s < BACKOFF_S[finding]
        return self.is_missed and not self.evidence and not is_quiet

    def judge(self, witness: Witness | None, *, has_others: bool) -> None:
        """Note what another broker finds; None if none can be asked, though there may be others."""
        if not self._is_enough(witness, has_others):
            return
        self.evidence = f"{_WORDS[self._own]}, " + (
            f"as broker {witness.broker_id} finds: {_WORDS[witness.finding]}"
            if witness
            else "and there is no other broker to ask"
        )

    def _is_enough(self, witness: Witness | None, has_others: bool) -> bool:
        if witness is not None:
            return witness.finding is not Finding.ANSWERS
        # silence alone may be that of a broken network, of which this broker is the cut off part
        return self._own is Finding.REFUSES and not has_others

"""When a broker may be taken for dead, before its session with ZooKeeper ends."""

from __future__ import annotations

import math
from typing import NamedTuple

from broker.cluster_state import PeerFinding
from broker.ids import NO_CONTROLLER

BACKOFF_S = {PeerFinding.REFUSES: 10.0, PeerFinding.SILENT: 60.0}
"""How long a broker that answers again is not suspected for the same: its session tells if it ends.

Elections because of a machine that is too busy to answer would make it busier.
"""
_ASK_AGAIN_S = 1.0
_WORDS = {
    PeerFinding.ANSWERS: "it answers",
    PeerFinding.REFUSES: "its port refuses connections",
    PeerFinding.SILENT: "it does not answer",
}


class Witness(NamedTuple):
    """What another broker finds."""

    broker_id: int
    finding: PeerFinding


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
        self._noted_s = self._asked_s = now_s
        self.own = PeerFinding.ANSWERS
        """What this broker found last."""
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

    def note(self, finding: PeerFinding, now_s: float) -> bool:
        """Note what this broker finds; return whether another one is to be asked."""
        self.own, self._noted_s = finding, now_s
        if finding is PeerFinding.ANSWERS:
            self._heard_s, self.is_missed = now_s, False
            self._trust()
            return False
        is_long_silent = self._silence_s > 0 and now_s - self._heard_s >= self.patience_s
        self.is_missed = finding is PeerFinding.REFUSES or is_long_silent
        is_quiet = now_s - self._came_back_s < BACKOFF_S[finding]
        if self.evidence:
            is_quiet = now_s - self._asked_s < _ASK_AGAIN_S
        return self.is_missed and not is_quiet

    def judge(self, witness: Witness | None, *, has_others: bool) -> None:
        """Note what another broker finds; None if none can be asked, though there may be others.

        One that another broker hears is not dead, also if this one still misses it.
        """
        self._asked_s = self._noted_s
        if witness is not None and witness.finding is PeerFinding.ANSWERS:
            self._trust()
        if self.evidence or not self._is_enough(witness, has_others):
            return
        self.evidence = f"{_WORDS[self.own]}, " + (
            f"as broker {witness.broker_id} finds: {_WORDS[witness.finding]}"
            if witness
            else "and there is no other broker to ask"
        )

    def _trust(self) -> None:
        if self.evidence:
            self.evidence = ""
            self._came_back_s = self._noted_s

    def _is_enough(self, witness: Witness | None, has_others: bool) -> bool:
        if witness is not None:
            return witness.finding is not PeerFinding.ANSWERS
        # silence alone may be that of a broken network, of which this broker is the cut off part
        return self.own is PeerFinding.REFUSES and not has_others


class SilentOffice:
    """When the office of a controller that is silent may be taken, as one broker sees it.

    A network may be cut into halves that both reach the registry: each would take it from the other
    again and again.
    """

    def __init__(self) -> None:
        self._holder = NO_CONTROLLER
        self._changed_s = -math.inf

    def note(self, holder: int, now_s: float) -> None:
        """Note who has it."""
        if holder not in (self._holder, NO_CONTROLLER):
            if self._holder != NO_CONTROLLER:
                self._changed_s = now_s
            self._holder = holder

    def can_be_taken(self, finding: PeerFinding, now_s: float) -> bool:
        """Return whether it is not one that has just changed hands; its session tells then."""
        return finding is not PeerFinding.SILENT or now_s - self._changed_s >= BACKOFF_S[finding]

"""Handles the loss of a broker in `produce`: where messages go, and how long they wait.

The producer sends again what is not acknowledged. A broker that is stopped says that it has
stored none of that, so there are no duplicates; one that crashed may have stored it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.errors import BrokerStoppedError
from broker.producer.dispatcher import Moved, Waiting
from broker.protocol.codec import scan
from broker.protocol.message_set import count_messages
from broker.units import count_text, format_duration, parse_duration_s
from pylogctl.cli.environment import UsageError
from pylogctl.cli.process import StopRequest

_TELL_AFTER_S = 3.0  # no warning for an election, or a broker that is restarted at once
_SAME_LOSS_S = 10.0  # the partitions of one lost broker move one after another


class LossRule(NamedTuple):
    """Whether messages move to other partitions, and how long they wait before the run fails."""

    moves: bool
    wait_s: float


FAIL = LossRule(moves=False, wait_s=0.0)  # unless the broker is there at once


def parse_loss_rule(text: str | None, *, choice_of_partition: str, wait_s: float) -> LossRule:
    """Return the rule of `--on-broker-loss`.

    Without the option messages move if the producer has chosen their partition, as it would choose
    another one when started again, and wait if the user has.

    Args:
        text: `move` or `wait`, each with `:DUR` or without, or `fail`.
        choice_of_partition: the option by which the user chooses; empty if there is none.
        wait_s: the limit without `:DUR`, except of `wait`, which has none then.
    """
    if text is None:
        return LossRule(not choice_of_partition, wait_s)
    name, colon, duration = text.partition(":")
    if name not in ("move", "wait", "fail") or (colon and name == "fail"):
        raise UsageError(
            f"--on-broker-loss '{text}' is none of move, wait and fail",
            "with a limit: move:1m, wait:10m",
        )
    if name == "fail":
        return FAIL
    if name == "move" and choice_of_partition:
        raise UsageError(
            f"--on-broker-loss move cannot be used with {choice_of_partition} "
            "(it chooses the partition)"
        )
    if colon:
        wait_s = parse_duration_s(duration)
    elif name == "wait":
        wait_s = math.inf
    return LossRule(name == "move", wait_s)


@dataclass(eq=False)
class BrokerWaits:
    """Reports brokers that messages wait for, and ends the waiting at a signal."""

    stop: StopRequest
    warn: Callable[[str], None]
    _is_told: bool = field(default=False, init=False)
    _told_moves: dict[int, float] = field(default_factory=dict, init=False)  # by the lost broker

    def on_wait(self, waiting: Waiting) -> bool:
        """Report a wait once, if it lasts; return whether to continue waiting."""
        if waiting.seconds < _TELL_AFTER_S:
            self._is_told = False
        elif not self._is_told:
            self._is_told = True
            is_limited = waiting.limit_s != math.inf
            limit = f" up to {format_duration(waiting.limit_s)}" if is_limited else ""
            first, *others = waiting.partitions
            also = f" and {len(others)} more" if others else ""
            self.warn(f"{waiting.error}; waiting{limit} for the leader of {first}{also}")
        return not self.stop.is_set

    def on_move(self, moved: Moved) -> None:
        """Report that messages move to another partition, once for each loss of a broker."""
        now_s = time.monotonic()
        if now_s - self._told_moves.get(moved.source.home, -_SAME_LOSS_S) < _SAME_LOSS_S:
            return
        self._told_moves[moved.source.home] = now_s
        text = f"{moved.error}; going on with {moved.target}"
        if isinstance(moved.error, BrokerStoppedError):
            self.warn(f"{text}, and what it has confirmed can be read when it is back")
            return
        sets = [one.message_set for one in moved.sets]
        count = sum(count_messages(one, scan(one)).message_count for one in sets)
        self.warn(f"{text}; {count_text(count)} that it has not confirmed can be stored twice")

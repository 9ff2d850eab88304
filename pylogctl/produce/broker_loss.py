"""What `produce` does when a broker is lost: where its batches go, or how long they wait.

Sent again is only what the broker has not acknowledged. A broker that is stopped says that it has
stored nothing of that, so there are no duplicates; one that crashed may have stored it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from typing import NamedTuple

from broker.errors import BrokerError, BrokerStoppedError
from broker.topic import TopicPartition
from pylogctl.cli.errors import UsageError
from pylogctl.cli.process import StopRequest
from pylogctl.cli.units import format_duration, parse_duration_s

DEFAULT_WAIT_S = 30.0
"""Longer than the restart of a broker that was stopped."""
_PAUSE_S = 0.2
"""Between two attempts, and two looks at which brokers there are."""
_RECONNECT_S = 0.5
"""A connection can be lost without its broker, such as one that was idle: so long after a loss the
same broker is tried again, without a word."""
_RECONNECT_PAUSE_S = 0.1
"""Between two attempts then."""


class LossRule(NamedTuple):
    """What to do about a lost broker.

    `moves` says whether its batches may go to other partitions, `wait_s` how long nothing may be
    acknowledged after the loss until the run fails.
    """

    moves: bool
    wait_s: float


FAIL = LossRule(moves=False, wait_s=0.0)
"""The run fails if the broker is not there at once."""


def parse_loss_rule(
    text: str | None, *, choice_of_partition: str, wait_s: float = DEFAULT_WAIT_S
) -> LossRule:
    """Return the rule of `--on-broker-loss`.

    Without the option batches move if the producer has chosen their partition, as it would choose
    another one when started again, and wait if the user has.

    Args:
        text: `move`, `wait`, each with `:DUR` or without, or `fail`; None if not given.
        choice_of_partition: the option by which the user chooses; empty if there is none.
        wait_s: the limit without `:DUR`.

    Raises:
        UsageError: the text is none of these, or a partition that the user chose cannot move.
    """
    name, colon, duration = (text or "").partition(":")
    if text is None:
        name = "wait" if choice_of_partition else "move"
    elif name not in ("move", "wait", "fail") or (colon and name == "fail"):
        raise UsageError(
            f"--on-broker-loss '{text}' is none of move, wait and fail",
            hints=["with a limit: move:1m, wait:10m"],
        )
    if name == "fail":
        return FAIL
    if name == "move" and choice_of_partition:
        raise UsageError(
            f"--on-broker-loss move cannot be used with {choice_of_partition} "
            "(it chooses the partition)"
        )
    return LossRule(name == "move", parse_duration_s(duration) if colon else wait_s)


class LostBrokers:
    """The brokers that a run has lost, and the partitions that take the place of theirs.

    Args:
        rule: move or wait, and how long.
        live_partitions: returns the partitions of the topic on live brokers.
        stop: ends the waiting.
        warn: told of each loss.
    """

    def __init__(
        self,
        rule: LossRule,
        live_partitions: Callable[[], Collection[TopicPartition]],
        stop: StopRequest,
        warn: Callable[[str], None],
    ) -> None:
        self._rule = rule
        self._live_partitions = live_partitions
        self._stop = stop
        self._warn = warn
        self._lost_since_s: float | None = None  # None when a batch was acknowledged since
        self._loss: BrokerError | None = None  # the first since then
        self._is_applied = False  # whether the rule has been, to this loss
        self._told: set[str] = set()
        self._homes: set[int] = set()
        self._others: list[TopicPartition] = []
        self._replaced: dict[TopicPartition, TopicPartition] = {}

    def note_acknowledgement(self) -> None:
        """Note that a broker acknowledges, so that the limit counts anew at the next loss."""
        self._lost_since_s = None

    def target(self, partition: TopicPartition) -> TopicPartition:
        """Return the partition itself, or the one that takes its place as its broker is lost."""
        if partition.home not in self._homes or not self._others:
            return self._replaced.get(partition, partition)
        if partition not in self._replaced:
            self._replaced[partition] = random.choice(self._others)
        return self._replaced[partition]

    def await_target(
        self, lost: Collection[TopicPartition], error: BrokerError, message_count: int
    ) -> None:
        """Wait until each of the lost partitions, or its `target`, may be sent to again.

        Args:
            lost: partitions whose broker was lost.
            error: how.
            message_count: how many messages it has not confirmed.

        Raises:
            BrokerError: the same, as there is no target in time, or a signal came; or the cluster
                cannot be asked.
        """
        if self._may_reconnect(error):
            return
        self._homes |= {partition.home for partition in lost}
        if self._rule == FAIL:
            raise error
        must_pause, self._is_applied = self._is_applied, True
        while must_pause or not self._find(lost):
            must_pause = False
            self._tell_wait()
            if self._pause_is_last():
                raise error
        targets = {self.target(partition) for partition in lost}
        if targets == set(lost):
            self._tell_wait()
        else:
            self._tell(_text_of_move(targets, self._loss, message_count))

    def _may_reconnect(self, error: BrokerError) -> bool:
        """Return whether the same broker is to be tried again first; wait before that if need be.

        Raises:
            BrokerError: the same, as a signal came.
        """
        is_stopped = isinstance(error, BrokerStoppedError)
        now_s = time.monotonic()
        if self._lost_since_s is None:
            self._lost_since_s, self._loss = now_s, error
            self._is_applied = False
            self._told.clear()
            self._homes.clear()
            return not is_stopped
        limit_s = _RECONNECT_S if self._rule == FAIL else min(_RECONNECT_S, self._rule.wait_s)
        if is_stopped or self._is_applied or now_s >= self._lost_since_s + limit_s:
            return False
        if self._stop.wait(_RECONNECT_PAUSE_S):
            raise error
        return True

    def _pause_is_last(self) -> bool:
        """Wait before the next attempt; return whether there is none, as time is up or a signal."""
        assert self._lost_since_s is not None
        left_s = self._lost_since_s + self._rule.wait_s - time.monotonic()
        return left_s <= 0 or self._stop.wait(min(left_s, _PAUSE_S))

    def _tell_wait(self) -> None:
        limit = format_duration(self._rule.wait_s)
        self._tell(f"waiting up to {limit} until it is back")

    def _tell(self, text: str) -> None:
        """Warn of the loss and what is done about it, unless that was said of this loss."""
        if text not in self._told:
            self._told.add(text)
            self._warn(f"{self._loss}; {text}")

    def _find(self, lost: Collection[TopicPartition]) -> bool:
        """Choose targets among the live partitions; return whether that was possible."""
        try:
            live = set(self._live_partitions())
        except BrokerError as error:
            if not error.is_retriable:
                raise
            return False
        if not self._rule.moves:
            return live.issuperset(lost)
        others = sorted(one for one in live if one.home not in self._homes)
        self._others = others
        if not others:  # then the lost ones, once they are back
            self._homes.clear()
            self._replaced.clear()
            return live.issuperset(lost)
        before, self._replaced = self._replaced, {}
        for partition in {*before, *lost}:
            if partition not in others:
                former = before.get(partition)
                self._replaced[partition] = former if former in others else random.choice(others)
        return True


def _text_of_move(
    targets: Collection[TopicPartition], loss: BrokerError | None, message_count: int
) -> str:
    names = str(next(iter(targets))) if len(targets) == 1 else "other partitions"
    text = f"going on with {names}"
    if isinstance(loss, BrokerStoppedError):
        return text + ", and what it has confirmed can be read when it is back"
    counted = f"{message_count} message{'s' * (message_count != 1)}"
    return text + f"; {counted} that it has not confirmed can be stored twice"

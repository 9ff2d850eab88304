"""What must hold in a cluster, checked with every change: the invariants I1 to I26.

A change of a log, of a state in the registry, and each outcome that a client gets is compared with
one record of what was ever committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from broker.cluster_state import PartitionState, StoredState
from broker.ids import NO_LEADER
from broker.log.retention import MAX_CLOCK_DIFFERENCE_S
from broker.topic import TopicPartition

if TYPE_CHECKING:
    from tests.simulation.disk import SimulatedLog


RETENTION_S = 6.0
CLOCK_S = 60.0
"""The seconds of wall clocks in one of simulated time: ages and differences of clocks are short."""


def is_past_retention(appended_s: float, now_s: float) -> bool:
    """Return whether retention removes a message of a time at another one."""
    return now_s - appended_s > RETENTION_S


class ViolationError(AssertionError):
    """An invariant does not hold."""


class Created(NamedTuple):
    """A partition of one creation of its topic: what another one has is no loss."""

    partition: TopicPartition
    creation_id: str

    def __str__(self) -> str:
        return f"{self.partition} ({self.creation_id})"


class Send(NamedTuple):
    """One message as a producer sees it."""

    producer: int
    number: int


class Stored(NamedTuple):
    """A record in the format kafka: as each replica has it, with its whole batch."""

    message: Send
    batch: bytes

    def __repr__(self) -> str:
        return f"{self.message} in batch {self.batch[:16].hex()}"


def message_of(entry: object) -> object:
    """Return the message of an entry of a log."""
    return entry.message if isinstance(entry, Stored) else entry


class Checker:
    """The record of one run.

    Args:
        allows_loss: whether unclean elections are on: then messages may be lost, but replicas must
            still agree in the end.
        counts: where it is counted what happened.
    """

    def __init__(self, *, allows_loss: bool, counts: Counter[str]) -> None:
        self.allows_loss = allows_loss
        self.counts = counts
        self.committed: dict[Created, list[object]] = {}
        self.states: dict[Created, StoredState] = {}
        self.deleted: set[str] = set()
        """Creation ids of topics that are to be deleted: their logs may go."""
        self.forgotten: set[Created] = set()
        """Partitions whose states the registry has lost: those that follow have no order."""
        self.logs: dict[tuple[int, Created], SimulatedLog] = {}
        self.writers: dict[tuple[Created, int], tuple[int, int]] = {}
        self.controllers: dict[int, tuple[int, int]] = {}
        self.controller_epoch = 0
        self.sent: dict[object, int] = {}
        """How often each message was sent where the outcome did not exclude that it is there."""
        self.refused: set[object] = set()
        self.acknowledged: dict[Created, dict[int, object]] = {}
        self.begins: dict[tuple[Created, int], int] = {}
        """How much was committed when each leader epoch was decided."""
        self.committed_count = 0
        self.now_s: Callable[[], float] = lambda: 0.0
        """The right time."""
        self.is_reached_by_others: Callable[[int, int], bool] = lambda _by, _id: False
        """Whether all other live brokers have long reached one, which another one misses."""

    def fail(self, invariant: str, text: str) -> None:
        raise ViolationError(f"{invariant}: {text}")

    # Logs.

    def epochs_changed(self, log: SimulatedLog) -> None:
        entries = log.epochs.entries
        if entries and entries[-1].start_offset > log.log_end_offset:
            self.fail("I16", f"{_name(log)} ends at {log.log_end_offset}: {log.epochs}")

    def truncated(self, log: SimulatedLog, offset: int, high_watermark: int) -> None:
        if offset < high_watermark:
            self.counts["truncations below the high watermark"] += 1
            if not self.allows_loss:
                self.fail("I19", f"{_name(log)} is cut to {offset} below {high_watermark}")
        self.epochs_changed(log)
        self.log_lost_its_end(log)

    def log_lost_its_end(self, log: SimulatedLog) -> None:
        stored = self.states.get(log.created)
        if stored is not None and log.owner in stored.state.isr:
            self._check_complete(log.created, log.owner, 0)

    def removed(self, log: SimulatedLog, times_s: Iterable[float]) -> None:
        """Check that what goes at the start of a log is past its retention, or nearly so (I25)."""
        now_s = self.now_s() + 1.5 * MAX_CLOCK_DIFFERENCE_S / CLOCK_S
        for one in times_s:
            self.counts["messages past retention"] += 1
            if not is_past_retention(one, now_s):
                self.fail("I25", f"{_name(log)} loses a message of {one} at {self.now_s()}")

    def high_watermark_moved(self, log: SimulatedLog, before: int) -> None:
        """Check that what is committed stays the same, and is on all in-sync replicas (I2, I13)."""
        now = log.high_watermark
        if not log.start <= now <= log.log_end_offset:
            self.fail("I18", f"{_name(log)}: {log.start} {now} {log.log_end_offset}")
        if self.allows_loss:
            return
        committed = self.committed.setdefault(log.created, [])
        end = len(committed)
        start = max(before, log.start)
        known = log.read(start, min(now, end))
        if known != committed[start : min(now, end)]:
            self.fail("I2", f"{_name(log)} has {known} from {start}, not {committed[start:now]}")
        if now > end:
            if end < log.start:
                self.fail("I1", f"{_name(log)} starts at {log.start}, committed is up to {end}")
            committed += log.read(end, now)
            self.committed_count += now - end
            for member in self.states[log.created].state.isr:
                self._check_complete(log.created, member, end)

    def _check_complete(self, partition: Created, member: int, start: int) -> None:
        """Check that an in-sync replica has all that was ever committed (I13)."""
        if self.allows_loss or partition.creation_id in self.deleted:
            return
        committed = self.committed.get(partition)
        log = self.logs.get((member, partition))
        if not committed or log is None:
            if committed:
                self.fail("I13", f"broker {member} is in sync in {partition} without a log")
            return
        start = max(start, log.start)
        if log.log_end_offset < len(committed):
            self.fail(
                "I13",
                f"{_name(log)} is in sync and ends at {log.log_end_offset}, "
                f"committed is up to {len(committed)}",
            )
        if log.read(start, len(committed)) != committed[start:]:
            self.fail("I13", f"{_name(log)} is in sync and differs from what is committed")

    def appended(self, partition: Created, epoch: int, broker: int, losses: int) -> None:
        """Check that one broker writes in an epoch, and not after it has lost messages (I14)."""
        writer = self.writers.setdefault((partition, epoch), (broker, losses))
        if writer != (broker, losses):
            self.fail("I14", f"{partition} epoch {epoch}: broker {writer}, then {(broker, losses)}")

    # The registry.

    def registry_lost(self) -> None:
        """Note that the registry has lost its data, and counts all epochs anew."""
        self.forgotten |= self.states.keys()
        self.controllers.clear()
        self.controller_epoch = 0

    def state_written(
        self, partition: Created, stored: StoredState, replicas: tuple[int, ...]
    ) -> None:
        """Note a new state, and check it against the one before it (I13, I15, I17)."""
        before, state = self.states.get(partition), stored.state
        if partition in self.forgotten:  # also by the registry
            self.forgotten.discard(partition)
            self.counts["partitions restored"] += 1
            before = None
        self.states[partition] = stored
        committed_count = len(self.committed.get(partition, ()))
        self.begins.setdefault((partition, state.leader_epoch), committed_count)
        if before is not None:
            self._check_order(partition, before, stored)
            self._count_change(before.state, state)
        if state.leader != NO_LEADER and state.leader not in state.isr:
            self.fail("I17", f"{partition}: leader {state.leader} is not in {state.isr}")
        if (
            not state.isr
            or not set(state.isr) <= set(replicas)
            or len(set(state.isr)) < len(state.isr)
        ):
            self.fail("I17", f"{partition}: in-sync replicas {state.isr} of {replicas}")
        for member in state.isr:
            self._check_complete(partition, member, 0)

    def _count_change(self, before: PartitionState, state: PartitionState) -> None:
        counts = self.counts
        counts["in-sync replicas shrink"] += bool(set(before.isr) - set(state.isr))
        counts["in-sync replicas grow"] += bool(set(state.isr) - set(before.isr))
        if state.leader_epoch == before.leader_epoch:
            return
        if state.leader == NO_LEADER:
            counts["left without a leader"] += 1
        elif state.leader == before.leader:
            counts["next epoch of the same leader"] += 1
        elif state.leader in before.isr:
            counts["elections"] += 1
        else:
            counts["unclean elections"] += 1

    def _check_order(self, partition: Created, before: StoredState, stored: StoredState) -> None:
        old, new = before.state, stored.state
        if (
            new.leader_epoch < old.leader_epoch
            or new.controller_epoch < old.controller_epoch
            or stored.version <= before.version
        ):
            self.fail("I15", f"{partition}: {before}, then {stored}")
        if new.leader != old.leader and new.leader_epoch == old.leader_epoch:
            self.fail("I15", f"{partition}: another leader in one epoch: {before}, then {stored}")

    def controller_acted(self, epoch: int, broker: int, run: int) -> None:
        """Check that one controller acts in an epoch, and none after a later one (I20)."""
        acting = self.controllers.setdefault(epoch, (broker, run))
        if acting != (broker, run):
            self.fail("I20", f"controller epoch {epoch}: {acting}, then {(broker, run)}")
        if epoch < self.controller_epoch:
            self.fail("I20", f"controller epoch {epoch} writes after {self.controller_epoch}")
        self.controller_epoch = epoch

    def taken_for_dead(self, by: int, broker: int) -> None:
        """Check that not one broker alone misses another (I24)."""
        if self.is_reached_by_others(by, broker):
            self.fail("I24", f"broker {by} takes {broker} for dead, which all others reach")

    # Clients.

    def acknowledged_send(self, partition: Created, offset: int, message: object) -> None:
        """Note a success of acks -1: committed, at this offset (I1, I9)."""
        self.acknowledged.setdefault(partition, {})[offset] = message
        if self.allows_loss:
            return
        committed = self.committed.get(partition, [])
        if len(committed) <= offset or message_of(committed[offset]) != message:
            self.fail("I1", f"{partition}: {message} was acknowledged at {offset}, not committed")

    def listed_latest(self, partition: Created, epoch: int, offset: int) -> None:
        """Check that a leader's latest offset is not below what was committed before it (I22)."""
        if not self.allows_loss and offset < (begin := self.begins[partition, epoch]):
            self.fail(
                "I22",
                f"{partition} epoch {epoch}: the latest offset is {offset}, and {begin} was "
                "committed before that epoch",
            )

    def read_on(self, before: Created, now: Created, *, is_another: bool) -> None:
        """Check that a consumer starts again if the topic was created again, and else not (I23)."""
        self.counts["topics created again under a consumer"] += (
            now.creation_id != before.creation_id
        )
        if is_another != (now != before):
            what = "starts again in" if is_another else f"goes on, after {before}, in"
            self.fail("I23", f"a consumer {what} {now}")

    def check_in_the_end(self, logs: Iterable[SimulatedLog], leaders: dict[Created, int]) -> None:
        """Check logs against each other and against the histories of clients (I1, I3, I4, I12)."""
        by_partition: dict[Created, list[SimulatedLog]] = {}
        for log in logs:
            log.compare()
            by_partition.setdefault(log.created, []).append(log)
        for partition, found in by_partition.items():
            self._check_agree(found)
            if partition.creation_id in self.deleted:  # restored: the deletion was forgotten
                continue
            leader = next(one for one in found if one.owner == leaders[partition])
            self._check_content(partition, leader)

    def _check_agree(self, logs: list[SimulatedLog]) -> None:
        one = logs[0]
        for other in logs[1:]:
            start = max(one.start, other.start)
            end = one.log_end_offset
            if end != other.log_end_offset or one.read(start, end) != other.read(start, end):
                self.fail("I12", f"{_name(one)} and {_name(other)} differ in the end")
            mine, others = (
                [(epoch, max(first, start)) for epoch, first in log.epochs.covering(start, end)]
                for log in (one, other)
            )
            if mine != others:
                self.fail("I16", f"{_name(one)} and {_name(other)}: {mine}, {others}")

    def _check_content(self, partition: Created, log: SimulatedLog) -> None:
        found = [*map(message_of, log.read(log.start, log.log_end_offset))]
        counts: dict[object, int] = {}
        for message in found:
            counts[message] = counts.get(message, 0) + 1
        for message, count in counts.items():
            self.counts["messages twice in a log"] += count > 1
            if count > self.sent.get(message, 0):
                why = "refused" if message in self.refused else "sent less often"
                self.fail("I3, I4", f"{partition} has {message} {count} times: it was {why}")
        if self.allows_loss:
            return
        for offset, message in self.acknowledged.get(partition, {}).items():
            if offset >= log.start and found[offset - log.start : offset - log.start + 1] != [
                message
            ]:
                self.fail("I1", f"{partition}: {message}, acknowledged at {offset}, is lost")


def _name(log: SimulatedLog) -> str:
    return f"{log.created} on broker {log.owner}"

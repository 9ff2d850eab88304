"""`produce --audit`: counts confirmed messages, and publishes the counts beside them.

Messages come before counts: counts that cannot be published are kept, with a warning, and sent
again at the end of the next window; only at the end of a run is that an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.clock import Clock
from broker.errors import BrokerError
from broker.producer.dispatcher import Waiting
from broker.producer.producer import Producer
from broker.tools.audit import DEFAULT_WINDOW_MS, AuditCounter, Auditor, json_time
from broker.topic import validate_topic_name
from broker.units import parse_duration_ms
from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.cli.report import failure_of
from pylogctl.produce.sender import Confirmed

TIER = "producer"
_MIN_WINDOW_MS = 1000
_BRIEF_S = 0.5  # how long counts wait for a broker; messages wait for the counts meanwhile


class AuditPlan(NamedTuple):
    """Topic and window of the counts; without a field the time of confirmation counts."""

    topic: str
    window_ms: int
    time_field: str | None


def make_audit_plan(audit: str, time_field: str | None, topic: str) -> AuditPlan:
    """Return the options as a plan; `topic` is that of the messages."""
    audit_topic, colon, window = audit.partition(":")
    validate_topic_name(audit_topic)
    if audit_topic == topic:
        raise UsageError(f"--audit cannot be '{topic}' itself: its counts are messages as well")
    window_ms = parse_duration_ms(window) if colon else DEFAULT_WINDOW_MS
    if window_ms < _MIN_WINDOW_MS:
        raise UsageError(f"the window of --audit is at least 1s: '{window}'")
    return AuditPlan(audit_topic, window_ms, time_field)


@dataclass(eq=False)
class ConfirmedCounts:
    """Counts confirmed messages, and publishes the counts; leaving it as a context publishes all.

    Attributes:
        counts: sends the counts, committed; closed at the end of the context.
        plan: how to count.
        clock: says when a window is over.
        warn: gets a warning about counts that could not be published.
    """

    counts: Producer
    plan: AuditPlan
    clock: Clock
    warn: Callable[[str], None]
    _failure: CliError | None = field(default=None, init=False)
    _is_ending: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        self._time_of = None if plan.time_field is None else json_time(plan.time_field)
        self._counter = AuditCounter(TIER, window_ms=plan.window_ms, clock=self.clock)
        self._auditor = Auditor(self._counter, self.counts, plan.topic)
        self._due_ms = self._next_end_ms()
        self.counts.watch(self._is_worth_waiting)

    def __enter__(self) -> ConfirmedCounts:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        try:
            if exc_type is None or issubclass(exc_type, Exception):
                self.publish_all()
        except CliError as failure:
            if error is None:
                raise
            if failure is not error:  # the reason of the run's failure is reported instead
                self.warn(failure.message)
        finally:
            if timeless_count := self._counter.timeless_count:
                self.warn(
                    f"{timeless_count} messages have no time in {self.plan.time_field}: sent, but "
                    "not counted"
                )
            self.counts.close()

    def _is_worth_waiting(self, waiting: Waiting) -> bool:
        """Return whether to wait for a broker: briefly, as messages must not wait for counts."""
        return self._is_ending or waiting.seconds < _BRIEF_S

    def publish_all(self) -> None:
        """Publish the counts of all windows; raise `CliError` if that fails or has failed."""
        if self._failure is not None:
            raise self._failure
        self._is_ending = True
        try:
            self._auditor.publish(with_open=True)
            self.counts.wait_until_readable()
        except BrokerError as error:
            failure = failure_of(error)
            self._failure = CliError(
                ExitStatus.FAILED if failure is None else failure.status,
                f"the counts of what was confirmed could not be published: {error}",
                f"pylogctl audit will find more messages than '{self.plan.topic}' says",
                code="AUDIT_NOT_PUBLISHED",
            )
            raise self._failure from error

    def _next_end_ms(self) -> int:
        now_ms = self.clock.time_ms()
        return now_ms - now_ms % self.plan.window_ms + self.plan.window_ms

    def note(self, confirmed: Confirmed) -> None:
        """Count a batch that was confirmed."""
        batch = confirmed.batch
        topic = batch.partition.topic
        if self._time_of is None:
            self._counter.note(topic, len(batch.numbers), batch.payload_bytes)
            return
        for _, payload in confirmed.messages():
            time_ms = self._time_of(payload)
            self._counter.note_one(topic, len(payload), time_ms, is_timed=True)

    def due_s(self) -> float:
        """Return when the current window ends, on the monotonic clock."""
        return time.monotonic() + (self._due_ms - self.clock.time_ms()) / 1000

    def on_idle(self) -> None:
        """Publish the windows that are over."""
        if self.clock.time_ms() < self._due_ms:
            return
        self._due_ms = self._next_end_ms()
        try:
            self._auditor.publish()
        except BrokerError as error:
            self.warn(f"counts are kept, as they could not be published: {error}")

"""The options of `pylogctl group` that the work of its commands gets as one value."""

from __future__ import annotations

from typing import Literal

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import Choice, argument, flag, option, safety, selection

_COUNT = flag("--count", "Count messages too, by reading all that lags.")
_TOPICS = selection.option("-t, --topic TOPIC", "Only this topic (repeatable).")
_WINDOW = option("--window DUR", "Observe the group for so long, to know trends.")


class DescribeOptions(Choice):
    """What `group describe` shows, and how it observes the group."""

    by: Literal["partition", "topic", "member", "group"] = option(
        "--by", "One row for each of these.", default="partition"
    )
    topics: list[str] | None = _TOPICS
    count: bool = _COUNT
    window: int | None = _WINDOW


class LagOptions(Choice):
    """What `group lag` shows and accepts, and how it observes the group."""

    topics: list[str] | None = _TOPICS
    fail_above: str | None = option(
        "--fail-above SIZE|COUNT",
        "Exit 12 if the total lag is more: 64MiB, or 1000 messages, which are counted.",
    )
    min_lag: int | None = selection.option(
        "--min-lag SIZE", "Show only partitions with at least so much, or with unknown lag."
    )
    allowed_lag: int = option("--allowed-lag SIZE", "Lag of a partition that is OK.", default="0")
    count: bool = _COUNT
    window: int | None = _WINDOW


class Execution(Choice):
    """Whether offsets are changed, and what is done about the group's members."""

    execute: shared.ExecuteOption = False
    force: bool = safety.flag(
        "--force", "Do it although the group has members; they may write over it."
    )
    wait_inactive: float | None = safety.option(
        "--wait-inactive DUR", "Wait for the group to have no members; exit 7 if it still has."
    )


class ResetOptions(Choice):
    """Which offsets `group reset` moves, and where to."""

    to: str = option(
        "--to SPEC",
        "Where to: an offset expression, or shift:+N, shift:-SIZE, by:-1h, group:OTHER, file:PATH.",
        default=...,
    )
    topics: list[str] | None = selection.option("-t, --topic TOPIC", "Topic to reset (repeatable).")
    all_topics: bool = selection.flag(
        "--all-topics", "Reset all topics of the group's members, offsets and owners."
    )
    partition: shared.PartitionsOption = None
    execution: Execution


class ImportOptions(Choice):
    """The offsets that `group import` sets."""

    file: str = option("--file FILE", "Offsets to read; - for stdin.", default=...)
    group: str | None = argument("[GROUP]", "Group, instead of those in the file.", default=None)
    execution: Execution

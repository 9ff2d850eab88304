"""Options of the commands that compare counts with those of an audit topic."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import Choice, argument, limits, outputs, selection
from pylogctl.cli.selection import TopicPatterns

AuditTopicArgument = Annotated[str, argument("AUDIT-TOPIC", "Topic that counts are published to.")]


class CountOptions(Choice):
    """The counts to read: those of an audit topic, of some topics and tiers."""

    audit_topic: AuditTopicArgument
    offset: list[str] | None = shared.offset_option(
        "Counts to read, START or START:END. Default: start:end."
    )
    patterns: Annotated[TopicPatterns, shared.TOPIC_PATTERNS] = shared.ALL_TOPICS
    tiers: list[str] | None = selection.option("--tier NAME", "Only this tier (repeatable).")


class Judging(Choice):
    """Which counts are expected, when windows are judged, and which are shown or an error."""

    reference: str = selection.option(
        "--reference TIER", "Tier whose counts are expected.", default="producer"
    )
    grace_ms: int = limits.option(
        "--grace DUR", "How long after its end a window may still be reported.", default="5m"
    )
    fail_above: int | None = limits.option(
        "--fail-above N", "Status 12 if counts differ by more messages than this.", min=0
    )
    shows_all: bool = outputs.flag("--all", "Show windows whose counts agree, too.")

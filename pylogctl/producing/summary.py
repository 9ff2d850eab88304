"""What a run did, as a line for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker.topic import TopicPartition
from pylogctl.producing.sender import count_text
from pylogctl.units import format_count, format_duration, format_size

if TYPE_CHECKING:
    from pylogctl.producing.run import Outcome

_NAMED_PARTITIONS = 3


def summary_text(topic: str, outcome: Outcome, *, dry_run: bool) -> str:
    """Return what is said on standard error at the end of a run."""
    count = outcome.message_count
    rate = format_count(count / max(outcome.seconds, 1e-9))
    what = f"{count_text(count)}, {format_size(outcome.payload_bytes)}"
    where = _where(topic, outcome.partitions)
    if dry_run:
        text = f"{what} would go to {where}; nothing was sent"
    else:
        text = f"{what} to {where} in {format_duration(outcome.seconds)} ({rate} msg/s)"
    if outcome.resumed_count:
        text += f"; {count_text(outcome.resumed_count)} confirmed before"
    if outcome.refused_count:
        text += f"; {count_text(outcome.refused_count)} left out"
    return text + ("; all read back and compared" if outcome.is_verified else "")


def _where(topic: str, partitions: Mapping[TopicPartition, int]) -> str:
    if not partitions:
        return topic
    if len(partitions) > _NAMED_PARTITIONS:
        return f"{len(partitions)} partitions of {topic}"
    return ", ".join(str(partition) for partition in sorted(partitions))

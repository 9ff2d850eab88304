"""The options of the commands of `pylogctl mirror`."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import Choice, limits, selection
from pylogctl.cli.selection import TopicPatterns

_DEFAULT_GROUP = "mirror"

_Patterns = Annotated[TopicPatterns, shared.TOPIC_PATTERNS_07]
_Group = Annotated[
    str,
    selection.option(
        "-g, --group G", "Consumer group in the source that has the offsets of the mirror."
    ),
]


class TopicChoice(Choice):
    """Topics of the source, and their names in the target."""

    patterns: _Patterns = shared.ALL_TOPICS
    topic_map: list[str] | None = selection.option(
        "--topic-map S/RE/NEW/",
        "Substitution that makes the name of the target topic, such as s/^/a./ (repeatable). "
        "Default: the same name.",
    )


class RunChoice(TopicChoice):
    """How to mirror topics."""

    group: _Group = _DEFAULT_GROUP
    streams: int = limits.option(
        "--streams N", "Threads that consume from the source.", min=1, default=1
    )
    producers: int = limits.option(
        "--producers N", "Threads that send to the target.", min=1, default=1
    )
    queue: int = limits.option(
        "--queue N", "Capacity of the queue of each producer, in message sets.", min=1, default=16
    )
    metrics_port: shared.MetricsPortOption = None
    on_corrupt: shared.OnCorruptOption = "stop"
    schemas: shared.SchemasOption = False


class StatusChoice(Choice):
    """The mirror to show, and how."""

    patterns: _Patterns = shared.ALL_TOPICS
    group: _Group = _DEFAULT_GROUP
    interval: float | None = limits.option(
        "--interval DUR", "Sample twice, this long apart, and show rates."
    )
    fail_above: int | None = limits.option(
        "--fail-above SIZE", "Status 12 if the lag is larger than this."
    )


class VerifyChoice(TopicChoice):
    """What of topics to compare with their mirrors."""

    offset: list[str] | None = shared.offset_option(
        "Offsets to compare in the source, START or START:END. Default: start:end."
    )
    target_offset: list[str] | None = selection.option(
        "--target-offset SPEC", "Offsets to compare in the target. Default: start:end."
    )
    exact: bool = limits.flag(
        "--exact", "Status 8 also if the target has surplus messages, such as duplicates."
    )

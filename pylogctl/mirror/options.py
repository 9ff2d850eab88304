"""The options that commands of `pylogctl mirror` share, and those of `mirror run`."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import Choice, limits, selection
from pylogctl.cli.selection import TopicPatterns

DEFAULT_GROUP = "mirror"

Patterns = Annotated[TopicPatterns, shared.TOPIC_PATTERNS_07]
Map = Annotated[
    list[str] | None,
    selection.option(
        "--topic-map S/RE/NEW/",
        "Substitution that makes the name of the target topic, such as s/^/a./ (repeatable). "
        "Default: the same name.",
    ),
]
MirrorGroup = Annotated[
    str,
    selection.option(
        "-g, --group G", "Consumer group in the source that has the offsets of the mirror."
    ),
]


class RunChoice(Choice):
    """How to mirror."""

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

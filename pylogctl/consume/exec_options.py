"""Options of commands that run a command for each message: `consume --exec`, `retry drain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pylogctl.cli.options import Choice, option

_RetryBackoff = Annotated[
    str | None,
    option(
        "--retry-backoff DUR",
        "Limits",
        "Wait before CMD runs again for a kept message, doubled each time up to 5m. Default: 1s.",
    ),
]
_MaxAttempts = Annotated[
    int | None,
    option(
        "--max-attempts N",
        "Limits",
        "Give a message up after N runs of CMD in all; it stays in DIR. Default: 0, never.",
        min=0,
    ),
]


class ExecChoice(Choice):
    """The command that `consume` runs, and what becomes of messages for which it fails."""

    exec_command: str | None = option(
        "--exec CMD",
        "Output",
        "Run CMD for each message, its payload on stdin; {topic}, {partition}, {offset}, "
        "{next_offset}, {size} and {number} are filled in. No shell is involved: pipes and "
        "redirections need sh -c '...', which gets a topic as an argument only: sh -c '... "
        '"$1"\' sh {topic}. Status 6 if it fails.',
    )
    retry_dir: Path | None = option(
        "--retry-dir DIR",
        "Output",
        "With --exec and --group: keep messages for which CMD fails in DIR, go on with the others, "
        "and run CMD for those again from time to time.",
    )
    retries: int | None = option(
        "--retries N",
        "Limits",
        "Run CMD again so often at once, before a message is kept. Default: 3.",
        min=0,
    )
    retry_backoff: _RetryBackoff = None
    max_attempts: _MaxAttempts = None


NO_COMMAND = ExecChoice()


class DrainChoice(Choice):
    """The command that `retry drain` runs."""

    exec_command: str | None = option(
        "--exec CMD",
        "Output",
        "Run CMD once for each message, as consume does. Default: write payloads to stdout.",
    )
    retry_backoff: _RetryBackoff = None
    max_attempts: _MaxAttempts = None

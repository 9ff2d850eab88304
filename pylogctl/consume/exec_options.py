"""Options of commands that run a command for each message: `consume --exec`, `retry drain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pylogctl.cli.options import OptionGroup, SharedOption, shared_option


@dataclass(frozen=True, slots=True)
class ExecChoice:
    """The values of the options; None if not given."""

    exec_command: str | None = None
    retry_dir: Path | None = None
    retries: int | None = None
    retry_backoff: str | None = None
    max_attempts: int | None = None


NO_COMMAND = ExecChoice()


def _exec_option(text: str) -> SharedOption:
    return shared_option(
        "exec_command", str | None, None, "--exec", metavar="CMD", panel="Output", help=text
    )


_RETRY_BACKOFF = shared_option(
    "retry_backoff",
    str | None,
    None,
    "--retry-backoff",
    metavar="DUR",
    panel="Limits",
    help="Wait before CMD runs again for a kept message, doubled each time up to 5m. Default: 1s.",
)
_MAX_ATTEMPTS = shared_option(
    "max_attempts",
    int | None,
    None,
    "--max-attempts",
    metavar="N",
    min=0,
    panel="Limits",
    help="Give a message up after N runs of CMD in all; it stays in DIR. Default: 0, never.",
)
EXECUTION = OptionGroup(
    (
        _exec_option(
            "Run CMD for each message, its payload on stdin; {topic}, {partition}, {offset}, "
            "{next_offset}, {size} and {number} are filled in. No shell is involved: pipes and "
            "redirections need sh -c '...', which gets a topic as an argument only: sh -c '... "
            '"$1"\' sh {topic}. Status 6 if it fails.',
        ),
        shared_option(
            "retry_dir",
            Path | None,
            None,
            "--retry-dir",
            metavar="DIR",
            panel="Output",
            help="With --exec and --group: keep messages for which CMD fails in DIR, go on with "
            "the others, and run CMD for those again from time to time.",
        ),
        shared_option(
            "retries",
            int | None,
            None,
            "--retries",
            metavar="N",
            min=0,
            panel="Limits",
            help="Run CMD again so often at once, before a message is kept. Default: 3.",
        ),
        _RETRY_BACKOFF,
        _MAX_ATTEMPTS,
    ),
    ExecChoice,
)
DRAINING = OptionGroup(
    (
        _exec_option(
            "Run CMD once for each message, as consume does. Default: write payloads to stdout."
        ),
        _RETRY_BACKOFF,
        _MAX_ATTEMPTS,
    ),
    ExecChoice,
)

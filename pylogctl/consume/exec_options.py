"""Options of `consume --exec`, which runs a command for each message."""

from __future__ import annotations

from pathlib import Path

from pylogctl.cli.declarations import Choice, option


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
    max_attempts: int | None = option(
        "--max-attempts N",
        "Limits",
        "Give a message up after N runs of CMD in all; it stays in DIR. Default: 0, never.",
        min=0,
    )


NO_COMMAND = ExecChoice()

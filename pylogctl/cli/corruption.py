"""What `--on-corrupt` says to do about a corrupt message, for all commands that have the option."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from broker.errors import BrokerError
from broker.topic import TopicPartition
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus


class OnCorrupt(Enum):
    """What to do about a corrupt message; the words of `--on-corrupt`."""

    STOP = "stop"
    SKIP = "skip"
    RAW = "raw"


FindBehind = Callable[[TopicPartition, int], int | None]
"""Returns where the next good message is behind a damaged one, None if nobody knows."""


class CorruptMessages:
    """Decides about corrupt messages, and counts those that are passed over.

    Args:
        env: told of each.
        on_corrupt: what to do.
    """

    def __init__(self, env: Environment, on_corrupt: OnCorrupt) -> None:
        self._env = env
        self._on_corrupt = on_corrupt
        self.count = 0

    @property
    def are_written(self) -> bool:
        """Say whether their stored bytes are wanted."""
        return self._on_corrupt is OnCorrupt.RAW

    def pass_over(
        self,
        partition: TopicPartition,
        offset: int,
        problem: str,
        find_behind: FindBehind,
        next_offset: int | None = None,
    ) -> int:
        """Decide about a corrupt message, and return where to go on.

        Args:
            partition: where it is.
            offset: where it starts.
            problem: what is wrong with it.
            find_behind: asks the broker.
            next_offset: where it ends by its own length, None if it has none.

        Raises:
            CliError: it is not to be skipped, or nobody knows where the next good one is.
        """
        behind = self._ask(find_behind, partition, offset)
        next_offset = next_offset if behind is None else behind
        problem = f"{partition}: {problem}"
        if self._on_corrupt is not OnCorrupt.STOP and next_offset is not None:
            self.count += 1
            self._env.warn(f"{problem}; going on at {next_offset}")
            return next_offset
        hints = [] if next_offset is None else [f"--on-corrupt skip goes on at {next_offset}"]
        raise CliError(
            ExitStatus.CORRUPT,
            problem,
            hints=[*hints, "try: pylogctl log verify on the broker's segment files"],
            code="INVALID_MESSAGE",
            details={"topic": partition.topic, "partition": partition.name, "offset": offset},
        )

    def _ask(self, find_behind: FindBehind, partition: TopicPartition, offset: int) -> int | None:
        """Return where the next good message is; no failure to find it hides the damage."""
        try:
            return find_behind(partition, offset)
        except BrokerError as error:
            self._env.trace(1, f"cannot look behind the damage: {error}")
            return None

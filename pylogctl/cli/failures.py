"""Work that fails in part: some of several targets, or a corrupt message among good ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

from broker.errors import BrokerError
from broker.topic import TopicPartition
from pylogctl.cli.environment import CliError, Environment, ExitStatus

Target = TypeVar("Target")
Result = TypeVar("Result")
Failure = CliError | BrokerError


class Done(NamedTuple):
    """How many of several targets failed; `plural` names them, for example `topics`."""

    failures: Sequence[Failure]
    target_count: int
    plural: str

    @property
    def summary(self) -> str:
        """How many failed, as part of a sentence."""
        return f"{len(self.failures)} of {self.target_count} {self.plural}"


def raise_failures(env: Environment, *results: Done) -> None:
    """End the command with PARTIAL if some targets failed; the same failure is reported once."""
    messages = list(dict.fromkeys(str(one) for done in results for one in done.failures))
    if not messages:
        return
    for message in messages:
        env.error(message)
    summary = " and ".join(done.summary for done in results if done.failures)
    raise CliError(ExitStatus.PARTIAL, f"{summary} failed", details={"failures": messages})


def for_each(
    env: Environment, plural: str, targets: Iterable[Target], work: Callable[[Target], Result]
) -> tuple[list[Result], Done]:
    """Call `work` once for every target; a CliError or BrokerError is the failure of its target.

    If all targets fail, the last failure is raised. `plural` names the targets, such as `topics`.
    """
    results: list[Result] = []
    failures: list[Failure] = []
    chosen = list(dict.fromkeys(targets))
    for target in chosen:
        try:
            results.append(work(target))
        except (CliError, BrokerError) as error:
            failures.append(error)
    if failures and not results:
        for failure in failures[:-1]:
            env.error(str(failure))
        raise failures[-1]
    return results, Done(failures, len(chosen), plural)


class OnCorrupt(Enum):
    """The treatment of a corrupt message; the words of `--on-corrupt`."""

    STOP = "stop"
    SKIP = "skip"
    RAW = "raw"


FindBehind = Callable[[TopicPartition, int], int | None]
"""Returns the offset of the next valid message after a corrupt one, None if it is not known; the
corrupt one's own offset if it is to be read again."""


class CorruptMessages:
    """Stops at a corrupt message or skips it, as `--on-corrupt` says, and counts those skipped."""

    def __init__(self, env: Environment, on_corrupt: OnCorrupt) -> None:
        self._env = env
        self._on_corrupt = on_corrupt
        self.count = 0

    @property
    def are_written(self) -> bool:
        """Whether the stored bytes of corrupt messages are written."""
        return self._on_corrupt is OnCorrupt.RAW

    def pass_over(
        self,
        partition: TopicPartition,
        offset: int,
        problem: str,
        find_behind: FindBehind,
        next_offset: int | None = None,
    ) -> int:
        """Skip a corrupt message; return the offset at which to continue.

        It is a CliError if corrupt messages are not skipped, or no later offset is known: neither
        from `find_behind` nor from the message's own length field (`next_offset`).
        """
        behind = None
        try:
            behind = find_behind(partition, offset)
        except BrokerError as error:  # must not hide the corrupt message
            self._env.trace(1, f"cannot find the next valid message: {error}")
        if behind == offset:
            return offset  # it is read again, at another replica
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
            *hints,
            "try: pylogctl log verify on the broker's segment files",
            code="INVALID_MESSAGE",
            details={"topic": partition.topic, "partition": partition.name, "offset": offset},
        )

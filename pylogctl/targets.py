"""Commands with several targets: one that fails is told, the rest is done.

Knows neither what a target is nor what is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from broker.errors import BrokerError
from pylogctl.context import Environment
from pylogctl.errors import CliError
from pylogctl.exit_status import ExitStatus

Target = TypeVar("Target")
Answer = TypeVar("Answer")
Failure = CliError | BrokerError


class Done(NamedTuple):
    """What came of several targets."""

    failures: Sequence[Failure]
    target_count: int

    def check(self, env: Environment, plural: str) -> None:
        """End the command as partly done if some targets failed; what succeeded is written by now.

        Args:
            env: where each failure is told, the same one only once.
            plural: what the targets are, for example `topics`.

        Raises:
            CliError: some failed.
        """
        if not self.failures:
            return
        messages = list(dict.fromkeys(map(str, self.failures)))
        for message in messages:
            env.complain(message)
        raise CliError(
            ExitStatus.PARTIAL,
            f"{len(self.failures)} of {self.target_count} {plural} failed",
            details={"failures": messages},
        )


def for_each(
    env: Environment, targets: Iterable[Target], work: Callable[[Target], Answer]
) -> tuple[list[Answer], Done]:
    """Do something with every target, each once.

    Args:
        env: where failures are told when there is nothing but failures.
        targets: what to do it with.
        work: does it; what it raises counts as this target's failure.

    Returns:
        What the good ones gave, and what became of all.

    Raises:
        CliError, BrokerError: a single target failed, or all of them did.
    """
    answers: list[Answer] = []
    failures: list[Failure] = []
    chosen = list(dict.fromkeys(targets))
    for target in chosen:
        try:
            answers.append(work(target))
        except (CliError, BrokerError) as error:
            failures.append(error)
    if failures and not answers:
        for failure in failures[:-1]:
            env.complain(str(failure))
        raise failures[-1]
    return answers, Done(failures, len(chosen))

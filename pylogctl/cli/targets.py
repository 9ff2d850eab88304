"""Commands with several targets: one that fails is told, the rest is done.

Knows neither what a target is nor what is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from broker.errors import BrokerError
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus

Target = TypeVar("Target")
Answer = TypeVar("Answer")
Failure = CliError | BrokerError


class Done(NamedTuple):
    """What came of several targets; `plural` is what they are, for example `topics`."""

    failures: Sequence[Failure]
    target_count: int
    plural: str

    @property
    def summary(self) -> str:
        """Return how many failed, as part of a sentence."""
        return f"{len(self.failures)} of {self.target_count} {self.plural}"


def check_done(env: Environment, *results: Done) -> None:
    """End the command as partly done if some targets failed; what succeeded is written by now.

    Args:
        env: where each failure is told, the same one only once.
        results: of one or more kinds of target.

    Raises:
        CliError: some failed.
    """
    messages = list(dict.fromkeys(str(one) for done in results for one in done.failures))
    if not messages:
        return
    for message in messages:
        env.complain(message)
    summary = " and ".join(done.summary for done in results if done.failures)
    raise CliError(ExitStatus.PARTIAL, f"{summary} failed", details={"failures": messages})


def for_each(
    env: Environment, plural: str, targets: Iterable[Target], work: Callable[[Target], Answer]
) -> tuple[list[Answer], Done]:
    """Do something with every target, each once.

    Args:
        env: where failures are told when there is nothing but failures.
        plural: what the targets are, for example `topics`.
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
    return answers, Done(failures, len(chosen), plural)

"""How the verification of segment files is told: rows, a line, and the exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylogctl.context import Environment
from pylogctl.exit_status import ExitStatus
from pylogctl.log_documents import VERIFY, problem_record, summary_line
from pylogctl.render import render

if TYPE_CHECKING:
    from broker.log.inspect import VerifySummary


def tell_verification(env: Environment, summary: VerifySummary, elapsed_s: float) -> ExitStatus:
    """Write what was found.

    Args:
        env: where it is written.
        summary: what was found.
        elapsed_s: how long it took, in seconds.

    Returns:
        The exit status that this means.
    """
    render(env, VERIFY, [problem_record(problem) for problem in summary.problems])
    env.flush()
    for unreadable in summary.unreadable:
        env.complain(f"'{unreadable.path}': {unreadable.reason.lower()}")
    env.note(summary_line(summary, elapsed_s))
    return _status_of(summary)


def _status_of(summary: VerifySummary) -> ExitStatus:
    if summary.problems:
        return ExitStatus.CORRUPT
    if not summary.unreadable:
        return ExitStatus.OK
    if summary.reports:
        return ExitStatus.PARTIAL
    all_missing = all(unreadable.is_missing for unreadable in summary.unreadable)
    return ExitStatus.NOT_FOUND if all_missing else ExitStatus.FAILED

"""`pylogctl doctor`: check that everything needed is in place."""

from __future__ import annotations

from typing import Annotated

import typer

from pylogctl.cli.columns import HIDDEN, Document, Fit, Row, Text
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.options import CONNECTION, OUTPUT, accepts
from pylogctl.cli.render import render
from pylogctl.cli.tree import Command, new_app

app = new_app()


class FindingRow(Row):
    """The result of a check."""

    status: Annotated[str, "ok, warn or fail", Fit.STATE]
    check: Annotated[str, "subject of the check", Fit.WHOLE]
    detail: Annotated[str, "result in detail", Fit.WRAP]
    hint: Annotated[Text, "how to mend it", Fit.WRAP, HIDDEN]


DOCTOR = Document("doctor/1", FindingRow, empty="no checks")


@app.command("doctor", cls=Command)
@accepts(
    OUTPUT + CONNECTION,
    exits=(ExitStatus.FAILED,),
    reports_failures=True,
    examples=("pylogctl doctor", "pylogctl doctor --output json --broker localhost:9092"),
)
def doctor(env: Environment) -> None:
    """Check that everything needed is in place.

    Checks interpreter, libraries, codecs, Java, disk, limits, ZooKeeper and brokers: whether all
    are up, what they have lost with disks, their clocks, certificates, whether strangers may use
    them, and the rights of key files on this machine. Exit status 1 means that something needed is
    missing.
    """
    from pylogctl.doctor.checks import Verdict, run_checks

    findings = list(run_checks(env))
    rows = [FindingRow(f.verdict.value, f.check, f.detail, f.hint or None) for f in findings]
    render(env, DOCTOR, rows)
    env.flush()
    for finding in findings:
        if finding.hint and finding.verdict is not Verdict.OK:
            env.note(f"{finding.check}: {finding.hint}")
    if any(finding.verdict is Verdict.FAIL for finding in findings):
        raise typer.Exit(ExitStatus.FAILED)

"""`pylogctl doctor`: check that everything needed is in place."""

from __future__ import annotations

from pylogctl.cli.environment import Environment, ExitStatus
from pylogctl.cli.options import CONNECTION, OUTPUT, App
from pylogctl.cli.render import render

app = App()


@app.command(OUTPUT + CONNECTION, exits=(ExitStatus.FAILED,), reports_failures=True)
def doctor(env: Environment) -> int:
    """Check that everything needed is in place.

    Checks interpreter, libraries, codecs, Java, disk, limits, ZooKeeper and brokers: whether all
    are up, what they have lost with disks, their clocks, certificates, whether strangers may use
    them, and the rights of key files on this machine. Exit status 1 means that something needed is
    missing.

    $ pylogctl doctor
    $ pylogctl doctor --output json --broker localhost:9092
    """
    from pylogctl.doctor.checks import DOCTOR, Verdict, run_checks

    findings = list(run_checks(env))
    render(env, DOCTOR, findings)
    env.flush()
    for finding in findings:
        if finding.hint and finding.status is not Verdict.OK:
            env.note(f"{finding.check}: {finding.hint}")
    has_failed = any(finding.status is Verdict.FAIL for finding in findings)
    return ExitStatus.FAILED if has_failed else ExitStatus.OK

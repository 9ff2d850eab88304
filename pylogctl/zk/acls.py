"""The work of `zk secure` and `zk open`: the plan, the question, the change and its check."""

from __future__ import annotations

from broker.admin.registry_acls import change_acls, check_brokers, compare_acls
from broker.units import counted
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import zookeeper_session
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.zk.document import ACLS, AclRow


def change(env: Environment, *, is_secured: bool) -> None:
    """Give all nodes of the brokers the ACL of a secured, or open, cluster, and check it."""
    verb, done = ("secure", "closed") if is_secured else ("open", "opened")
    with zookeeper_session(env) as session:
        if is_secured and session.user is None:
            raise UsageError(
                "nodes are closed to all but the user of a credential, and none is given",
                hints=["give that of the brokers: --zk-credential FILE"],
            )
        check_brokers(session, is_secured=is_secured)
        found = list(compare_acls(session, is_secured=is_secured))
        render(env, ACLS, (AclRow(*one) for one in found))
        count = sum(one.differing_count for one in found)
        if not count:
            env.note("nothing to change")
            return
        if env.settings.dry_run:
            env.note("nothing changed; this was a dry run")
            return
        env.flush()
        confirm(env, f"zk {verb}", f"{verb} {counted(count, 'node')} of {env.zookeeper}?")
        changed = change_acls(session, is_secured=is_secured)
        left = sum(one.differing_count for one in compare_acls(session, is_secured=is_secured))
        env.note(f"{counted(changed, 'node')} {done}")
        if left:
            raise CliError(
                ExitStatus.PARTIAL,
                f"{counted(left, 'node')} were made with another ACL meanwhile",
                hints=[f"run it again: pylogctl zk {verb}"],
            )

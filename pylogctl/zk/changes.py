"""Changes of nodes by `pylogctl zk`, and of their ACLs; the tree that one is compared with.

A change is planned, shown, confirmed and made; what it replaces is saved before. What was shown is
what is made: a plan is kept in a temporary file, as a tree may have more nodes than memory holds.
"""

from __future__ import annotations

import io
import json
import pickle
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from broker.admin import registry_nodes
from broker.admin.registry_nodes import Action, NodeChange, change_acls, check_brokers, compare_acls
from broker.errors import CoordinationError
from broker.files import write_atomically
from broker.units import counted
from pylogctl.cli.columns import Document
from pylogctl.cli.confirmation import confirm, new_undo_file, tell_undo
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, zookeeper_security, zookeeper_session
from pylogctl.cli.context import at_cluster, read_contexts
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.zk.document import ChangeRow, change_row

if TYPE_CHECKING:
    from broker.zk.session import Session

ACLS = Document("zk.acls/1", registry_nodes.TreeAcls, empty="no nodes")
_RECONNECT_S = 1.0
_DONE: dict[Action, str] = {"create": "created", "set": "set", "delete": "deleted"}


def value_of(env: Environment, text: str) -> bytes:
    """Return the value of a command line, exactly: `-` stands for that of standard input."""
    if text != "-":
        return text.encode("utf-8", "surrogateescape")
    with opened(env, text) as found:
        return found.read()


@contextmanager
def other_tree(
    env: Environment, path: str, other: str
) -> Iterator[Iterable[registry_nodes.NodeRecord]]:
    """Yield the nodes of an export, or of another ZooKeeper, at and below a path."""
    is_address = other != "-" and not Path(other).exists() and ":" in other
    if is_address or other in read_contexts(env.environ).by_name:
        timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
        there = at_cluster(env, other, takes_brokers=False)
        from broker.zk.session import Session  # late: kazoo

        session = Session(
            there.zookeeper, request_timeout_s=timeout_s, security=zookeeper_security(there)
        )
        session.start(timeout_s, retries_refused=False)
        try:
            yield map(registry_nodes.as_record, registry_nodes.read_tree(session, path))
        finally:
            session.stop()
        return
    below = "/" if path == "/" else f"{path}/"
    with opened(env, other) as lines:
        records = registry_nodes.decode_lines(lines)
        yield (one for one in records if one.path == path or one.path.startswith(below))


@contextmanager
def opened(env: Environment, file: str) -> Iterator[BinaryIO]:
    """Open a file for reading; `-` is standard input."""
    if file == "-":
        yield env.streams.stdin or io.BytesIO()
        return
    with Path(file).open("rb") as named:
        yield named


def asks(env: Environment, verb: str, what: str) -> Callable[[Counter[Action]], None]:
    """Return the question of a command, which says how many nodes it changes."""

    def ask(counts: Counter[Action]) -> None:
        number = counted(counts.total(), "node")
        confirm(env, f"zk {verb}", f"{verb} '{what}'? It changes {number}")

    return ask


def carry_out(
    env: Environment,
    session: Session,
    document: Document,
    plan: Iterable[NodeChange],
    ask: Callable[[Counter[Action]], None],
    *,
    is_shown_only: bool = False,
) -> None:
    """Show the plan, ask, and make its changes."""
    found: Counter[Action] = Counter()
    with tempfile.TemporaryFile() as kept_plan:

        def shown() -> Iterator[ChangeRow]:
            for change in plan:
                found[change.action] += 1
                if change.action != "keep":
                    pickle.dump(change, kept_plan)
                    yield change_row(change)

        render(env, document, shown())
        if _may_go_on(env, found, is_shown_only=is_shown_only):
            env.flush()
            ask(found)
            kept_plan.seek(0)
            _make(env, session, _loaded(kept_plan))


def _may_go_on(env: Environment, found: Counter[Action], *, is_shown_only: bool) -> bool:
    """Say what of a plan is no change, or why none is made; leave the changes in `found`."""
    kept, skipped = found.pop("keep", 0), found.pop("skip", 0)
    if kept:
        env.note(f"unchanged, and left out: {counted(kept, 'node')}")
    if skipped:
        env.warn(f"skipped, as their sessions make them: {counted(skipped, 'ephemeral node')}")
    if not found:
        env.note("nothing to change")
        return False
    if is_shown_only or env.settings.dry_run:
        advice = "this was a dry run" if env.settings.dry_run else "add --execute"
        env.note(f"nothing changed; {advice}")
        return False
    return True


def _loaded(kept_plan: BinaryIO) -> Iterator[NodeChange]:
    with suppress(EOFError):
        while True:
            yield pickle.load(kept_plan)


def _make(env: Environment, session: Session, changes: Iterable[NodeChange]) -> None:
    """Make changes, save what they replace, and tell what was made and how it is undone."""
    with closing(_Undo(env)) as undo:
        try:
            made, failed = registry_nodes.apply_changes(session, changes, undo.save)
        except CoordinationError:
            undo.forget_unmade(session)
            raise
        if failed:
            undo.forget(set(failed))
    env.note(
        ", ".join(f"{counted(made[one], 'node')} {_DONE[one]}" for one in _DONE if made[one])
        or "nothing changed"
    )
    if failed:
        raise CliError(
            ExitStatus.PARTIAL if made.total() else ExitStatus.CONFLICT,
            f"{counted(len(failed), 'node')} stayed as found: changed since the plan was shown, or "
            "with nodes below that it does not have",
            f"the first is {failed[0]}",
            "run it again, to see what is there now",
            code="REGISTRY_CONFLICT",
        )


class _Undo:
    """The file of what changes replace, which an import restores."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._path = new_undo_file(env, "zk")
        self._file: BinaryIO = self._path.open("xb+")

    def save(self, changes: Sequence[NodeChange]) -> None:
        """Save nodes before they are changed."""
        self._file.writelines(map(registry_nodes.encode_before, changes))
        self._file.flush()

    def forget(self, paths: Collection[str]) -> None:
        """Leave nodes out that were not changed: the undo must not replace what others wrote."""
        self._file.seek(0)
        kept = [line for line in self._file if json.loads(line)["path"] not in paths]
        write_atomically(self._path, b"".join(kept))
        self._file.close()
        self._file = self._path.open("rb")

    def forget_unmade(self, session: Session) -> None:
        """Leave out nodes that are as they were; all are kept where that cannot be read."""
        session.prepare_stop(_RECONNECT_S)
        self._file.seek(0)
        with suppress(CoordinationError):
            session.sync()  # a write whose response was lost may be on its way to this server
            wanted = registry_nodes.plan_import(session, registry_nodes.decode_lines(self._file))
            self.forget({one.path for one in wanted if one.action == "keep"})

    def close(self) -> None:
        """Tell how to restore what the file has; delete it if that is nothing."""
        self._file.seek(0)
        saved = Counter(json.loads(line).get("ephemeral") is True for line in self._file)
        self._file.close()
        if saved[True]:
            number = counted(saved[True], "ephemeral node")
            self._env.warn(f"no undo of {number}: only a session can make it")
        if saved[False]:
            tell_undo(self._env, self._path, ["zk", "import"])
        else:
            self._path.unlink()


def change_acls_of_brokers(env: Environment, *, is_secured: bool) -> None:
    """Give all nodes of the brokers the ACL of a secured, or open, cluster, and check it."""
    verb, done = ("secure", "closed") if is_secured else ("open", "opened")
    with zookeeper_session(env) as session:
        if is_secured and session.user is None:
            raise UsageError(
                "nodes are closed to all but the user of a credential, and none is given",
                "give that of the brokers: --zk-credential FILE",
            )
        check_brokers(session, is_secured=is_secured)
        found = list(compare_acls(session, is_secured=is_secured))
        render(env, ACLS, found)
        count = sum(one.to_change for one in found)
        if not count:
            env.note("nothing to change")
            return
        if env.settings.dry_run:
            env.note("nothing changed; this was a dry run")
            return
        env.flush()
        confirm(env, f"zk {verb}", f"{verb} {counted(count, 'node')} of {env.zookeeper}?")
        changed = change_acls(session, is_secured=is_secured)
        left = sum(one.to_change for one in compare_acls(session, is_secured=is_secured))
        env.note(f"{counted(changed, 'node')} {done}")
        if left:
            raise CliError(
                ExitStatus.PARTIAL,
                f"{counted(left, 'node')} were made with another ACL meanwhile",
                f"run it again: pylogctl zk {verb}",
            )

"""Trees of nodes in ZooKeeper: reading, exports, comparisons, and changes with the way back.

An export has a line of JSON for each node, in the order of `Session.walk`: `path`, the value as
`value` if it is UTF-8 and as `value_b64` if not, `ephemeral`, and what ZooKeeper knows of it. A
line with `absent` says that there was no such node: its import deletes it.

Whatever the size of a tree, memory holds the values of some nodes at a time.
"""

from __future__ import annotations

import base64
import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeVar

from broker import errors
from broker.records import Count, Fit
from broker.zk import paths, values
from broker.zk.nodes import DeleteNode, NodeStat
from broker.zk.paths import Protection, protection_of, resolve

if TYPE_CHECKING:
    from broker.zk.session import Session

_NODES_AT_ONCE = 64  # each may have a value of a megabyte
_SYSTEM_NODES = "/zookeeper"
_T = TypeVar("_T")

Action = Literal["create", "set", "delete", "keep", "skip"]


class FoundNode(NamedTuple):
    """A node that was read."""

    path: str
    value: bytes
    stat: NodeStat

    @property
    def is_ephemeral(self) -> bool:
        """Whether it goes with its session."""
        return self.stat.ephemeral_owner != 0


class NodeRecord(NamedTuple):
    """A node of an export; `is_absent` for one that is to be deleted."""

    path: str
    value: bytes
    is_ephemeral: bool = False
    is_absent: bool = False


class NodeChange(NamedTuple):
    """What is to become of a node: its values before and after, None where there is no node.

    `version` is that of the node that is replaced or deleted.
    """

    path: str
    action: Action
    before: bytes | None
    after: bytes | None
    version: int = -1
    is_ephemeral: bool = False


class NodeDifference(NamedTuple):
    """A node that two trees have in different forms; None where one of them lacks it."""

    path: str
    left: NodeRecord | None
    right: NodeRecord | None


def read_nodes(session: Session, node_paths: Iterable[str]) -> Iterator[FoundNode]:
    """Yield nodes in the order of their paths, without those that are missing."""
    for some in _in_batches(node_paths):
        found = session.get_many(some)
        yield from (FoundNode(path, *found[path]) for path in some if path in found)


def read_tree(session: Session, path: str) -> Iterator[FoundNode]:
    """Yield a node and all below it, without ZooKeeper's own."""
    has_chroot = "/" in session.connect
    walked = (one for _, one in session.walk(path))
    return read_nodes(session, (one for one in walked if has_chroot or not _is_system(one)))


def _is_system(path: str) -> bool:
    return path == _SYSTEM_NODES or path.startswith(f"{_SYSTEM_NODES}/")


def encode_node(node: FoundNode) -> bytes:
    """Return the line of an export."""
    stat = node.stat
    facts = {
        "ephemeral": node.is_ephemeral,
        "owner": hex(stat.ephemeral_owner) if node.is_ephemeral else None,
        "version": stat.version,
        "created_ms": stat.ctime_ms,
        "modified_ms": stat.mtime_ms,
        "czxid": hex(stat.czxid),
        "mzxid": hex(stat.mzxid),
    }
    return _line({"path": node.path, **_value_field(node.value), **facts})


def encode_before(change: NodeChange) -> bytes:
    """Return the line whose import undoes a change."""
    if change.before is None:
        return _line({"path": change.path, "absent": True})
    facts = {"ephemeral": change.is_ephemeral, "version": change.version}
    return _line({"path": change.path, **_value_field(change.before), **facts})


def _value_field(value: bytes) -> dict[str, str]:
    try:
        return {"value": value.decode()}
    except UnicodeDecodeError:
        return {"value_b64": base64.b64encode(value).decode()}


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode_lines(lines: Iterable[bytes]) -> Iterator[NodeRecord]:
    """Yield the nodes of an export; `ArgumentError` for a line that is none."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _decode_line(line)
            except (ValueError, KeyError, TypeError, errors.CoordinationError) as error:
                raise errors.ArgumentError(
                    f"line {number}: not a node of an export: {error}",
                    hints=['a line is like {"path":"/a","value":"text"}; value_b64 is for bytes'],
                ) from error


def _decode_line(line: bytes) -> NodeRecord:
    fields = json.loads(line)
    path = fields["path"]
    resolve("", path)
    if fields.get("absent") is True:
        return NodeRecord(path, b"", is_absent=True)
    if "value_b64" in fields:
        value = base64.b64decode(fields["value_b64"], validate=True)
    else:
        value = fields["value"].encode()
    return NodeRecord(path, value, fields.get("ephemeral") is True)


def plan_import(session: Session, records: Iterable[NodeRecord]) -> Iterator[NodeChange]:
    """Yield what makes each node as a record has it.

    Ephemeral ones, in the records or in ZooKeeper, are skipped: they are of their sessions.
    """
    for some in _in_batches(records):
        found = session.get_many([one.path for one in some])
        for record in some:
            value, stat = found.get(record.path, (None, None))
            yield _planned(record, value, stat)


def _planned(record: NodeRecord, value: bytes | None, stat: NodeStat | None) -> NodeChange:
    after = None if record.is_absent else record.value
    is_ephemeral = record.is_ephemeral or (stat is not None and stat.ephemeral_owner != 0)
    action: Action = "set"
    if is_ephemeral:
        action = "skip"
    elif value == after:
        action = "keep"
    elif value is None:
        action = "create"
    elif after is None:
        action = "delete"
    version = -1 if stat is None else stat.version
    return NodeChange(record.path, action, value, after, version, is_ephemeral)


def plan_removal(nodes: Iterable[FoundNode]) -> Iterator[NodeChange]:
    """Yield the deletions of nodes; a parent comes before its children."""
    return (
        NodeChange(one.path, "delete", one.value, None, one.stat.version, one.is_ephemeral)
        for one in nodes
    )


def plan_creation(session: Session, path: str, value: bytes) -> list[NodeChange]:
    """Return the creations of a node and its missing parents; `RegistryConflictError` if it is."""
    steps = path.split("/")
    lineage = ["/".join(steps[: end + 1]) for end in range(1, len(steps))]
    found = session.get_many(lineage)
    if path in found:
        raise errors.RegistryConflictError(f"node {path} exists already")
    missing = [one for one in lineage if one not in found]
    return [NodeChange(one, "create", None, value if one == path else b"") for one in missing]


def apply_changes(
    session: Session, changes: Iterable[NodeChange], save: Callable[[Sequence[NodeChange]], None]
) -> tuple[Counter[Action], list[str]]:
    """Make changes; return how many of each kind were made, and paths of nodes that changed since.

    `save` gets the changes before they are made. Nodes whose version is another one stay as they
    are. Deletions must come in the order of `Session.walk`, and are made from the leaves up.
    """
    counts: Counter[Action] = Counter()
    failed: list[str] = []
    parents: list[NodeChange] = []  # to be deleted once what is below them is
    closed: list[NodeChange] = []

    def delete_closed() -> None:
        outcomes = session.transact_many([DeleteNode(one.path, one.version)] for one in closed)
        for one, outcome in zip(closed, outcomes, strict=True):
            if outcome.is_done:
                counts["delete"] += 1
            else:
                failed.append(one.path)
        closed.clear()

    for some in _in_batches(one for one in changes if one.action not in ("keep", "skip")):
        save(some)
        created = {one.path: one.after or b"" for one in some if one.action == "create"}
        existing = session.create_many(created, ephemeral=False)
        counts["create"] += len(created) - len(existing)
        replaced = {
            one.path: (one.after or b"", one.version) for one in some if one.action == "set"
        }
        versions = session.set_many(replaced)
        counts["set"] += len(versions)
        failed += [*existing, *(path for path in replaced if path not in versions)]
        for change in some:
            if change.action == "delete":
                while parents and not change.path.startswith(f"{parents[-1].path}/"):
                    closed.append(parents.pop())
                parents.append(change)
        delete_closed()
    closed += reversed(parents)
    delete_closed()
    return counts, failed


def compare(left: Iterable[NodeRecord], right: Iterable[NodeRecord]) -> Iterator[NodeDifference]:
    """Yield the nodes that differ in value or kind; both sides are in the order of an export.

    `ArgumentError` if one is not.
    """
    both = heapq.merge(_of_side(0, left), _of_side(1, right), key=lambda one: _steps(one[1]))
    for path, some in groupby(both, key=lambda one: one[1].path):
        found = dict(some)
        if found.get(0) != found.get(1):
            yield NodeDifference(path, found.get(0), found.get(1))


def _of_side(side: int, records: Iterable[NodeRecord]) -> Iterator[tuple[int, NodeRecord]]:
    return ((side, one) for one in _in_order(records))


def _in_order(records: Iterable[NodeRecord]) -> Iterator[NodeRecord]:
    before: list[str] = []
    for record in records:
        if _steps(record) <= before:
            raise errors.ArgumentError(
                f"node {record.path} is not in the order of an export, after {'/'.join(before)}",
                hints=["an export of the whole tree is in order: pylogctl zk export PATH"],
            )
        before = _steps(record)
        yield record


def _steps(record: NodeRecord) -> list[str]:
    return [""] if record.path == "/" else record.path.split("/")


def as_record(node: FoundNode) -> NodeRecord:
    """Return a node as its export has it."""
    return NodeRecord(node.path, node.value, node.is_ephemeral)


def _in_batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(items)
    while some := list(islice(rest, _NODES_AT_ONCE)):
        yield some


_ACLS_AT_ONCE = 256


class TreeAcls(NamedTuple):
    """Nodes of a tree, and how many of them do not have the ACL that they are to have."""

    tree: Annotated[str, "its top, `/` for the chroot's own node alone", Fit.WHOLE]
    nodes: Annotated[Count, "its nodes"]
    to_change: Annotated[Count, "those of them that get another ACL"]


def compare_acls(session: Session, *, is_secured: bool) -> Iterator[TreeAcls]:
    """Yield each tree of the brokers with the nodes whose ACL is not that of the wanted state."""
    for tree in _trees(session):
        node_count = differing_count = 0
        for found, differing in _differing(session, tree, is_secured=is_secured):
            node_count += found
            differing_count += len(differing)
        yield TreeAcls(tree, node_count, differing_count)


def change_acls(session: Session, *, is_secured: bool) -> int:
    """Give each node of the brokers the ACL of a secured, or open, cluster; return how many got it.

    What others have made besides stays as it is. A repetition goes on where one was interrupted.
    """
    if is_secured:  # once the chroot is closed, clients without the credential cannot make them
        session.create_many(dict.fromkeys(paths.OPEN_TREES, b""), ephemeral=False)
    return sum(
        session.set_acls(differing, is_secured=is_secured)
        for tree in _trees(session)
        for _, differing in _differing(session, tree, is_secured=is_secured)
    )


def check_brokers(session: Session, *, is_secured: bool) -> None:
    """Raise `ConflictError` if a live broker registers with another ACL than it is to have.

    It would lose its rights, or go on making nodes with that ACL.
    """
    nodes = map(paths.broker, values.broker_ids(session.children_if_any(paths.BROKER_IDS)))
    found = session.have_acls(nodes, is_secured=is_secured)
    others = ", ".join(path.rpartition("/")[2] for path, is_right in found.items() if not is_right)
    if not others:
        return
    settings = (
        "zookeeper.set.acl=true and this zookeeper.credential.file"
        if is_secured
        else "zookeeper.set.acl=false"
    )
    raise errors.ConflictError(
        f"brokers that do not run with {settings}: {others}",
        hints=["restart them with it, one after the other, and run this again"],
    )


def _trees(session: Session) -> Iterator[str]:
    """Yield the chroot's own node, and the tops of the trees that brokers write."""
    yield "/"
    for name in session.children("/"):
        if protection_of(f"/{name}") is not Protection.OPEN:
            yield f"/{name}"


def _differing(session: Session, tree: str, *, is_secured: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield, some at a time, how many nodes a tree has, and those that have another ACL."""
    # the tree may be gone, such as that of the controller
    with suppress(errors.RegistryNodeNotFoundError):
        is_single = tree == "/" or tree in paths.OPEN_TREES
        walked = session.walk(tree, max_depth=0 if is_single else None)
        while some := [path for _, path in islice(walked, _ACLS_AT_ONCE)]:
            found = session.have_acls(some, is_secured=is_secured)
            yield len(found), [path for path, is_right in found.items() if not is_right]

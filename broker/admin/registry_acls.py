"""Closes the nodes of a cluster in ZooKeeper to other clients, or opens them, while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from broker.errors import ConflictError, RegistryNodeNotFoundError
from broker.zk import paths, values
from broker.zk.paths import Protection, protection_of
from broker.zk.session import Session

_NODES_AT_ONCE = 256


class TreeAcls(NamedTuple):
    """Nodes of a tree, and how many of them do not have the ACL that they are to have."""

    tree: str
    node_count: int
    differing_count: int


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
    raise ConflictError(
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
    with suppress(RegistryNodeNotFoundError):  # the tree went, such as that of the controller
        is_single = tree == "/" or tree in paths.OPEN_TREES
        walked = session.walk(tree, max_depth=0 if is_single else None)
        while some := [path for _, path in islice(walked, _NODES_AT_ONCE)]:
            found = session.have_acls(some, is_secured=is_secured)
            yield len(found), [path for path, is_right in found.items() if not is_right]

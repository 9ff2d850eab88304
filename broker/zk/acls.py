"""Keeps what is above the brokers' nodes closed: to delete a node is a right of its parent."""

from __future__ import annotations

from contextlib import suppress

from broker.errors import RegistryAccessError
from broker.zk import paths
from broker.zk.session import Session

_PARENTS = ("/", *paths.OPEN_TREES)


def close_parents(session: Session) -> None:
    """Close the chroot's own node, without a chroot the root, and keep the open trees below it.

    The nodes above a chroot may stay open: it has children that nobody else can delete, and a node
    with children cannot be deleted.

    Raises:
        RegistryAccessError: others may create or delete nodes there, and the session may not
            change that.
    """
    # An empty chroot can be replaced by others until it has children: the last look decides.
    for _ in range(2):
        with suppress(RegistryAccessError):
            session.set_acls(session.excess_rights(_PARENTS), is_secured=True)
        session.create_many(dict.fromkeys(paths.OPEN_TREES, b""), ephemeral=False)
    found = session.excess_rights(["/"]).get("/", "")
    if found:
        raise RegistryAccessError(
            f"others could replace the brokers' nodes in ZooKeeper {session.connect}: of the node "
            f"above them {found}, and the user '{session.user}' may not change its ACL",
            hints=[
                f"give '{session.user}' all rights on that node, or add a path to zk.connect: a "
                "node that brokers make for themselves"
            ],
        )


def open_nodes(session: Session) -> list[str]:
    """Return by which nodes others could change what is the brokers', as clauses."""
    try:
        users = [f"{paths.USERS}/{name}" for name in session.children_if_any(paths.USERS)]
    except RegistryAccessError:
        users = []  # their parent is found below
    found = session.excess_rights([*paths.OWN_NODES, *users])
    return [f"node {path}: {excess}" for path, excess in found.items()]


def check_new_cluster(session: Session) -> None:
    """Raise `RegistryAccessError` if there are open nodes of brokers before the first broker."""
    if found := open_nodes(session):
        raise RegistryAccessError(
            "ZooKeeper has nodes from before this cluster, which others can have written: "
            + "; ".join(found),
            hints=[
                "delete them (pylogctl zk rm), or if they are yours, keep them: pylogctl zk secure"
            ],
        )

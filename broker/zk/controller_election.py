"""Which broker is the controller of the cluster: the first to create `/controller`.

The node is created and `/controller_epoch` raised in one transaction, so that no two controllers
have one epoch. While the node is a broker's own, the epoch is its own too: no other broker can
raise it unless the node goes in the same transaction. Malformed nodes raise `CoordinationError`.

Source: Kafka 0.8 `ZookeeperLeaderElector`, `KafkaController.incrementControllerEpoch`, with the
repairs of later versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from broker import errors
from broker.zk import paths
from broker.zk.nodes import CreateNode, DeleteNode, NodeChange, SetNode
from broker.zk.session import Session, Watch
from broker.zk.values import decode_number, encode_number, parsed


class Term(NamedTuple):
    """A term of this broker as the controller; its `epoch` is higher than all before.

    `epoch_version` is that of `/controller_epoch` during the term.
    """

    epoch: int
    epoch_version: int


class Holder(NamedTuple):
    """The controller, and session and version of the node that names it."""

    broker_id: int
    session_id: int
    version: int


def stored_epoch(session: Session) -> int:
    """Return the epoch of the last controller."""
    return _decode_epoch(session.get(paths.CONTROLLER_EPOCH)[0])


class ControllerElection:
    """One broker's part in the election of the controller.

    A term ends with the session. The broker must be registered: a node with its id from another
    session is taken for that of an earlier run.
    """

    def __init__(self, session: Session, broker_id: int) -> None:
        self._session = session
        self._broker_id = broker_id

    def holder(self, watch: Watch | None = None) -> Holder | None:
        """Return the controller, None if there is none; the watch is called when it changes."""
        while True:
            with suppress(errors.RegistryNodeNotFoundError):
                value, stat = self._session.get(paths.CONTROLLER, watch=watch)
                return Holder(_decode_controller(value), stat.ephemeral_owner, stat.version)
            if watch is None or self._session.exists(paths.CONTROLLER, watch=watch) is None:
                return None

    def try_to_win(self, watch: Watch, *, now_ms: int) -> Term | Holder:
        """Become the controller if there is none, or find that this broker is it.

        Returns this broker's term, or the other broker that is the controller. The watch is called
        once when the controller changes; `now_ms` is for people who read the node. If no response
        came in time, this broker may have won.
        """
        while True:
            holder = self.holder(watch)
            if holder is None:
                self._create(self._term(), now_ms)  # the next read shows whose node it is
            elif holder.session_id == self._session.session_id:
                term = self._term()
                if self.holder() == holder:  # else the epoch may be that of another by now
                    return term
            elif holder.broker_id == self._broker_id:
                self._delete(holder)
            else:
                return holder

    def take_over(self, broker_id: int, broker_epoch: int, *, now_ms: int) -> None:
        """Become the controller in the place of a broker that is gone, before its session ends.

        Does nothing unless the office is that of this registration, or if another one is faster.
        """
        term = self._term()
        with suppress(errors.RegistryNodeNotFoundError):
            registration = self._session.get(paths.replicated_broker(broker_id))[1]
            holder = self.holder()
            if (
                holder is not None
                and registration.czxid == broker_epoch
                and registration.ephemeral_owner == holder.session_id
            ):
                self._create(term, now_ms, [DeleteNode(paths.CONTROLLER, holder.version)])

    def raise_epoch(self, term: Term, above: int) -> Term:
        """Give a term an epoch above the last one that is known from elsewhere.

        Needed if the node with the epoch was deleted or edited by hand. Raises
        `RegistryConflictError` if it has changed since: the term may be over.
        """
        change = SetNode(paths.CONTROLLER_EPOCH, encode_number(above + 1), term.epoch_version)
        self._session.transact([change])
        return Term(above + 1, term.epoch_version + 1)

    def resign(self) -> None:
        """End this broker's term, if it is the controller."""
        holder = self.holder()
        if holder is not None and holder.session_id == self._session.session_id:
            self._delete(holder)

    def _delete(self, holder: Holder) -> None:
        """Delete the node, unless another one has taken its place meanwhile."""
        with suppress(errors.RegistryConflictError):
            self._session.transact([DeleteNode(paths.CONTROLLER, holder.version)])

    def _create(self, term: Term, now_ms: int, first: Sequence[NodeChange] = ()) -> None:
        """Create the node and raise the epoch, unless another broker does."""
        node = {"version": 1, "brokerid": self._broker_id, "timestamp": str(now_ms)}
        create = CreateNode(paths.CONTROLLER, json.dumps(node).encode(), ephemeral=True)
        epoch = encode_number(term.epoch + 1)
        raise_epoch = SetNode(paths.CONTROLLER_EPOCH, epoch, term.epoch_version)
        self._session.transact_many([[*first, create, raise_epoch]])

    def _term(self) -> Term:
        """Return the last epoch, and the version of its node."""
        while True:
            with suppress(errors.RegistryNodeNotFoundError):
                value, stat = self._session.get(paths.CONTROLLER_EPOCH)
                return Term(_decode_epoch(value), stat.version)
            with suppress(errors.RegistryConflictError):
                self._session.create(paths.CONTROLLER_EPOCH, encode_number(0))


@contextmanager
def _advised() -> Iterator[None]:
    """Have the error of a malformed node say how to mend it."""
    try:
        yield
    except errors.CoordinationError as error:
        raise errors.CoordinationError(
            f"{error}; delete it, and a broker takes the office"
        ) from error


@_advised()
def _decode_epoch(value: bytes) -> int:
    return decode_number(value, f"node {paths.CONTROLLER_EPOCH}")


@_advised()
def _decode_controller(value: bytes) -> int:
    with parsed(f"node {paths.CONTROLLER} is malformed", value) as found:
        return int(found["brokerid"])

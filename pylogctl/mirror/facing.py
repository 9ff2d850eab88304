"""Mirrors that face each other, which would copy the same messages for ever: how each is found.

A mirror that runs, or is about to, has an ephemeral node in the ZooKeeper of its source, with what
it mirrors and to which brokers. So it finds one of the other direction in the ZooKeeper of its
target, at the start and while it runs, as topics and mirrors come later.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from broker import errors
from broker.client.registry_cluster import RegistryCluster
from broker.client.side import Side
from broker.protocol.responses import HIDDEN_CLUSTER
from broker.zk import paths
from broker.zk.registry import Registry
from pylogctl.cli.connections import open_registry
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.progress import announced_wait
from pylogctl.mirror.plan import MirrorSelection, make_selection

_POLL_S = 0.2
_GRACE_S = 2.0  # beyond the session of a mirror that has died


class _Running(NamedTuple):
    """A mirror that runs, or is about to."""

    id: str
    group: str
    is_claimed: bool  # whether it has found no other one, and mirrors
    brokers: Sequence[str]  # addresses in its target
    selection: MirrorSelection


@dataclass(eq=False)
class Presence:
    """The node of a mirror, and its search for one of the other direction.

    Attributes:
        group: of the mirror.
        selection: what it mirrors.
        source: the started registry that it reads from.
        target: that of the target; None if there is none, or it cannot be reached from here.
        target_brokers: addresses.
        failure: why the mirror has to end.
    """

    group: str
    selection: MirrorSelection
    source: Registry
    target: Registry | None
    target_brokers: Sequence[str]
    failure: CliError | None = field(default=None, init=False)
    _id: str = field(default_factory=lambda: uuid.uuid4().hex, init=False)
    _is_claimed: bool = field(default=False, init=False)
    _found_s: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._path = f"{paths.running_mirrors(self.group)}/{self._id}"

    def claim(self, env: Environment) -> None:
        """Write the node; `CliError` if a mirror of the other direction runs and does not end.

        Of two that start at once, one goes on.
        """
        self._write()
        give_up_s = time.monotonic() + self.source.session.session_timeout_s + _GRACE_S
        with announced_wait(env, "a mirror of the other direction to end"):
            while (found := self._facing()) is not None:
                other, error = found
                is_second = not other.is_claimed and other.id < self._id
                if is_second or time.monotonic() > give_up_s:
                    self.end()
                    raise error
                time.sleep(_POLL_S)
        self._is_claimed = True
        self.source.session.set(self._path, self._value())

    def keep(self, stop: Callable[[], object]) -> None:
        """Write the node again if it is lost, and stop the mirror if it meets another one."""
        self._write()
        if (found := self._facing()) is None or not found[0].is_claimed:  # that one gives way
            self._found_s = None
            return
        other, error = found
        now_s = time.monotonic()
        self._found_s = self._found_s or now_s
        # one of two is enough, unless it cannot see this one
        if other.id < self._id or now_s - self._found_s > self.source.session.session_timeout_s:
            self.failure = error
            stop()

    def end(self) -> None:
        """Remove the node."""
        with suppress(errors.BrokerError):  # else it ends with the session
            self.source.session.delete(self._path)

    def _write(self) -> None:
        if self.source.session.exists(self._path) is None:
            self.source.session.create_many({self._path: self._value()})

    def _value(self) -> bytes:
        fields = {
            "claimed": self._is_claimed,
            "brokers": list(self.target_brokers),
            "selection": [list(one) for one in self.selection.options],
        }
        return json.dumps(fields).encode()

    def _facing(self) -> tuple[_Running, CliError] | None:
        if self.target is None:
            return None
        here = {f"{one.host}:{one.port}" for one in self.source.brokers()}
        for one in _running(self.target):
            if one.id == self._id or not here.intersection(one.brokers):
                continue
            if (topic := self._circle(one)) is not None:
                what = "topics" if topic == self._id else f"topic '{topic}'"
                return one, CliError(
                    ExitStatus.CONFLICT,
                    f"the mirror of group '{one.group}' copies {what} back from the target: each "
                    "message would be copied for ever",
                    "on both sides, leave out what the other one brings: --exclude, with "
                    "names by --topic-map",
                    code="MIRROR_LOOP",
                )
        return None

    def _circle(self, other: _Running) -> str | None:
        """Return a topic of the source that comes back and is mirrored again, None if none is."""
        mine, its = self.selection, other.selection
        assert self.target is not None
        # the id stands for topics to come
        topics = [*self.source.topics(), self._id]
        with suppress(errors.InvalidTopicError):
            topics += [its.rename(one) for one in self.target.topics() if its.chosen.allows(one)]
        for topic in filter(mine.chosen.allows, topics):
            with suppress(errors.InvalidTopicError):  # it goes no further
                there = mine.rename(topic)
                if its.chosen.allows(there) and mine.chosen.allows(its.rename(there)):
                    return topic
        return None


def _running(registry: Registry) -> Iterator[_Running]:
    """Read the mirrors that run, or are about to, and read from a cluster."""
    session = registry.session
    for group in session.children_if_any(paths.MIRRORS):
        parent = paths.running_mirrors(group)
        try:
            children = session.children_if_any(parent)
        except errors.RegistryAccessError:
            continue  # anybody may write there
        for child in children:
            try:
                value, _ = session.get(f"{parent}/{child}")
            except (errors.RegistryNodeNotFoundError, errors.RegistryAccessError):
                continue  # it has ended, or is none
            if (found := _decode(child, group, value)) is not None:
                yield found


def _decode(child: str, group: str, value: bytes) -> _Running | None:
    """Return what the node of a mirror says; None if it is none, as anybody may write there."""
    try:
        fields = json.loads(value)
        selection = make_selection(*fields["selection"])
        brokers = fields["brokers"]
        is_claimed = fields["claimed"]
    except (CliError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(brokers, list) or not all(isinstance(one, str) for one in brokers):
        return None
    return _Running(child, group, is_claimed is True, brokers, selection)


@contextmanager
def registry_of(env: Environment, side: Side) -> Iterator[Registry | None]:
    """Open the registry of a side; None if it has none, or it cannot be reached from here."""
    if isinstance(side.cluster, RegistryCluster):
        yield side.cluster.registry
        return
    address = ""
    for broker in side.cluster.brokers():
        with suppress(errors.BrokerError), closing(side.connect(broker)) as connection:
            if (hello := connection.hello()) is not None and hello.cluster_id:
                address = hello.cluster_id
                break
    if not address:  # then no mirror can read from there
        yield None
        return
    if address == HIDDEN_CLUSTER:
        env.warn(
            "whether the target has a mirror back is not known: its brokers tell their ZooKeeper "
            "only to clients that log in; give it with --to"
        )
        yield None
        return
    settings = env.settings._replace(brokers=(), zookeeper=address)
    with ExitStack() as stack:
        registry = None
        try:
            registry = stack.enter_context(open_registry(env.changed(settings=settings)))
        except (errors.BrokerError, CliError) as error:
            env.warn(f"whether the target has a mirror back is not known: {error}")
        yield registry

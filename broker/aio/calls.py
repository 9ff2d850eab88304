"""The orders of an asyncio client: those of `Client`, made in threads.

If their task is cancelled, they continue; so the outcome is unknown then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from broker.aio.access import AsyncAccess, Opened
from broker.aio.schemas import AsyncDecoder
from broker.api.access import Access, AnyClient
from broker.api.cluster_calls import ClusterCalls
from broker.api.group_calls import GroupCalls
from broker.api.replica_calls import Reassignment, ReplicaCalls
from broker.api.schema_calls import SchemaCalls
from broker.api.setting_calls import SettingCalls
from broker.api.topic_calls import TopicCalls
from broker.api.values import UNSET, Timeout
from broker.errors import BrokerError

if TYPE_CHECKING:
    from broker.admin.reassignment import Move, MoveProgress
    from broker.api.changes import Changes
    from broker.state_changes import LoggedChange

_P = ParamSpec("_P")
_R = TypeVar("_R")
_S = TypeVar("_S")


def _in_thread(
    call: Callable[Concatenate[Any, _P], _R],
) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _R]]:
    """Return a method of `AsyncCalls` that makes a call of `Client` in a thread."""
    return _shown_as(call, lambda _, found: found)


def _shown_as(
    call: Callable[Concatenate[Any, _P], _R], show: Callable[[AsyncAccess, _R], _S]
) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _S]]:
    """Return the same, for a call whose result has calls of its own."""

    @wraps(call)
    async def run(self: AsyncCalls, /, *args: _P.args, **named: _P.kwargs) -> _S:
        access = self._access
        return show(access, await access.in_thread(call, access.client, *args, **named))

    return run


class AsyncReassignment:
    """Partitions of one topic that get other replicas; see `Reassignment`."""

    def __init__(self, access: AsyncAccess, reassignment: Reassignment) -> None:
        self._access = access
        self._reassignment = reassignment
        self.topic: str = reassignment.topic
        self.moves: tuple[Move, ...] = reassignment.moves

    def __repr__(self) -> str:
        return f"Async{self._reassignment!r}"

    async def progress(self, *, timeout: Timeout = UNSET) -> list[MoveProgress]:
        """Return how far the moves are that are under way; see `Reassignment.progress`."""
        return await self._access.in_thread(self._reassignment.progress, timeout=timeout)

    async def wait(self, timeout: Timeout = UNSET) -> None:
        """Wait until the partitions have their new replicas; see `Reassignment.wait`."""
        await self._access.in_thread(self._reassignment.wait, timeout)


class AsyncChanges(Opened, AsyncIterator["LoggedChange"]):
    """Changes that brokers have logged, in the order in which they happened; see `Changes`.

    It begins by `async for`, `async with` or `await`.
    """

    def __init__(self, access: AsyncAccess, begin: Callable[[], Changes]) -> None:
        self._access = access
        self._begin = begin
        self._changes: Changes | None = None

    async def __aexit__(self, *exc_info: object) -> None:
        self.close()

    async def _open(self) -> Changes:
        if self._changes is None:
            self._changes = await self._access.in_thread(self._begin)
        return self._changes

    @property
    def missing(self) -> dict[int, BrokerError]:
        """The brokers whose changes are missing, and why; see `Changes.missing`."""
        return {} if self._changes is None else self._changes.missing

    async def __anext__(self) -> LoggedChange:
        """Return the next change; to follow, wait for one."""
        changes = await self._open()
        found = await self._access.in_thread(next, changes, None)
        if found is None:
            raise StopAsyncIteration
        return found

    def close(self) -> None:
        """End the iteration; changes that were read already still come."""
        if self._changes is not None:
            self._changes.close()


def _begun_later(
    call: Callable[Concatenate[Any, _P], Changes],
) -> Callable[Concatenate[Any, _P], AsyncChanges]:
    """Return a method whose changes begin once they are wanted, by a call in a thread."""

    @wraps(call)
    def begin(self: AsyncCalls, /, *args: _P.args, **named: _P.kwargs) -> AsyncChanges:
        access = self._access
        access.check()
        return AsyncChanges(access, partial(call, access.client, *args, **named))

    return begin


class AsyncCalls(AnyClient):
    """The calls of `Client` that are made in threads."""

    _access: AsyncAccess

    @property
    def _blocking(self) -> Access:
        return self._access.client

    async def cluster_id(self) -> str:
        """Return the ZooKeeper of the brokers; see `Client.cluster_id`, which is no call."""
        return await self._access.in_thread(getattr, self._access.client, "cluster_id")

    topics: Final = _in_thread(TopicCalls.topics)
    describe: Final = _in_thread(TopicCalls.describe)
    create_topic: Final = _in_thread(TopicCalls.create_topic)
    alter_topic: Final = _in_thread(TopicCalls.alter_topic)
    delete_topic: Final = _in_thread(TopicCalls.delete_topic)
    count: Final = _in_thread(TopicCalls.count)
    offsets: Final = _in_thread(TopicCalls.offsets)
    sample: Final = _in_thread(TopicCalls.sample)

    brokers: Final = _in_thread(ClusterCalls.brokers)
    broker: Final = _in_thread(ClusterCalls.broker)
    health: Final = _in_thread(ClusterCalls.health)
    stop_broker: Final = _in_thread(ClusterCalls.stop_broker)
    decommission: Final = _in_thread(ClusterCalls.decommission)
    move_log: Final = _in_thread(ClusterCalls.move_log)

    changes: Final = _begun_later(ClusterCalls.changes)

    groups: Final = _in_thread(GroupCalls.groups)
    describe_group: Final = _in_thread(GroupCalls.describe_group)
    offsets_of: Final = _in_thread(GroupCalls.offsets_of)
    lag: Final = _in_thread(GroupCalls.lag)
    verify_group: Final = _in_thread(GroupCalls.verify_group)
    reset: Final = _in_thread(GroupCalls.reset)
    import_offsets: Final = _in_thread(GroupCalls.import_offsets)
    delete_group: Final = _in_thread(GroupCalls.delete_group)
    rebalance: Final = _in_thread(GroupCalls.rebalance)

    elect: Final = _in_thread(ReplicaCalls.elect)
    reassign: Final = _shown_as(ReplicaCalls.reassign, AsyncReassignment)
    reassignments: Final = _shown_as(
        ReplicaCalls.reassignments,
        lambda access, found: [AsyncReassignment(access, one) for one in found],
    )
    throttle_reassignments: Final = _in_thread(ReplicaCalls.throttle_reassignments)
    cancel_reassignment: Final = _in_thread(ReplicaCalls.cancel_reassignment)

    settings: Final = _in_thread(SettingCalls.settings)
    set_settings: Final = _in_thread(SettingCalls.set_settings)
    unset_settings: Final = _in_thread(SettingCalls.unset_settings)

    subjects: Final = _in_thread(SchemaCalls.subjects)
    schema_versions: Final = _in_thread(SchemaCalls.schema_versions)
    schema: Final = _in_thread(SchemaCalls.schema)
    schema_uses: Final = _in_thread(SchemaCalls.schema_uses)
    subject_schema: Final = _in_thread(SchemaCalls.subject_schema)
    register_schema: Final = _in_thread(SchemaCalls.register_schema)
    find_schema: Final = _in_thread(SchemaCalls.find_schema)
    check_schema: Final = _in_thread(SchemaCalls.check_schema)
    delete_schema: Final = _in_thread(SchemaCalls.delete_schema)
    compatibility: Final = _in_thread(SchemaCalls.compatibility)
    set_compatibility: Final = _in_thread(SchemaCalls.set_compatibility)
    decoder: Final = _shown_as(SchemaCalls.decoder, AsyncDecoder)

    copy: Final = _in_thread(TopicCalls.copy)

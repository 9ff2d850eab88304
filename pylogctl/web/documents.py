"""The JSON documents of the API. Offsets are text: JavaScript has no numbers of their size."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from broker.topic import TopicPartition

Document = TypeVar("Document", bound=Struct)

_Offset = Annotated[str, Meta(description="an offset", pattern=r"^\d+$")]
_Name = Annotated[str, Meta(min_length=1, max_length=255)]
_Count = Annotated[int, Meta(ge=1, le=10_000)]
_Limit = Annotated[int, Meta(ge=1, le=500)]
_Place = Annotated[
    str,
    Meta(max_length=100, description="start, end, 4096, ~4096, -100, -64KiB, @-10m, @2026-11-20"),
]


def document_of(kind: type[Document], value: object, **given: Any) -> Document:
    """Return a document with the attributes of a value that have its names, and what is given."""
    fields = {
        name: given[name] if name in given else _plain(getattr(value, name))
        for name in kind.__struct_fields__
    }
    return kind(**fields)


def _plain(value: Any) -> Any:
    if isinstance(value, TopicPartition):
        return value.name
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return value


def offset_text(offset: int | None) -> str | None:
    """Return an offset as it stands in documents."""
    return None if offset is None else str(offset)


class Live(Struct):
    """The server responds."""

    ok: bool


class Check(Struct):
    """A check of the cluster."""

    name: str
    result: Literal["ok", "warn", "fail", "unknown"]
    found: list[str]


class HealthDocument(Struct):
    """The checks of the cluster; `ok` if none fails."""

    ok: bool
    checks: list[Check]


class ClusterDocument(Struct):
    """The cluster; `figures` are of the last seconds: bytes and messages a second, by name."""

    cluster_id: str
    controller: int | None
    brokers: int
    live_brokers: int
    topics: int
    partitions: int
    size_bytes: int | None
    figures: dict[str, float]
    allow_changes: bool


class BrokerRow(Struct):
    """A broker, and what it leads and holds."""

    id: int
    address: str | None
    rack: str
    is_live: bool
    is_controller: bool
    leads: int | None
    preferred: int | None
    replicas: int | None
    in_sync: int | None
    offline: list[str]


class BrokerList(Struct):
    """All brokers, by id."""

    items: list[BrokerRow]
    total: int


class Directory(Struct):
    """A data directory of a broker."""

    path: str
    partitions: int
    free_bytes: int | None
    error: str | None


class DiskFailure(Struct):
    """A partition that a disk fails."""

    topic: str
    partition: str
    state: str
    error: str


class BrokerDocument(Struct):
    """A broker that responds."""

    id: int
    address: str
    phase: str
    started: datetime | None
    uptime_s: float | None
    topics: int | None
    partitions: int | None
    size_bytes: int | None
    connections: int | None
    produce_requests_per_s: float | None
    fetch_requests_per_s: float | None
    last_flush: datetime | None
    is_clean_start: bool | None
    session: str | None
    is_registered: bool | None
    zookeeper: str | None
    runs_zookeeper: bool | None
    directories: list[Directory]
    failures: list[DiskFailure]
    retention_waits: str | None
    software: str | None
    pid: int | None
    figures: dict[str, float]
    metrics: dict[str, dict[str, Any]]


class SettingDocument(Struct):
    """A setting in effect."""

    name: str
    value: str | int | float | bool | None
    origin: str
    default: str | int | float | bool | None


class SettingList(Struct):
    """All settings, by name."""

    items: list[SettingDocument]
    total: int


class TopicDocument(Struct):
    """A topic; `size_bytes` is null if a broker has not told its part.

    Partitions that are `offline` have no leader, those `under_replicated` a replica not in sync.
    """

    name: str
    partitions: int
    replicas: int | None
    brokers: list[int]
    size_bytes: int | None
    offline: int
    under_replicated: int
    state: Literal["ok", "under-replicated", "offline"]


class TopicList(Struct):
    """Topics; `next` is the cursor of those that follow."""

    items: list[TopicDocument]
    next: str | None
    total: int


class PartitionDocument(Struct):
    """A partition; what a broker has not told is null, and `problem` says why."""

    partition: str
    state: Literal["ok", "under-replicated", "below min in-sync", "offline"]
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    min_in_sync: int
    leader_epoch: int | None
    start: str | None
    end: str | None
    size_bytes: int | None
    segments: int | None
    last_append: datetime | None
    lags: dict[str, int | None]
    problem: str


class PartitionList(Struct):
    """All partitions of a topic, by home broker and index."""

    items: list[PartitionDocument]
    total: int


class MessageDocument(Struct, kw_only=True):
    """A message; with a `problem` a place where none can be read."""

    partition: str
    offset: _Offset
    next_offset: _Offset
    inner: int = 0
    size: int
    value: str
    encoding: Literal["text", "json", "hex", "base64"]
    truncated: bool
    problem: str = ""


class MessageList(Struct):
    """Messages by partition and offset; `next` and `previous` are cursors for either direction."""

    items: list[MessageDocument]
    next: str | None
    previous: str | None
    stopped: Literal["limit", "bytes", "time", "end"]
    scanned: int


class MemberDocument(Struct):
    """A member of a group."""

    id: str
    topics: list[str]
    thread_count: int
    partitions: list[str]
    joined: datetime


class Committed(Struct):
    """An offset that a group has committed."""

    topic: str
    partition: str
    offset: str | None
    owner: str | None
    committed: datetime
    problem: str


class GroupRow(Struct):
    """A group in a list; its lag is as of some seconds ago, null if not known."""

    name: str
    state: str
    members: int
    topics: list[str]
    status: str | None
    lag_bytes: int | None


class GroupList(Struct):
    """Groups; `next` is the cursor of those that follow."""

    items: list[GroupRow]
    next: str | None
    total: int


class GroupDocument(Struct):
    """A group with its members and offsets."""

    name: str
    state: str
    topics: list[str]
    members: list[MemberDocument]
    offsets: list[Committed]


class PartitionLagDocument(Struct):
    """How far a group is behind in a partition."""

    topic: str
    partition: str
    status: str
    owner: str | None
    offset: str | None
    committed: datetime | None
    end: str | None
    lag_bytes: int | None
    bytes_per_s: float | None
    eta_s: float | None
    age_s: float | None


class Sample(Struct):
    """The lag of a group at a moment, in seconds since 1970."""

    time_s: float
    lag_bytes: float


class LagDocument(Struct):
    """How far a group is behind."""

    group: str
    status: str
    total_bytes: int | None
    time: datetime
    partitions: list[PartitionLagDocument]
    samples: list[Sample]


class ListQuery(Struct, forbid_unknown_fields=True):
    """Which rows of a list, and their order."""

    filter: Annotated[str, Meta(max_length=255, description="part of the name")] = ""
    sort: Literal["name", "-name"] = "name"
    limit: _Limit = 100
    cursor: Annotated[str, Meta(max_length=2000, description="`next` of the list before")] = ""


class MessagesQuery(Struct, forbid_unknown_fields=True, rename={"place": "from", "shown_as": "as"}):
    """Which messages, and how they are shown."""

    partition: Annotated[list[_Name], Meta(max_length=200)] = []
    place: _Place = "end"
    direction: Literal["older", "newer"] = "older"
    cursor: Annotated[str, Meta(max_length=6000, description="of the page before")] = ""
    limit: _Limit = 50
    max_bytes: Annotated[int, Meta(ge=1, le=65536, description="of each value")] = 4096
    filter: Annotated[str, Meta(max_length=200, description="text that values contain")] = ""
    shown_as: Literal["auto", "text", "json", "hex", "base64"] = "auto"


class LiveQuery(Struct, forbid_unknown_fields=True, rename={"shown_as": "as"}):
    """Which messages are streamed, and how they are shown."""

    partition: Annotated[list[_Name], Meta(max_length=200)] = []
    max_bytes: Annotated[int, Meta(ge=1, le=65536, description="of each value")] = 4096
    filter: Annotated[str, Meta(max_length=200, description="text that values contain")] = ""
    shown_as: Literal["auto", "text", "json", "hex", "base64"] = "auto"


class EventsQuery(Struct, forbid_unknown_fields=True):
    """Of which topics there are figures."""

    topics: Annotated[str, Meta(max_length=4000, description="names with commas")] = ""


class RawQuery(Struct, forbid_unknown_fields=True):
    """Which message of a compressed set."""

    inner: Annotated[int, Meta(ge=0, le=999_999_999)] = 0


class LagQuery(Struct, forbid_unknown_fields=True):
    """How far back samples go."""

    window: Annotated[int, Meta(ge=0, le=3600, description="seconds")] = 0


class NoQuery(Struct, forbid_unknown_fields=True):
    """No parameters."""


def from_query(kind: type[Document], items: list[tuple[str, str]]) -> Document:
    """Return parameters by their struct; `msgspec.ValidationError` names the one that is wrong."""
    lists = {
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if isinstance(field.default, list) or field.default_factory is list
    }
    given: dict[str, Any] = {}
    for name, value in items:
        if name in lists:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise msgspec.ValidationError(f"given twice - at `$.{name}`")
        else:
            given[name] = value
    return msgspec.convert(given, kind, strict=False)


_Settings = Annotated[dict[str, str], Meta(max_length=100)]


class NewTopic(Struct, forbid_unknown_fields=True):
    """A topic to be created; `settings` need `replicas`."""

    name: _Name
    partitions: _Count | None = None
    replicas: Annotated[int, Meta(ge=1, le=100)] | None = None
    settings: _Settings = {}
    dry_run: bool = False


class TopicChange(Struct, forbid_unknown_fields=True):
    """What is to change of a topic; a setting that is null is unset."""

    partitions: _Count | None = None
    settings: Annotated[dict[str, str | None], Meta(max_length=100)] = {}
    dry_run: bool = False


class SettingChangeDocument(Struct):
    """A setting before and after; null where it is not set."""

    name: str
    before: str | int | float | bool | None
    after: str | int | float | bool | None


class ChangedTopic(Struct):
    """A topic as it is, or with `dry_run` would be, and the settings that changed."""

    topic: TopicDocument
    settings: list[SettingChangeDocument]


class DeleteQuery(Struct, forbid_unknown_fields=True):
    """How a topic is deleted."""

    dry_run: bool = False
    with_offsets: Annotated[bool, Meta(description="those that groups have stored too")] = False


class DeletionDocument(Struct):
    """What was deleted, or with `dry_run` would be."""

    topic: str
    partitions: int
    brokers: list[int]
    groups: list[str]
    kept_groups: list[str]
    notes: list[str]


class NewMessage(Struct, forbid_unknown_fields=True):
    """A message; its key chooses the partition, unless that is given, and is not stored."""

    value: str
    encoding: Literal["text", "base64"] = "text"
    key: Annotated[str, Meta(max_length=1000)] | None = None
    partition: Annotated[str, Meta(pattern=r"^\d{1,9}-\d{1,9}$")] | None = None


class NewMessages(Struct, forbid_unknown_fields=True):
    """Messages to be sent."""

    items: Annotated[list[NewMessage], Meta(min_length=1, max_length=1000)]
    acks: Literal["committed", "written"] = "committed"


class Sent(Struct):
    """Where a message is, or why it was not sent."""

    partition: str | None
    offset: str | None
    problem: str


class SentList(Struct):
    """The messages in the order of the request; with `errors` some have a problem."""

    errors: bool
    items: list[Sent]


class NewResetPlan(Struct, forbid_unknown_fields=True):
    """Where a group is to go: `to` a place, or by `shift`, as 10, -10 or -64KiB."""

    topics: Annotated[list[_Name], Meta(max_length=1000)] | None = None
    partition: Annotated[str, Meta(pattern=r"^\d{1,9}-\d{1,9}$")] | None = None
    to: _Place | None = None
    shift: Annotated[str, Meta(max_length=100)] | None = None


class PlannedOffset(Struct):
    """An offset of a group now, and by the plan; `note` says what was adjusted."""

    topic: str
    partition: str
    present: str | None
    new: str | None
    difference: int | None
    note: str


class ResetPlan(Struct):
    """A plan to move a group, bound to the offsets that it saw."""

    id: str
    group: str
    state: Literal["planned", "applied", "undone"]
    items: list[PlannedOffset]


class Nothing(Struct, forbid_unknown_fields=True):
    """An empty object."""

"""The JSON documents of the API, most of them made from the records of `broker.admin`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from inspect import cleandoc
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from broker.admin.brokers import BrokerStatus
from broker.admin.cluster import BrokerInfo, HealthCheck
from broker.admin.group_changes import OffsetChange
from broker.admin.lag import CommittedOffset, GroupInfo, Lag
from broker.admin.settings import Setting
from broker.admin.settings_changes import SettingChange
from broker.admin.topics import PartitionInfo, TopicInfo
from broker.records import Field, fields_of, plain, values_of
from broker.topic import TopicPartition
from pylogctl.web.sampler import Point

Document = TypeVar("Document", bound=Struct)

_Name = Annotated[str, Meta(min_length=1, max_length=255)]
_Count = Annotated[int, Meta(ge=1, le=10_000)]
_Limit = Annotated[int, Meta(ge=1, le=500)]
_Place = Annotated[
    str,
    Meta(max_length=100, description="start, end, 4096, ~4096, -100, -64KiB, @-10m, @2026-11-20"),
]


@cache
def struct_of(record: type) -> type[Struct]:
    """Return the struct of a record's fields."""
    return _struct(record.__name__, record)


def _struct(name: str, record: type, without: str = "", /, **more: Any) -> type[Struct]:
    """Return a struct of a record's fields `without` one, and with more or others."""
    fields = {one.name: _described(one) for one in fields_of(record) if one.name != without}
    return _new(name, cleandoc(record.__doc__ or ""), **(fields | more))


def _described(field: Field) -> Any:
    """Return the type of a field, with what it means."""
    kind = _type_of(field.kind)
    meaning = next((note for note in field.notes if type(note) is str), None)
    return Annotated[kind, Meta(description=meaning)] if meaning else kind


def _new(name: str, doc: str | None, /, **fields: Any) -> type[Struct]:
    return msgspec.defstruct(name, fields.items(), namespace={"__doc__": doc}, module=__name__)


def _type_of(kind: Any) -> Any:
    """Return the type of a field in JSON; a list of records is one of their structs."""
    if kind is TopicPartition:
        return str
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return reduce(or_, map(_type_of, inner))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _type_of(inner[1])]  # type: ignore[misc]  # mypy takes it for a type
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return list[_type_of(inner[0])]  # type: ignore[misc]
    is_record = hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields")
    return struct_of(kind) if is_record else kind


def _list_of(name: str, kind: type[Struct], /, **more: Any) -> type[Struct]:
    return _new(name, "Items of a list.", items=list[kind], **more, total=int)  # type: ignore[valid-type]


def document_of(kind: type[Document], value: object, **given: Any) -> Document:
    """Return a document with the values of a record that have its names, and what is given."""
    values = values_of(value) | given
    return kind(**{name: plain(values[name]) for name in kind.__struct_fields__})


def list_document(kind: type[Document], items: Sequence[object], **given: Any) -> Document:
    """Return the document of a list, which has all items unless a `total` is given."""
    return kind(**{"items": plain(items), "total": len(items), **given})


class Live(Struct):
    """The server responds."""

    ok: bool


Check = struct_of(HealthCheck)
HealthDocument = _new(
    "HealthDocument",
    "The checks of the cluster; `ok` if none fails.",
    ok=bool,
    checks=list[Check],  # type: ignore[valid-type]
)


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


BrokerList = _list_of("BrokerList", struct_of(BrokerInfo))
BrokerDocument = _struct("BrokerDocument", BrokerStatus, figures=dict[str, float])
SettingDocument = _struct("SettingDocument", Setting, name=str)
SettingList = _list_of("SettingList", SettingDocument)
TopicList = _list_of("TopicList", struct_of(TopicInfo), next=str | None)
PartitionList = _list_of("PartitionList", struct_of(PartitionInfo))


class MessageDocument(Struct, kw_only=True):
    """A message; with a `problem` a place where none can be read; `note`: how it was decoded.

    `sent`: when, where and as which message it was made, if its producer tells with an envelope.
    """

    partition: str
    offset: int
    next_offset: int
    inner: int = 0
    size: int
    value: str
    encoding: Literal["text", "json", "hex", "base64"]
    truncated: bool
    problem: str = ""
    note: str = ""
    sent: str = ""


class MessageList(Struct):
    """Messages by partition and offset; `next` and `previous` are cursors for either direction."""

    items: list[MessageDocument]
    next: str | None
    previous: str | None
    stopped: Literal["limit", "bytes", "time", "end"]
    scanned: int


Committed = _struct("Committed", CommittedOffset, topic=str, partition=str, owner=str | None)
GroupRow = _new(
    "GroupRow",
    "A group; its lag is as of some seconds ago, null if not known.",
    name=str,
    state=str,
    topics=list[str],
    members=int,
    status=str | None,
    lag_bytes=int | None,
)
GroupList = _list_of("GroupList", GroupRow, next=str | None)
GroupDocument = _struct("GroupDocument", GroupInfo, "owners", offsets=list[Committed])  # type: ignore[valid-type]
LagDocument = _struct("LagDocument", Lag, samples=list[struct_of(Point)])  # type: ignore[misc]


class ListQuery(Struct, forbid_unknown_fields=True):
    """Which rows of a list, and their order."""

    filter: Annotated[str, Meta(max_length=255, description="part of the name")] = ""
    sort: Literal["name", "-name"] = "name"
    limit: _Limit = 100
    cursor: Annotated[str, Meta(max_length=2000, description="`next` of the list before")] = ""


class LiveQuery(Struct, forbid_unknown_fields=True, rename={"shown_as": "as"}):
    """Which messages are streamed, and how they are shown."""

    partition: Annotated[list[_Name], Meta(max_length=200)] = []
    max_bytes: Annotated[int, Meta(ge=1, le=65536, description="of each value")] = 4096
    filter: Annotated[str, Meta(max_length=200, description="text that values contain")] = ""
    shown_as: Literal["auto", "text", "json", "hex", "base64", "decoded"] = "auto"


class MessagesQuery(LiveQuery, rename={"place": "from", "shown_as": "as"}):
    """Which messages, and how they are shown."""

    place: _Place = "end"
    direction: Literal["older", "newer"] = "older"
    cursor: Annotated[str, Meta(max_length=6000, description="of the page before")] = ""
    limit: _Limit = 50


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


_Settings = Annotated[dict[str, str], Meta(max_length=100)]


class NewTopic(Struct, forbid_unknown_fields=True):
    """A topic to be created; `settings` need `replicas`."""

    name: _Name
    partitions: _Count | None = None
    replicas: Annotated[int, Meta(ge=1, le=100)] | None = None
    format: Literal["0.7", "kafka"] | None = None
    settings: _Settings = {}
    dry_run: bool = False


class TopicChange(Struct, forbid_unknown_fields=True):
    """What is to change of a topic; a setting that is null is unset."""

    partitions: _Count | None = None
    settings: Annotated[dict[str, str | None], Meta(max_length=100)] = {}
    dry_run: bool = False


ChangedTopic = _new(
    "ChangedTopic",
    "A topic as it is, or with `dry_run` would be, and the settings that changed.",
    topic=struct_of(TopicInfo),
    settings=list[struct_of(SettingChange)],  # type: ignore[misc]
)


class DeleteQuery(Struct, forbid_unknown_fields=True):
    """How a topic is deleted."""

    dry_run: bool = False
    with_offsets: Annotated[bool, Meta(description="those that groups have stored too")] = False


class NewMessage(Struct, forbid_unknown_fields=True):
    """A message; its key chooses the partition, unless that is given. Format kafka stores it."""

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
    offset: int | None
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


PlannedOffset = _struct("PlannedOffset", OffsetChange, difference=int | None)
ResetPlan = _new(
    "ResetPlan",
    "A plan to move a group, bound to the offsets that it saw.",
    id=str,
    group=str,
    state=Literal["planned", "applied", "undone"],
    items=list[PlannedOffset],  # type: ignore[valid-type]
)


class Nothing(Struct, forbid_unknown_fields=True):
    """An empty object."""

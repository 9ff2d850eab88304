"""The rows of the views of `pylogctl top`, and the documents that show them."""

from __future__ import annotations

from typing import Annotated

from broker.records import (
    HIDDEN,
    ByteRate,
    Bytes,
    Fit,
    Integer,
    Millis,
    Number,
    Rank,
    Rate,
    Seconds,
)
from pylogctl.cli.columns import Document, Row
from pylogctl.group.document import PACE, LagRow, Sums

_Age = Annotated[Seconds, "how old the values are, of a broker that does not answer"]


class _Look(Row):
    time: Annotated[Millis, "when the look ended", HIDDEN]


class TopBrokerRow(_Look):
    """A broker."""

    broker: Annotated[Integer, "id of the broker"]
    address: Annotated[str | None, "address for clients"] = None
    state: Annotated[
        str, "running, ctl (running as the controller), starting, stopping or DOWN", Fit.STATE
    ] = "DOWN"
    cpu: Annotated[Number, "processor time per second; its limit is about 1", Rank(1)] = None
    leads: Annotated[Integer, "partitions that it leads", Rank(1)] = None
    replicas: Annotated[Integer, "partitions of which it has a replica, or the log", Rank(2)] = None
    under_replicated: Annotated[
        Integer, "partitions led here with a replica that is not in sync"
    ] = None
    messages_in: Annotated[Rate, "messages of producers per second", Rank(2)] = None
    bytes_in: Annotated[ByteRate, "bytes of producers per second"] = None
    bytes_out: Annotated[ByteRate, "bytes to consumers per second"] = None
    requests: Annotated[Rate, "requests per second", HIDDEN] = None
    connections: Annotated[Integer, "open connections", Rank(4)] = None
    produce_p99: Annotated[Seconds, "time in which 99 % of publishes were answered", Rank(2)] = None
    disk: Annotated[Number, "share of its fullest disk that is used", Rank(1)] = None
    uptime: Annotated[Seconds, "since its start", Rank(3)] = None
    age: _Age = None
    error: Annotated[str | None, "why it does not answer", Fit.WRAP, HIDDEN] = None


class TopTopicRow(_Look):
    """A topic."""

    topic: Annotated[str, "name"]
    partitions: Annotated[Integer, "number of partitions", Rank(2)] = None
    replication_factor: Annotated[Integer, "replicas of each partition", Rank(2)] = None
    messages_in: Annotated[Rate, "messages of producers per second"] = None
    bytes_in: Annotated[ByteRate, "bytes of producers per second"] = None
    bytes_out: Annotated[ByteRate, "bytes to consumers per second", Rank(1)] = None
    size: Annotated[Bytes, "of the logs of its leaders", Rank(1)] = None
    offline: Annotated[Integer, "partitions without a leader"] = None
    under_replicated: Annotated[Integer, "partitions with a replica that is not in sync"] = None
    last: Annotated[Seconds, "since the last append, where it has replicas", Rank(2)] = None
    age: _Age = None


class PartitionRow(_Look):
    """A partition of a topic."""

    topic: Annotated[str, "name", HIDDEN]
    partition: Annotated[
        str, "partition: home broker and index; a number in the format kafka", Fit.WHOLE
    ]
    state: Annotated[
        str, "ok, behind (a replica is not in sync), offline (no leader)", Fit.STATE
    ] = "ok"
    leader: Annotated[Integer, "broker that leads it"] = None
    epoch: Annotated[Integer, "of its leader", Rank(3)] = None
    isr: Annotated[tuple[int, ...] | None, "in-sync replicas"] = None
    replicas: Annotated[tuple[int, ...] | None, "brokers it is on", Rank(4)] = None
    start: Annotated[Integer, "first offset", Rank(2)] = None
    end: Annotated[Integer, "end of what is written"] = None
    bytes_in: Annotated[ByteRate, "growth per second"] = None
    unflushed: Annotated[Bytes, "written and not flushed", Rank(3)] = None
    size: Annotated[Bytes, "of the segments", Rank(1)] = None
    segments: Annotated[Integer, "on disk", Rank(3)] = None
    lag: Annotated[Bytes, "most that a follower is behind"] = None
    stalled: Annotated[Seconds, "how long messages wait to be committed", Rank(2)] = None
    age: _Age = None


class ReplicaRow(_Look):
    """A replica of a partition."""

    topic: Annotated[str, "name", HIDDEN]
    partition: Annotated[
        str, "partition: home broker and index; a number in the format kafka", HIDDEN
    ]
    broker: Annotated[Integer, "it is on"]
    role: Annotated[str, "leader or follower", Fit.STATE] = "follower"
    state: Annotated[str, "in sync, behind, or DOWN", Fit.STATE] = "in sync"
    start: Annotated[Integer, "first offset", Rank(2)] = None
    end: Annotated[Integer, "end of what is written"] = None
    committed: Annotated[Integer, "end of what is committed, as it knows", Rank(1)] = None
    flushed: Annotated[Integer, "end of what is flushed", Rank(1)] = None
    lag: Annotated[Bytes, "how far it is behind its leader"] = None
    segments: Annotated[Integer, "on disk", Rank(3)] = None
    truncations: Annotated[Integer, "how often it was cut", Rank(3)] = None
    age: _Age = None


class TopGroupRow(_Look):
    """A group."""

    group: Annotated[str, "name"]
    members: Annotated[Integer, "number of members", Rank(1)]
    bytes_in: Annotated[ByteRate, "what its topics grow per second", Rank(1)]
    sums: Sums


class GroupPartitionRow(_Look):
    """A partition that a group reads."""

    lag: LagRow


class FollowerRow(_Look):
    """The partitions that a broker follows and another one leads."""

    follower: Annotated[Integer, "broker that copies"]
    leader: Annotated[Integer, "broker that it copies from"]
    state: Annotated[str, "ok, behind (not in sync), failing, or DOWN", Fit.STATE]
    partitions: Annotated[Integer, "that it follows there"]
    not_in_sync: Annotated[Integer, "of them"]
    lag: Annotated[Bytes, "how far it is behind, together"]
    bytes_in: Annotated[ByteRate, "what it copies per second"]
    fetches: Annotated[Rate, "its requests per second, to all leaders", Rank(1)] = None
    age: _Age = None


class RequestRow(_Look):
    """Requests of a group: how many, how long they took, and the share of each part of that."""

    request: Annotated[str, "group of types", Fit.WHOLE]
    broker: Annotated[Integer, "one broker; none: all", HIDDEN] = None
    rate: Annotated[Rate, "requests per second that were answered"] = None
    errors: Annotated[Rate, "requests, and parts of them, per second that were refused"] = None
    p50: Annotated[Seconds, "time in which half of them were answered"] = None
    p99: Annotated[Seconds, "time in which 99 % of them were answered"] = None
    queue: Annotated[Number, "share of the time that they waited to be handled", Rank(2)] = None
    local: Annotated[Number, "share that they were handled", Rank(2)] = None
    remote: Annotated[Number, "share that they waited for replicas or messages", Rank(2)] = None
    send: Annotated[Number, "share that their responses waited to be sent", Rank(2)] = None
    waiting: Annotated[Integer, "that wait now for replicas or messages", Rank(1)] = None


class FactRow(_Look):
    """A fact of a broker."""

    broker: Annotated[Integer, "id of the broker", HIDDEN]
    name: Annotated[str, "what it is about", Fit.WHOLE]
    value: Annotated[str | None, "as text"]


BROKERS = Document("top.brokers/1", TopBrokerRow, empty="no brokers")
FACTS = Document("top.broker/1", FactRow, empty="the broker does not answer")
TOPICS = Document("top.topics/1", TopTopicRow, empty="no topics")
PARTITIONS = Document("top.partitions/1", PartitionRow, empty="no partitions")
REPLICAS = Document("top.replicas/1", ReplicaRow, empty="no replicas")
GROUPS = (
    Document("top.groups/2", TopGroupRow, empty="no groups").without("lag_messages").showing(*PACE)
)
GROUP = Document("top.group/2", GroupPartitionRow, empty="no partitions")
GROUP = GROUP.without("lag_messages").showing(*PACE)
REPLICATION = Document("top.replication/1", FollowerRow, empty="no replicas")
REQUESTS = Document("top.requests/1", RequestRow, empty="no requests")

"""The client: one object for a cluster, with a verb for each thing to do."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar
from weakref import WeakSet

from broker import deadlines
from broker.api import values
from broker.api.access import Reach, limit_of
from broker.api.cluster_calls import ClusterCalls
from broker.api.errors import Closed, DeliveryFailed, Error, translated
from broker.api.group_calls import GroupCalls
from broker.api.producer import (
    BATCH_BYTES,
    BUFFER_BYTES,
    CodecName,
    Delivery,
    Producer,
    parts_of,
    receipts_of,
)
from broker.api.reader import Batches, Reader, ReadOrder, pattern_of, reading_of
from broker.api.replica_calls import ReplicaCalls
from broker.api.schema_calls import Encoders, SchemaCalls, SchemaLike
from broker.api.setting_calls import SettingCalls
from broker.api.topic_calls import TopicCalls
from broker.api.values import (
    UNSET,
    AcksLike,
    Headers,
    PartitionLike,
    Receipt,
    Start,
    Stop,
    Timeout,
    Value,
)
from broker.client.cluster import Cluster, locked
from broker.client.connection import Connection, parse_broker_list
from broker.client.counts import MetricsRegistry
from broker.client.static_cluster import StaticCluster
from broker.errors import ArgumentError, ProtocolError
from broker.patterns import Pattern, from_re2
from broker.producer import unclosed
from broker.producer.partitioner import Partitioner, hash_partitioner
from broker.producer.producer_pool import refuse_senders
from broker.protocol.client_requests import Acks, PayloadFilter
from broker.protocol.compression import Codec
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import ClientSecurity
from broker.zk.security import security_in

if TYPE_CHECKING:
    from broker.api.group import Commit, Group, OnChange
    from broker.api.schema_producer import SchemaProducer
    from broker.consumer.offset_store import OffsetStore
    from broker.schemas.values import RegisteredSchema

_POLL_S = 0.02
_CONNECT_S = 5.0


logger = logging.getLogger("pylogctl")


class _Closable(Protocol):
    def close(self, timeout: Timeout = UNSET) -> None: ...
    def _abandon(self) -> None: ...


_T = TypeVar("_T", bound=_Closable)


def connect(
    address: str | Sequence[str] | None = None,
    *,
    zookeeper: str | None = None,
    zookeeper_credential: str | Path | None = None,
    zookeeper_tls_config: str | Path | None = None,
    timeout: float | None = 30.0,
    retries: int | None = None,
    client_id: str = "pylogctl",
    tls: bool = False,
    tls_ca: str | Path | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    user: str | None = None,
    password: str | None = None,
) -> Client:
    """Connect to a cluster, by the addresses of some of its brokers or by its ZooKeeper.

    Args:
        address: `"host:9092"`, several with commas or as a list; 9092 is the default port. One
            broker that responds is enough, if it has a ZooKeeper.
        zookeeper: `"host:2181[,..][/chroot]"`, instead of brokers.
        zookeeper_credential: a file with a line `user:password` for ZooKeeper, which no other user
            may read.
        zookeeper_tls_config: a file with properties zookeeper.ssl.*, for TLS with ZooKeeper.
        timeout: seconds from a call, this one too, until it returns or raises, unless the call has
            a timeout of its own. None for no limit.
        retries: how often a call is repeated after failures that may pass, such as a change of
            leaders; by default until its timeout. 0 for never.
        client_id: the name of this program in requests, for the logs of brokers.
        tls: whether to speak TLS with brokers; any of the next three says so too.
        tls_ca: PEM file of the CA of their certificates; by default the system's CAs.
        tls_cert: PEM file of this program's certificate, for brokers that ask for one.
        tls_key: PEM file of its key, if that is another file.
        user: logs in at brokers with `password`.

    Raises:
        Unreachable, TimedOut: no broker or ZooKeeper responds, or a certificate does not fit.
        ArgumentError: an address is malformed, not exactly one of the two is given, or ZooKeeper
            does not have the chroot.
    """
    if (address is None) == (zookeeper is None):
        raise ArgumentError(
            "give the address of brokers or of ZooKeeper",
            hints=['pylogctl.connect("localhost:9092")'],
        )
    timeout = values.seconds_of(timeout)
    if retries is not None:
        values.number_of("retries", retries, 0)
    if not isinstance(client_id, str):
        raise TypeError(f"give client_id as str, not {type(client_id).__name__}")
    if zookeeper is not None and not isinstance(zookeeper, str):
        raise TypeError(f"give the address of ZooKeeper as str, not {zookeeper!r}")
    with translated(), deadlines.Limit(timeout), ExitStack() as resources:
        security = ClientSecurity.of_files(
            has_tls=tls, ca=tls_ca, cert=tls_cert, key=tls_key, user=user, password=password
        )
        limit_s = limit_of(timeout)
        make = partial(
            Connection,
            timeout_s=limit_s,
            connect_timeout_s=min(limit_s, _CONNECT_S),
            client_id=client_id,
            retries_refused=False,
            security=security,
        )
        zk_security = security_in(zookeeper_credential, zookeeper_tls_config)
        registry = None
        cluster: Cluster
        if zookeeper is None:
            static = StaticCluster(_addresses(address), make)
            resources.callback(static.close)
            cluster = locked(static)
        else:
            from broker.client.watched_cluster import WatchedCluster  # late: loads kazoo
            from broker.zk.registry import Registry

            registry = Registry(zookeeper, security=zk_security, speaks_tls=security.has_tls)
            watched = WatchedCluster(registry, make)
            watched.start(limit_s)
            resources.callback(watched.stop)
            if registry.session.exists("/") is None:
                raise ArgumentError(f"ZooKeeper has no node for '{registry.connect}'")
            cluster = watched
        cluster.brokers()
        reach = Reach(
            cluster=cluster,
            connect=make,
            timeout_s=timeout,
            retries=retries,
            registry=registry,
            security=zk_security,
            resources=resources.pop_all(),
        )
        return Client(reach)


def _addresses(address: object) -> list[BrokerAddress]:
    items = address.split(",") if isinstance(address, str) else address
    if not isinstance(items, list | tuple) or not all(isinstance(one, str) for one in items):
        raise TypeError(f"give addresses as str or a list of str, not {address!r}")
    try:
        found = parse_broker_list(",".join(items))
    except ProtocolError as error:
        raise ArgumentError(str(error)) from error
    if not found:
        raise ArgumentError("give the address of a broker, such as 'localhost:9092'")
    return found


class Client(TopicCalls, GroupCalls, ClusterCalls, ReplicaCalls, SettingCalls, SchemaCalls):
    """A cluster: sends, reads, joins groups, and orders. For any number of threads.

    Made by `connect`; a context manager. What it has opened ends with it.
    """

    __module__ = "pylogctl"
    closed: bool  # made by `Access`

    def __init__(self, reach: Reach) -> None:
        super().__init__(reach)
        self._producers: dict[Acks, Producer] = {}  # of `send`
        self._open: WeakSet[_Closable] = WeakSet()  # producers and groups
        self._open_count = 0  # of them, with dropped ones until they have ended
        self._readers: WeakSet[Reader] = WeakSet()  # one that is dropped closes itself
        _clients.add(self)

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            unclosed.later(lambda: self.close(unclosed.LIMIT_S))
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)

    def send(
        self,
        topic: str,
        value: Value | None,
        *,
        key: Value | None = None,
        partition: PartitionLike | None = None,
        headers: Headers | None = None,
        timestamp: datetime | int | None = None,
        acks: AcksLike = Acks.COMMITTED,
        timeout: Timeout = UNSET,
    ) -> Receipt:
        """Send a message, and return where it is once the brokers have acknowledged it.

        Args:
            topic: made by its first message, if brokers may.
            value: the message; text as UTF-8. None, for topics of format `kafka`: the key is
                deleted.
            key: chooses the partition by its hash; else any partition. Topics of format `kafka`
                store it.
            partition: the target; one that the topic has.
            headers: names and values, which topics of format `kafka` store.
            timestamp: a time, or milliseconds since 1970; by default now. Stored as headers are.
            acks: `COMMITTED`, `"all"` (flushed, and on all replicas in sync), `WRITTEN` or `NONE`.
            timeout: seconds; by default the client's.

        Raises:
            TimedOut: it is not acknowledged in time. If `outcome` is "unknown" it may be in the
                log, or still be sent.
            TooLarge, InvalidName, Unreachable, Closed, TypeError, ArgumentError: as for
                `Producer.send`.
            Error: the brokers refuse it.
        """
        sender = self._sender(acks)
        with self._call(timeout):
            delivery = sender.send(
                topic,
                value,
                key=key,
                partition=partition,
                headers=headers,
                timestamp=timestamp,
                timeout=None,
            )
            return delivery.result(None)

    def send_many(
        self,
        topic: str,
        values: Iterable[Value],
        *,
        key: Value | None = None,
        partition: PartitionLike | None = None,
        acks: AcksLike = Acks.COMMITTED,
        timeout: Timeout = UNSET,
    ) -> list[Receipt]:
        """Send messages, and return where each is; in this order if they go to one partition.

        With a `key` or a `partition` they do; else they are spread. See `send`.

        Raises:
            Partial: some were not acknowledged; `failed` has their errors by their place ("0",
                "1", ..), `done` the receipts of the others. If all fail, the error of the first.
        """
        sender = self._sender(acks)
        payloads = sender._checked(values)  # all are good, before the first is sent
        receipts: list[Receipt] = []
        failed: dict[int, Error] = {}
        with self._call(timeout):
            deliveries: dict[int, Delivery] = {}
            for place, one in enumerate(payloads):
                try:
                    deliveries[place] = sender.send(
                        topic, one, key=key, partition=partition, timeout=None
                    )
                except Error as error:
                    failed[place] = error
            for place, delivery in deliveries.items():
                try:
                    receipts.append(delivery.result(None))
                except Error as error:
                    failed[place] = error
        return receipts_of(receipts, failed)

    def producer(
        self,
        *,
        acks: AcksLike = Acks.COMMITTED,
        codec: Codec | CodecName = "none",
        linger: float = 0.0,
        batch_bytes: int = BATCH_BYTES,
        buffer_bytes: int = BUFFER_BYTES,
        partitioner: Partitioner = hash_partitioner,
        on_delivery: Callable[[Delivery], object] | None = None,
        envelope: bool | None = False,
        idempotent: bool = False,
    ) -> Producer:
        """Return a producer, which queues messages and sends them in batches.

        Args:
            acks: as for `send`.
            codec: how batches are compressed.
            linger: seconds that a batch waits for more messages, unless the buffer is full. While a
                batch of a partition is on its way others gather in any case.
            batch_bytes: payload bytes that make a batch full.
            buffer_bytes: payload bytes that may be queued for one broker before `send` waits.
            partitioner: chooses partitions of messages without one.
            on_delivery: called with each delivery once it is done, by threads of the producer.
            envelope: whether time, host and sequence are put in front of each message, which fill
                its `timestamp` and `headers` when it is read. None: for topics with the setting
                `envelope=true`, for which a broker is asked once for each topic. Topics of format
                `kafka` get none: they store times.
            idempotent: whether messages to topics of format `0.7` are stored once, too, when they
                are sent again after a lost response; those of format `kafka` always are. Costs the
                broker a second write for each batch. Messages that may be stored wait for their
                broker, and do not go to another one.
        """
        self._raise_if_closed()
        given = acks, codec, linger, batch_bytes, buffer_bytes, partitioner
        parts = parts_of(self, *given, envelope=envelope, idempotent=idempotent)
        return self._keep(Producer(parts, on_delivery, self._forget))

    def schema_producer(
        self,
        schema: RegisteredSchema | SchemaLike = "auto",
        *,
        acks: AcksLike = Acks.COMMITTED,
        codec: Codec | CodecName = "none",
        linger: float = 0.0,
        partitioner: Partitioner = hash_partitioner,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> SchemaProducer:
        """Return a producer that encodes values by a schema; see `producer`.

        Args:
            schema: an id, a schema, or `"auto"` for the latest of the topic's subject: its setting
                `schema.subject`, else `TOPIC-value`.
            acks: as for `producer`, as are the others.
        """
        self._raise_if_closed()
        from broker.api.schema_producer import SchemaProducer  # late: few programs have schemas

        encoders = Encoders(self, schema)
        parts = parts_of(self, acks, codec, linger, partitioner=partitioner)
        return self._keep(SchemaProducer(encoders, parts, on_delivery, self._forget))

    def _sender(self, given: AcksLike) -> Producer:
        acks = values.acks_of(given)
        with self._lock:
            self._raise_if_closed()
            sender = self._producers.get(acks)
            if sender is None:
                sender = self._producers[acks] = Producer(parts_of(self, acks))
            return sender

    def read(
        self,
        topic: str | re.Pattern[str],
        *,
        partition: PartitionLike | Collection[PartitionLike] | None = None,
        start: Start = "earliest",
        stop: Stop = "end",
        filter: bytes | str | PayloadFilter | None = None,
        limit: int | None = None,
        idle: float | None = None,
        read_from: str = "leader",
        allow_missing: bool = False,
        timeout: Timeout = UNSET,
    ) -> Reader:
        """Return the messages of a topic from `start` to `stop`, as an iterator.

        Args:
            topic: its name, or a pattern for the whole names of several.
            partition: an index (on every home broker), `"2-0"`, `"0..3"`, or several of these.
            start: an offset, a time, or text as in `--offset`: `"earliest"`, `"latest"`, `"-100"`
                (messages before the end), `"@-10m"`, `"~4096"`; or one of these by partition.
            stop: the same; by default the end at this moment. None to follow the topic for ever,
                with partitions, and topics of the pattern, that are made later: from their start.
            filter: brokers send only messages in which the regular expression is found, given as
                text or by `re2.compile`; see pylogctl-patterns(7).
            limit: the most messages.
            idle: seconds without a message after which the iteration ends.
            read_from: `"leader"`, `"any"` in-sync replica, or the name of a rack.
            allow_missing: read the other partitions if some cannot be read, and log a warning;
                otherwise that is `Unreachable`. Without a stop they are waited for.
            timeout: seconds for this call, and while iterating for each time in which no broker
                responds at all, not for the wait for messages; by default the client's.

        Raises:
            UnknownTopic, ArgumentError, NotABoundary, OffsetOutOfRange: not by the iteration.
            Unreachable, TimedOut, Closed: see there.
        """
        if limit is not None:
            values.whole_of("limit", limit, 0)
        if idle is not None:
            values.number_of("idle", idle, 0)
        if not isinstance(read_from, str):
            raise TypeError(f"give read_from as str, not {type(read_from).__name__}")

        def open_reader() -> Reader:
            side = self._cluster, self._connect
            ranges, arrivals = reading_of(
                *side, topic, partition, start, stop, allow_missing=allow_missing
            )
            ledger = self._counts.consumers()
            return Reader(*side, ranges, order, ledger, arrivals)

        with self._call(timeout):
            order = ReadOrder(
                payload_filter=filter_of(filter),
                limit=limit,
                idle_s=idle,
                read_from=read_from,
                timeout_s=self._seconds(timeout),
                may_retry=self._retries != 0,
            )
            reader = self._repeated(open_reader)
        with self._lock:
            if not self.closed:
                self._readers.add(reader)
                return reader
        reader.close()  # meanwhile the client was closed
        raise Closed("the client is closed")

    def read_batches(
        self,
        topic: str | re.Pattern[str],
        *,
        partition: PartitionLike | Collection[PartitionLike] | None = None,
        start: Start = "earliest",
        stop: Stop = "end",
        idle: float | None = None,
        read_from: str = "leader",
        allow_missing: bool = False,
        timeout: Timeout = UNSET,
    ) -> Batches:
        """Return the messages of a topic as they are in the log; see `read`."""
        reader = self.read(
            topic,
            partition=partition,
            start=start,
            stop=stop,
            idle=idle,
            read_from=read_from,
            allow_missing=allow_missing,
            timeout=timeout,
        )
        return Batches(reader)

    def group(
        self,
        name: str,
        topics: str | Collection[str] | re.Pattern[str],
        *,
        start: Start = "latest",
        commit: Commit = "after",
        commit_every: float = 5.0,
        offsets: OffsetStore | None = None,
        filter: bytes | str | PayloadFilter | None = None,
        idle: float | None = None,
        on_assigned: OnChange | None = None,
        on_revoked: OnChange | None = None,
        timeout: Timeout = UNSET,
    ) -> Group:
        """Join a consumer group, and return the messages of the partitions it gives to this member.

        Args:
            name: of the group.
            topics: one, several, or a pattern for the whole names of present and future ones.
            start: where a partition starts that the group has never read, as for `read`; an offset
                inside a message means the next one. A partition that is made later starts at its
                beginning.
            commit: when positions are written; see `Group`.
            commit_every: seconds between commits with `"after"`.
            offsets: where positions are kept; in ZooKeeper by default.
            filter: as for `read`.
            idle: as for `read`.
            on_assigned: called with the group and the partitions that it has got, by the thread
                that iterates, between two messages. All methods of the group may be called in it.
            on_revoked: the same, before partitions go to other members: all that was given is
                handled, and `commit` in it still counts. They go without it if it has not returned
                5 s after the rebalance began, as when a message takes longer; a commit is a
                `Conflict` then.
            timeout: seconds for this call, not for the iteration; by default the client's.

        Raises:
            NoZooKeeper: the brokers have none, or it cannot be reached from here.
            ArgumentError, InvalidName, Unreachable, TimedOut, Closed: see there.
        """
        self._raise_if_closed()
        from broker.api.group import Group, GroupSettings  # late: loads kazoo

        for callback, named in ((on_assigned, "on_assigned"), (on_revoked, "on_revoked")):
            if callback is not None:
                values.callable_of(named, callback)
        if offsets is not None and not callable(getattr(offsets, "void_former", None)):
            raise TypeError(f"give offsets as an OffsetStore, not {type(offsets).__name__}")
        with self._call(timeout):
            names: str | list[str] | Pattern
            if (pattern := pattern_of(topics)) is not None:
                names = pattern
            elif isinstance(topics, str | Collection):
                names = topics if isinstance(topics, str) else list(topics)
            else:
                raise TypeError(
                    f"give the topics as str, a pattern or several str, not {type(topics).__name__}"
                )
            settings = GroupSettings(
                start=start,
                commit=commit,
                commit_every_s=commit_every,
                offsets=offsets,
                payload_filter=filter_of(filter),
                idle_s=idle,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
                timeout_s=self._timeout_s,
            )
            group = Group(
                name,
                names,
                settings,
                registry=self._zookeeper(),
                connect=self._connect,
                counts=self._counts,
                on_close=self._forget,
            )
        return self._keep(group)

    def register_metrics(self, registry: MetricsRegistry, **labels: str) -> None:
        """Have a registry of `prometheus_client` collect the metrics of this client until `close`.

        They are those of all its producers, readers and groups, of later ones too.

        Args:
            registry: such as `prometheus_client.REGISTRY`.
            labels: of all series; they tell clients in one registry apart.

        Raises:
            ArgumentError: a label is malformed, or another client there has the same labels.
        """
        self._raise_if_closed()
        from broker.client.metrics import register  # late: few programs want it

        register(registry, self._counts, labels)

    def close(self, timeout: Timeout = UNSET) -> None:
        """End what the client has opened: producers flush, groups commit and leave.

        A second call does nothing.

        Args:
            timeout: seconds, after which producers give up what they have not delivered, and
                groups what they have not committed; by default the client's.

        Raises:
            DeliveryFailed: messages were not delivered, and the program has not read that.
        """
        refuse_senders("close")
        seconds = self._seconds(timeout)
        with self._lock:
            if self.closed:
                return
            self.closed = True
            ending: list[_Closable | Reader] = [*self._open, *self._readers]
            senders = list(self._producers.values())
        with deadlines.Limit(seconds), ExitStack() as closing:
            closing.callback(self._resources.close)
            closing.callback(self._counts.end)
            closing.callback(self._await_dropped)
            for one in ending:
                closing.callback(_end, one)
            for sender in senders:
                with suppress(DeliveryFailed):  # `send` has raised it, or that it timed out
                    _end(sender)

    def _keep(self, one: _T) -> _T:
        with self._lock:
            if not self.closed:
                self._open.add(one)
                self._open_count += 1
                return one
            self._open_count += 1  # `close` counts down
        one.close()  # meanwhile the client was closed
        raise Closed("the client is closed")

    def _forget(self, one: _Closable) -> None:
        with self._lock:
            self._open.discard(one)
            self._open_count -= 1

    def _await_dropped(self) -> None:
        """Wait until producers and groups that the program has dropped have ended."""
        while self._open_count and deadlines.left_s() > 0:
            time.sleep(_POLL_S)

    def _abandon(self) -> None:
        """Close the client without a lock or an end of what it has opened: in a forked child."""
        self.closed = True
        self._lock = threading.RLock()  # a thread that is not here may have held it
        for one in (*self._open, *self._producers.values()):
            one._abandon()
        for reader in self._readers:
            reader._abandon()


def _end(one: _Closable | Reader) -> None:
    if isinstance(one, Reader):
        one.close()
    else:
        one.close(None)  # in the time that `Client.close` has


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _close_in_child() -> None:
    # after a fork: the sockets are the parent's, and there are no threads
    for client in list(_clients):
        client._abandon()


os.register_at_fork(after_in_child=_close_in_child)


def filter_of(given: object) -> PayloadFilter | None:
    """Return a filter for messages; raise unless it is one."""
    if given is None or isinstance(given, PayloadFilter):
        return given
    if (pattern := from_re2(given)) is not None:
        return filter_of(PayloadFilter(pattern.text.encode(), pattern.ignore_case))
    if isinstance(given, re.Pattern):
        raise TypeError(
            "give the filter as text or by re2.compile: a pattern of `re` has another dialect, and "
            "may take exponential time, which a broker cannot give to one client"
        )
    if not isinstance(given, bytes | str):
        raise TypeError(
            f"give the filter as str, bytes, by re2.compile or as a PayloadFilter, not "
            f"{type(given).__name__}"
        )
    found = PayloadFilter(given.encode() if isinstance(given, str) else given)
    found.compile()
    return found

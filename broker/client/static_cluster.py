"""The brokers, topics and partitions of a cluster, read from listed brokers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from typing import NamedTuple

from broker import deadlines, errors
from broker.client.cluster import BRIEFLY_S, Connect, InSyncReplicas
from broker.client.connection import FIRST_RESPONSE_S, Connection, addresses_text
from broker.ids import NO_LEADER
from broker.protocol import responses
from broker.protocol.client_requests import ClusterMetadataRequest, MetadataRequest
from broker.protocol.primitives import Reader
from broker.protocol.requests import FetchRequest
from broker.topic import NO_HOME, TopicPartition, validate_topic_name

_MAX_PROBED_PARTITIONS = 1024

logger = logging.getLogger(__name__)

OnAbsent = Callable[[errors.BrokerError], None]
"""Called once when a listed broker stops responding; an exception it raises is passed on."""


def log_absent(error: errors.BrokerError) -> None:
    """Log that a listed broker does not respond."""
    logger.warning("%s; going on without it", error)


class _Answer(NamedTuple):
    """What a broker knows of the cluster."""

    broker_id: int  # its own
    is_whole: bool  # it knows all brokers, not only itself
    brokers: tuple[responses.BrokerAddress, ...]  # all of them, if `is_whole`
    topics: tuple[responses.TopicMetadata, ...]  # those requested
    racks: Mapping[int, str] = {}  # of the brokers that have one, by id; never changed

    @property
    def partitions(self) -> list[responses.PartitionMetadata]:
        """Return the partitions of all topics."""
        return [one for topic in self.topics for one in topic.partitions]


class _Listed:
    """An address with a connection for metadata requests; `index` is its position in the list."""

    def __init__(self, connection: Connection, index: int) -> None:
        self.connection = connection
        self.address = connection.address
        self.index = index
        self.id: int | None = None  # of the broker that responded last
        self.is_absent = False
        self.retry_at_s = 0.0
        # whether the owner wants to wait for a broker that refuses connections
        self.can_wait = connection.retries_refused

    def ask(self, topics: tuple[str, ...] | None, *, waits: bool, silence_s: float) -> _Answer:
        """Request the metadata of topics; of all topics the broker has if `topics` is None.

        Args:
            topics: their names.
            waits: wait for a broker that refuses connections, if `can_wait`.
            silence_s: until the response to the hello.
        """
        connection = self.connection
        connection.retries_refused = waits and self.can_wait
        with deadlines.Limit(silence_s):
            if self.is_absent:
                connection.connect()  # `hello` may return the response of an earlier connection
            hello = connection.hello()
        if hello is None:
            self.id = self.address.id if self.address.id >= 0 else self.index
            found = [_probed_topic(connection, topic, self.id) for topic in topics or ()]
            return _Answer(self.id, False, (), tuple(found))
        if not connection.understands(ClusterMetadataRequest):
            self.id = hello.broker_id
            if topics == () or not connection.understands(MetadataRequest):
                return _Answer(self.id, False, (), ())
            led = responses.MetadataResponse.decode(self._call(MetadataRequest(topics)))
            return _Answer(self.id, False, (), led.topics)
        response = responses.ClusterMetadataResponse.decode(
            self._call(ClusterMetadataRequest(topics))
        )
        self.id = response.broker_id
        is_whole = bool(response.cluster_id)
        return _Answer(self.id, is_whole, response.brokers, response.topics, response.racks)

    def _call(self, request: MetadataRequest) -> Reader:
        connection = self.connection
        return connection.repeat_if_lost(lambda: connection.call(request))


@dataclass(eq=False, repr=False)
class StaticCluster:
    """The cluster that a list of brokers leads to, without ZooKeeper.

    A broker with a registry knows the whole cluster: one response of such a broker is enough. Other
    brokers know only themselves, so each in the list is asked; one that does not respond is left
    out, with its partitions, until a later request to it succeeds.

    Connections go to a broker's own address, as the listed one can be a load balancer's; or to the
    listed one, if that broker responds there and its own address does not lead to it.

    Args:
        addresses: at least one broker; duplicates are ignored.
        connect: makes the connections for metadata requests, which stay open until `close`.
        on_absent: called for a broker that does not respond, if its partitions are unknown then.
        retry_after_s: how long a broker that did not respond is left out, if others respond.

    Raises:
        BrokerUnreachableError: by methods that send requests, if no broker responds (the text
            names each); by `leader` and `address` also if that broker is none of those.
        ConfigError: by methods that return addresses, if two brokers have the same id.
    """

    addresses: InitVar[Sequence[responses.BrokerAddress]]
    connect: Connect
    _: KW_ONLY
    on_absent: OnAbsent = log_absent
    retry_after_s: float = 5.0

    def __post_init__(self, addresses: Sequence[responses.BrokerAddress]) -> None:
        self._listed = [
            _Listed(self.connect(address), index)
            for index, address in enumerate(dict.fromkeys(addresses))
        ]
        self._connect_timeout_s: float | None = None
        self._last: _Listed | None = None  # whose response was of the whole cluster
        # brokers that are not in the list
        self._learned: dict[responses.BrokerAddress, _Listed] = {}
        self._own_addresses: dict[int, responses.BrokerAddress] = {}  # in the response of `_last`
        self._leaders: dict[str, dict[TopicPartition, int]] = {}
        self._has_answer = False
        self._is_stale = False
        self._is_closed = False
        # where another broker than the one with that id has answered, or none
        self._wrong: set[responses.BrokerAddress] = set()

    def close(self) -> None:
        """Close the connections; a request of another thread fails."""
        self._is_closed = True
        for one in (*self._listed, *self._learned.values()):
            one.connection.interrupt()
            one.connection.close()

    def follow_closely(self, connect_timeout_s: float) -> None:
        """Ask all brokers in each call from now on, for callers that wait for one of them.

        Args:
            connect_timeout_s: how long a broker may take to accept a connection.
        """
        self.retry_after_s = 0.0
        self._connect_timeout_s = connect_timeout_s
        for one in (*self._listed, *self._learned.values()):
            one.retry_at_s = 0.0
            one.connection.connect_timeout_s = connect_timeout_s

    def _answers(
        self, topics: tuple[str, ...] | None, *, include_absent: bool = False
    ) -> list[_Answer]:
        """Request topics; return the response of one broker that knows all, else those of each.

        Ports that say nothing are given up together, after as long as one of them alone.
        """
        one = self._listed[0].connection
        silence_s = max(min(one.timeout_s, FIRST_RESPONSE_S), one.connect_timeout_s)
        with deadlines.Limit(max(one.timeout_s, silence_s)):
            return self._ask_each(topics, silence_s, include_absent=include_absent)

    def _ask_each(
        self, topics: tuple[str, ...] | None, silence_s: float, *, include_absent: bool
    ) -> list[_Answer]:
        # Brokers that did not respond in the last `retry_after_s` are asked only if no other broker
        # responds, or if `include_absent`. If none responds, they are asked again, with the connect
        # timeout as the time that brokers may take to start.
        now_s = time.monotonic()
        silent_until_s = now_s + silence_s
        due = [one for one in self._listed if now_s >= one.retry_at_s]
        postponed = [one for one in self._listed if now_s < one.retry_at_s]
        if self._last is not None:
            due = [self._last, *(one for one in due if one is not self._last)]
        learned = [one for one in self._learned.values() if one is not self._last]
        may_start = not self._has_answer  # after a first response, callers wait themselves
        is_only = may_start and len(due) + len(postponed) + len(learned) == 1
        answers: list[_Answer] = []
        failures: dict[_Listed, errors.BrokerError] = {}
        tried_s: dict[_Listed, float] = {}  # how long, by an attempt that failed
        # brokers that refuse connections may be starting: waited for if no other responds
        patient = [one for one in due if one.can_wait and may_start and not is_only]
        slow: list[_Listed] = []
        rounds = (
            (due, is_only),
            (postponed, is_only),
            (learned, False),
            (slow, False),
            (patient, True),
        )
        for some, waits in rounds:
            if answers and not (some is postponed and include_absent):
                break
            refusing = [one for one in patient if one not in slow]
            for index, one in enumerate(refusing if some is patient else some):
                # briefly, or with a share of the call's time, as others may respond if it hangs
                count = 2 if self._has_several else 1
                if some is slow:
                    count = len(slow) - index + len(refusing)
                share_s = deadlines.left_s() / count
                if self._has_several and not waits and some is not slow:
                    share_s = min(share_s, BRIEFLY_S)
                started_s = time.monotonic()
                silence_s = max(0.0, silent_until_s - started_s) / count
                try:
                    with deadlines.Limit(share_s):
                        answer = one.ask(topics, waits=waits, silence_s=silence_s)
                except errors.BrokerError as error:
                    if not error.is_retriable:
                        raise
                    is_late = isinstance(error, errors.RequestTimeoutError)
                    is_late = is_late or isinstance(error.__cause__, TimeoutError)
                    took_s = time.monotonic() - started_s
                    if took_s >= tried_s.get(one, 0.0):  # else the former error tells more
                        failures[one], tried_s[one] = error, took_s
                    if is_late and self._has_several and some is not slow:
                        slow.append(one)
                    continue
                finally:
                    if self._is_closed:  # meanwhile, and the request has opened it again
                        one.connection.close()
                self._has_answer = True
                one.is_absent, one.retry_at_s = False, 0.0
                failures.pop(one, None)
                if answer.is_whole:
                    self._last = one
                    self._learn(answer)
                    self._postpone(failures, tells=False)
                    return [answer]
                answers.append(answer)
        if not answers:
            if len(failures) == 1:
                raise next(iter(failures.values()))
            text = f"no broker answers: {'; '.join(map(str, failures.values()))}"
            if all(isinstance(one, errors.RequestTimeoutError) for one in failures.values()):
                raise deadlines.timed_out(text)
            raise errors.BrokerUnreachableError(text)
        self._last, self._own_addresses = None, {}
        for answer in answers:
            self._note_leaders(answer)
        self._postpone(failures, tells=True)
        return answers

    @property
    def _has_several(self) -> bool:
        return len(self._listed) + len(self._learned) > 1

    def _postpone(self, failures: Mapping[_Listed, errors.BrokerError], *, tells: bool) -> None:
        for one, failure in failures.items():
            was_absent, one.is_absent = one.is_absent, True
            one.retry_at_s = time.monotonic() + self.retry_after_s
            if tells and not was_absent:
                self.on_absent(failure)

    def _learn(self, answer: _Answer) -> None:
        self._own_addresses = {one.id: one for one in answer.brokers}
        listed = {(one.address.host, one.address.port) for one in self._listed}
        own = [one for one in answer.brokers if (one.host, one.port) not in listed]
        for address in self._learned.keys() - set(own):
            if self._learned[address] is not self._last:
                self._learned.pop(address).connection.close()
        for address in own:
            if address not in self._learned:
                learned = self._learned[address] = _Listed(self.connect(address), -1)
                if self._connect_timeout_s is not None:
                    learned.connection.connect_timeout_s = self._connect_timeout_s
        self._note_leaders(answer)

    def _note_leaders(self, answer: _Answer) -> None:
        self._is_stale = False
        for metadata in answer.topics:
            found = {one.partition: one.leader for one in metadata.partitions}
            if answer.is_whole:
                self._leaders[metadata.topic] = found
            else:
                self._leaders.setdefault(metadata.topic, {}).update(found)

    def brokers(self) -> list[responses.BrokerAddress]:
        """Return the live brokers of the cluster, or the listed ones that respond, by id.

        A 0.7 broker does not send its id: it gets the one in the list, or else its index there.
        """
        return self._brokers(include_absent=False)

    def _brokers(self, *, include_absent: bool) -> list[responses.BrokerAddress]:
        self._answers((), include_absent=include_absent)
        if self._last is not None:
            return [self._usable_addresses(one)[0] for one in sorted(self._own_addresses)]
        found: dict[int, responses.BrokerAddress] = {}
        for one in self._listed:
            if one.id is None or one.is_absent:
                continue
            if one.id in found:
                both = [found[one.id], one.address]
                raise errors.ConfigError(
                    f"{addresses_text(both, ' and ')} both are broker {one.id}: "
                    "the brokers of one cluster need different ids"
                )
            found[one.id] = one.address
        return [address._replace(id=broker_id) for broker_id, address in sorted(found.items())]

    def topics(self) -> list[str]:
        """Return the topics, by name; 0.7 brokers do not list theirs."""
        return sorted({topic.topic for answer in self._answers(None) for topic in answer.topics})

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions that have a leader, by home and index.

        Raises:
            InvalidTopicError: the name is not valid.
        """
        return [one.partition for one in self._partitions(topic) if one.leader != NO_LEADER]

    def assigned(self, topic: str) -> list[TopicPartition]:
        """Return all partitions of a topic, also those without a leader now."""
        return [one.partition for one in self._partitions(topic)]

    def create(self, topic: str) -> None:
        """Have a topic created on all brokers of the cluster, or on each listed one that responds.

        Brokers of 0.7 create it with its first message.
        """
        # late: no other call needs the requests of operators
        from broker.protocol.extension_requests import CreateTopicRequest

        self._answers((topic,))
        asked = [one for one in self._listed if not one.is_absent]
        for one in asked if self._last is None else [self._last]:
            connection = one.connection
            try:
                if connection.understands(CreateTopicRequest):
                    connection.repeat_if_lost(partial(connection.call, CreateTopicRequest(topic)))
            finally:
                if self._is_closed:  # meanwhile, and the request has opened it again
                    connection.close()

    def _partitions(self, topic: str) -> list[responses.PartitionMetadata]:
        validate_topic_name(topic)
        return sorted(one for answer in self._answers((topic,)) for one in answer.partitions)

    def absent_homes(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the home brokers of each topic's partitions that have no leader.

        Partitions that have no home wait for the brokers that were in sync last.
        """
        return {
            topic: sorted(
                {
                    id
                    for one in self._partitions(topic)
                    if one.leader == NO_LEADER
                    for id in (one.isr if one.partition.home == NO_HOME else (one.partition.home,))
                }
            )
            for topic in topics
        }

    def leader(self, partition: TopicPartition) -> responses.BrokerAddress:
        """Return the broker that serves a partition."""
        leader = self._leader_id(partition)
        if self._is_stale or leader in (None, NO_LEADER):
            self._answers((partition.topic,))
            leader = self._leader_id(partition)
        if partition.home == NO_HOME and leader in (None, NO_LEADER):
            raise errors.BrokerUnreachableError(f"{partition} has no leader")
        if leader == NO_LEADER:
            away = "" if partition.has_records else f": broker {partition.home} is away"
            raise errors.BrokerUnreachableError(f"{partition} has no leader{away}")
        found = self._find(partition.home if leader is None else leader)
        if found is not None:
            return found
        raise errors.BrokerUnreachableError(
            f"{partition} is on broker {self.leader_id(partition)}, {self._which_is_missing()}"
        )

    def _leader_id(self, partition: TopicPartition) -> int | None:
        return self._leaders.get(partition.topic, {}).get(partition)

    def leader_id(self, partition: TopicPartition) -> int:
        """Return the id of the last known leader of a partition."""
        leader = self._leader_id(partition)
        return partition.home if leader in (None, NO_LEADER) else leader

    def address(self, broker_id: int) -> responses.BrokerAddress:
        """Return the address of a broker."""
        if (found := self._find(broker_id)) is not None:
            return found
        raise errors.BrokerUnreachableError(
            f"there is no broker {broker_id}, {self._which_is_missing()}"
        )

    def _find(self, broker_id: int) -> responses.BrokerAddress | None:
        if self._is_stale:
            self._answers(())
        if not (found := self._usable_addresses(broker_id)):
            self._brokers(include_absent=True)
            found = self._usable_addresses(broker_id)
        return found[0] if found else None

    def _usable_addresses(self, broker_id: int) -> list[responses.BrokerAddress]:
        """Return the addresses a broker may have, the most likely first; none if it is unknown."""
        own = self._own_addresses.get(broker_id)
        if own is None and self._last is not None:
            return []  # the whole cluster is known, and it is no live member
        found = [one.address._replace(id=broker_id) for one in self._listed if one.id == broker_id]
        if own is not None and own not in found:
            # the listed address can be a load balancer's; its own can be of another network
            if found and own not in self._wrong and not self._answers_at(own):
                self._wrong.add(own)
            found.insert(0, own)
        usable = [one for one in found if one not in self._wrong]
        if not usable:
            self._wrong.difference_update(found)
        return usable or found

    def _answers_at(self, own: responses.BrokerAddress) -> bool:
        """Return whether a broker answers at its own address; one request per address."""
        learned = self._learned.get(own)
        if learned is None:
            return True
        if learned.id is None:
            learned.connection.retries_refused = False
            try:
                hello = learned.connection.hello()
            except errors.BrokerError as error:
                if not error.is_retriable:
                    raise
                return False
            learned.id = own.id if hello is None else hello.broker_id
        return learned.id == own.id

    def _which_is_missing(self) -> str:
        absent = addresses_text([one.address for one in self._listed if one.is_absent])
        text = f"which is not among {addresses_text(self.brokers())}"
        return text + f"; there is no answer from {absent}" * bool(absent)

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Request the leaders of the partitions of topics again."""
        return {
            one.partition: one.leader
            for answer in self._answers(tuple(topics))
            for one in answer.partitions
            if one.leader != NO_LEADER
        }

    def in_sync_replicas(self, topics: Iterable[str]) -> InSyncReplicas:
        """Request the in-sync replicas of the partitions of topics, and note their leaders."""
        replicas: dict[TopicPartition, tuple[int, ...]] = {}
        racks: dict[int, str] = {}
        for answer in self._answers(tuple(topics)):
            racks.update(answer.racks)
            replicas.update((one.partition, one.isr) for one in answer.partitions)
        return InSyncReplicas(replicas, racks)

    def has_replicas(self, partition: TopicPartition) -> bool:
        """Return whether another broker can become the leader of a partition."""
        found = self._partitions(partition.topic)
        return any(one.partition == partition and len(one.replicas) > 1 for one in found)

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        """Note that the supposed leader of a partition is not; `broker_id` is the one it named."""
        leaders = self._leaders.setdefault(partition.topic, {})
        if broker_id == NO_LEADER:
            leaders.pop(partition, None)
        else:
            leaders[partition] = broker_id

    def note_answer(self, address: responses.BrokerAddress, broker_id: int) -> None:
        """Note that not the broker expected at an address answers there."""
        self._wrong.add(address)
        self._is_stale = True


def _probed_topic(connection: Connection, topic: str, home: int) -> responses.TopicMetadata:
    """Find a 0.7 broker's partitions of a topic: fetch from index 0, 1, ... up to a wrong one."""
    found: list[responses.PartitionMetadata] = []
    for index in range(_MAX_PROBED_PARTITIONS):
        request = FetchRequest(topic, index, 0, 0)
        response = connection.repeat_if_lost(partial(connection.ask, request))
        if responses.decode_fetch_response(response)[0] == errors.WrongPartitionError.code:
            break
        partition = TopicPartition(topic, home, index)
        found.append(
            responses.PartitionMetadata(partition, errors.NO_ERROR, home, (home,), (home,))
        )
    return responses.TopicMetadata(topic, errors.NO_ERROR, tuple(found))

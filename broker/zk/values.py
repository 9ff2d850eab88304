"""The values of nodes in ZooKeeper: encoders and decoders.

All values are UTF-8 text without a terminator, exactly as Kafka 0.7 writes them, so that its
clients and ours read each other. A decoder raises `CoordinationError` for anything else. The paths
of the nodes are in `paths`.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from broker.endpoints import Endpoint, join_address
from broker.errors import CoordinationError

logger = logging.getLogger(__name__)

_CREATOR_BEFORE_IPV6 = re.compile(r"(.+?-\d+):(.*:.*)", re.DOTALL)
_INT64_CHARACTERS = 20
_SHOWN_LENGTH = 80
_FILTER = re.compile(r"([*!])(0?)(\d+)\1(.*)", re.DOTALL)
_STATIC_MARK = "{  "
"""How a static subscription of ours begins; that of a member of Kafka 0.7 has one blank."""


class BrokerNode(NamedTuple):
    """A registered broker.

    `creator` is the token `<host>-<milliseconds>` of its data directory, which distinguishes it
    from another broker with the same id.
    """

    id: int
    host: str
    port: int
    creator: str
    endpoints: tuple[Endpoint, ...] = ()
    """Of all its listeners; they are in its registration for replication, not in its id node."""

    @property
    def address(self) -> str:
        """Return `host:port`, an IPv6 address in brackets."""
        return join_address(self.host, self.port)

    def at_tls(self) -> BrokerNode:
        """Return it with the address of its first listener for TLS, if it has one."""
        for one in self.endpoints:
            if one.is_tls:
                return self._replace(host=one.host, port=one.port)
        return self


def encode_broker(info: BrokerNode) -> bytes:
    """Return the value of a broker's node: `creator:host:port`, an IPv6 host in brackets."""
    # Kafka 0.7 `ZkUtils.registerBrokerInZk`; 0.7 cannot parse an IPv6 address in any form
    return f"{info.creator}:{info.address}".encode()


def decode_broker(broker_id: int, value: bytes) -> BrokerNode:
    """Parse a broker's node, from the right: an IPv6 host may come without brackets."""
    text = _text(value, f"registration of broker {broker_id}")
    rest, _, port = text.rpartition(":")
    creator, host = _split_creator(rest)
    if not (creator and host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise CoordinationError(f"registration of broker {broker_id} is malformed: {text!r}")
    return BrokerNode(broker_id, host, int(port), creator)


def _split_creator(text: str) -> tuple[str, str]:
    if text.endswith("]"):
        creator, _, host = text[:-1].rpartition(":[")
        return creator, host
    if (found := _CREATOR_BEFORE_IPV6.fullmatch(text)) and _is_ipv6(found[2]):
        return found[1], found[2]
    creator, _, host = text.rpartition(":")
    return creator, host


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def decode_brokers(nodes: Mapping[str, tuple[bytes, object]]) -> dict[int, BrokerNode]:
    """Return the brokers of id nodes, given by path, by id; one that is malformed is left out."""
    brokers = {}
    for path, (value, _) in nodes.items():
        broker_id = int(path.rpartition("/")[2])
        try:
            brokers[broker_id] = decode_broker(broker_id, value)
        except CoordinationError as error:
            logger.warning("broker %d left out: %s", broker_id, error)
    return brokers


def broker_ids(names: Iterable[str]) -> list[int]:
    """Return the broker ids among the names of nodes, sorted."""
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def encode_number(number: int) -> bytes:
    """Return the value of a partition count or an offset node: plain decimal."""
    return b"%d" % number


def decode_number(value: bytes, what: str) -> int:
    """Parse the value of a partition count or an offset node; `what` names it in errors."""
    text = _text(value, what)
    if not re.fullmatch(r"-?[0-9]+", text):  # 0.7's tools can write -1 as an offset
        raise CoordinationError(f"{what} is not a number: {text!r}")
    # 64 bits are the range of 0.7 and of requests
    if len(text) > _INT64_CHARACTERS or not -(1 << 63) <= int(text) < 1 << 63:
        raise CoordinationError(f"{what} is not a number of 64 bits: {text[:_SHOWN_LENGTH]!r}")
    return int(text)


def encode_cluster_id(cluster_id: str) -> bytes:
    """Return the value of the cluster id's node, in the form of later Kafka."""
    return json.dumps({"version": "1", "id": cluster_id}).encode()


def decode_cluster_id(value: bytes) -> str:
    """Parse the value of the cluster id's node."""
    with parsed("cluster id is malformed", value) as found:
        return str(found["id"])


_UNKNOWN_CREATION = b"unknown"
DELETED_CREATION = b"deleted"
"""The value of a creation id's node once the broker has deleted the topic."""


def encode_creation_id(creation_id: str | None) -> bytes:
    """Return the value of a creation id's node; None for a topic created at an unknown time."""
    return _UNKNOWN_CREATION if creation_id is None else creation_id.encode()


def decode_creation_id(value: bytes) -> str | None:
    """Parse the value of a creation id's node."""
    return None if value == _UNKNOWN_CREATION else _text(value, "creation id of a topic")


def encode_homes(homes: Mapping[int, int]) -> bytes:
    """Return the value of the node with the homes of a topic: the partitions of each broker."""
    named = {str(home): count for home, count in sorted(homes.items())}
    return json.dumps({"version": 1, "homes": named}).encode()


def decode_homes(path: str, value: bytes) -> dict[int, int]:
    """Parse the value of the node with the homes of a topic; one without a value has none."""
    if not value:
        return {}
    with parsed(
        f'node {path} is not {{"version":1,"homes":{{BROKER:PARTITIONS}}}}', value
    ) as found:
        return {int(home): int(count) for home, count in found["homes"].items()}


def encode_settings(texts: Mapping[str, str]) -> bytes:
    """Return the value of a node of settings, in the form of Kafka 0.8."""
    return json.dumps({"version": 1, "config": dict(texts)}).encode()


def decode_settings(path: str, value: bytes) -> dict[str, str]:
    """Parse the value of a node of settings; numbers and booleans are taken as their texts."""
    form = '{"version":1,"config":{NAME:VALUE}}'
    with parsed(f"node {path} is not {form}", value) as found:
        texts = found["config"]
    if not isinstance(texts, dict):
        raise CoordinationError(f"in node {path}, 'config' is not an object of names and values")
    for name, text in texts.items():
        if not isinstance(text, str | int):
            raise CoordinationError(f"in node {path}, the value of '{name}' is not a text")
    return {
        name: text if isinstance(text, str) else json.dumps(text) for name, text in texts.items()
    }


def encode_topic_change(topic: str) -> bytes:
    """Return the value of a node that announces other settings of a topic, as in Kafka 0.8."""
    return json.dumps(topic).encode()


def encode_broker_change(broker_id: int) -> bytes:
    """Return the value of a node that announces other settings of a broker, as in later Kafka."""
    return json.dumps(
        {"version": 1, "entity_type": "brokers", "entity_name": str(broker_id)}
    ).encode()


def encode_owner(thread_id: str) -> bytes:
    """Return the value of an owner node: the id of a consumer thread."""
    return thread_id.encode()


def decode_owner(value: bytes) -> str:
    """Parse the value of an owner node."""
    return _text(value, "partition owner")


@dataclass(frozen=True, slots=True)
class StaticSubscription:
    """A subscription to named topics, with the stream count of each.

    `is_kafka07`: a member of Kafka 0.7 has written it, as for filters.
    """

    stream_counts: Mapping[str, int]
    is_kafka07: bool = False


class FilterKind(StrEnum):
    """Whether a filter selects or excludes topics; the value is its marker in the node."""

    WHITELIST = "*"
    BLACKLIST = "!"


@dataclass(frozen=True, slots=True)
class FilterSubscription:
    """A subscription to every topic whose whole name matches, or does not match, a regex."""

    kind: FilterKind
    stream_count: int
    regex: str
    is_kafka07: bool = False


Subscription = StaticSubscription | FilterSubscription


def encode_subscription(subscription: Subscription) -> bytes:
    """Return the value of a consumer's node, which Kafka 0.7 reads as one of its own.

    A mark tells members of ours from those of 0.7, which know live home brokers only: a second
    blank behind the brace, or a zero before a filter's stream count. Without the mark it is byte
    for byte as 0.7 writes it (`StaticTopicCount.dbString`, `WildcardTopicCount.dbString`), but for
    a quote or backslash in a topic name: it is escaped, as the group could not read the node
    otherwise.
    """
    if isinstance(subscription, FilterSubscription):
        kind = subscription.kind
        mark = "" if subscription.is_kafka07 else "0"
        return f"{kind}{mark}{subscription.stream_count}{kind}{subscription.regex}".encode()
    entries = (
        f"{json.dumps(topic, ensure_ascii=False)}: {count}"
        for topic, count in subscription.stream_counts.items()
    )
    opening = "{ " if subscription.is_kafka07 else _STATIC_MARK
    return (opening + ",".join(entries) + " }").encode()


def decode_subscription(value: bytes) -> Subscription:
    """Parse a consumer's node: a filter if it starts with `*` or `!`, else a JSON object."""
    # as Kafka 0.7 `TopicCount.constructTopicCount`
    text = _text(value, "consumer subscription")
    if text.startswith(("*", "!")):
        found = _FILTER.fullmatch(text)
        if not found:
            raise CoordinationError(f"consumer subscription is malformed: {text!r}")
        kind, mark, count, regex = found.groups()
        return FilterSubscription(FilterKind(kind), int(count), regex, is_kafka07=not mark)
    return StaticSubscription(_decode_counts(text), is_kafka07=not text.startswith(_STATIC_MARK))


def _decode_counts(text: str) -> dict[str, int]:
    try:
        counts = json.loads(text)
    except ValueError as error:
        raise CoordinationError(f"consumer subscription is malformed: {text!r}") from error
    # JSON's true is an instance of int, so the type is compared.
    if not isinstance(counts, dict) or any(type(count) is not int for count in counts.values()):
        raise CoordinationError(f"consumer subscription is malformed: {text!r}")
    return counts


def normalize_filter_regex(text: str) -> str:
    """Return a topic filter as Kafka 0.7 stores and applies it (`TopicFilter.regex`)."""
    return text.strip().replace(",", "|").replace(" ", "").strip("\"'")


def _text(value: bytes, what: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CoordinationError(f"{what} is not UTF-8 text: {value!r}") from error


@contextmanager
def parsed(problem: str, value: bytes) -> Iterator[Any]:
    """Give a JSON document; reading what it does not have raises an error that says `problem`."""
    try:
        yield json.loads(value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CoordinationError(f"{problem}: {value[:_SHOWN_LENGTH]!r}") from error

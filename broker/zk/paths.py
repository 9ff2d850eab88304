"""The paths of all nodes in ZooKeeper, and the connect string.

All paths are relative to the chroot; `resolve` prepends it. The nodes' values are in `values`.
Kafka 0.7 knows no nodes below `/mirrors`, `/schemas` and `/creation-ids`, and its tools do not read
these trees.

Source: Kafka 0.7 `ZkUtils` and `ZKGroupTopicDirs`; the layout is shared with 0.7 clients.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple
from urllib.parse import quote, unquote

from broker.endpoints import join_address
from broker.errors import ConfigError, CoordinationError, InvalidNodeNameError
from broker.topic import TopicPartition, unregistrable_in

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONSUMERS = "/consumers"
MIRRORS = "/mirrors"
CREATION_IDS = "/creation-ids"
CLUSTER_ID = "/cluster/id"
"""The id of the cluster, as in later Kafka (persistent)."""
CLUSTER_KEYS = "/cluster/keys"
"""The keys with which brokers prove that they are of the cluster (persistent, secret)."""

TOPIC_SETTINGS = "/config/topics"
"""Its children are the topics that have settings of their own, as in Kafka 0.8."""
BROKER_SETTINGS = "/config/brokers"
"""Its children are the brokers whose settings were changed while they run."""
USERS = "/config/users"
"""Its children, named as in URLs, have the quotas and keys of users, as in later Kafka."""
DEFAULT_USER = "<default>"
"""The child of `USERS` for those without quotas of their own."""
MOCK_SECRET = "/cluster/mock"
"""What salts are made of for users that are not there (persistent)."""
SETTINGS_CHANGES = "/config/changes"
"""Its children announce changes of settings, as in Kafka 0.8 (persistent, for 15 minutes)."""

RULES = "/acls"
"""All rules of who may do what (persistent)."""

SCHEMAS = "/schemas"
"""The registry of schemas: its next id and compatibility, written with each change below."""

REPLICATED_TOPICS = "/replicated/topics"
"""Its children are the topics that have replicas."""
REPLICATED_BROKERS = "/replicated/brokers"
"""Its children are the brokers that are registered for replication (ephemeral)."""
CONTROLLER = "/controller"
"""The broker that is the controller, as in Kafka 0.8 (ephemeral)."""
CONTROLLER_EPOCH = "/controller_epoch"
"""How many controllers there have been, as in Kafka 0.8 (persistent)."""
ADMIN = "/admin"
"""Jobs of the controller, as in Kafka 0.8."""
REASSIGNMENTS = "/admin/reassign_partitions"
"""The changes of replicas that are under way, as in Kafka 0.8 (persistent)."""
DELETIONS = "/admin/delete_topics"
"""Its children are the topics that are being deleted, as in Kafka 0.8."""

DELETED = "/admin/deleted_topics"
"""Its children, named by creation ids, are topics that brokers which were away may have logs of."""

DEFAULT_PORT = 2181


class Protection(Enum):
    """Who may use a node of a secured cluster, besides the user of its brokers' credential."""

    OPEN = "all"
    SHARED = "all, but for its ACL"
    READABLE = "all may read"
    SECRET = "nobody"


_SECRET = ("/cluster/keys", "/cluster/mock", "/config/users", "/acls")
_READABLE = (
    "/cluster",
    "/brokers",
    CONTROLLER,
    CONTROLLER_EPOCH,
    "/replicated",
    ADMIN,
    "/config",
    CREATION_IDS,
    SCHEMAS,
)
OPEN_TREES = (CONSUMERS, MIRRORS)
"""What all clients write, those of Kafka 0.7 too; the chroot must have these for them."""


OWN_NODES = (
    "/",
    *OPEN_TREES,
    *_SECRET,
    *_READABLE,
    CLUSTER_ID,
    BROKER_IDS,
    TOPICS,
    TOPIC_SETTINGS,
    BROKER_SETTINGS,
    SETTINGS_CHANGES,
    REPLICATED_TOPICS,
    REPLICATED_BROKERS,
    REASSIGNMENTS,
    DELETIONS,
    DELETED,
)
"""All nodes whose paths are the same in each cluster; the chroot's own first."""


def protection_of(path: str) -> Protection:
    """Return who may use a node; all may use those that are none of the brokers'."""
    if _is_in(path, _SECRET):
        return Protection.SECRET
    # to delete a node is a right of its parent
    if path == "/" or _is_in(path, _READABLE):
        return Protection.READABLE
    # whoever may change its ACL can take it from all others
    return Protection.SHARED if path in OPEN_TREES else Protection.OPEN


def _is_in(path: str, trees: tuple[str, ...]) -> bool:
    return any(path == tree or path.startswith(f"{tree}/") for tree in trees)


def broker(broker_id: int) -> str:
    """Return the path of a broker's registration (ephemeral)."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    """Return the path of a topic (persistent, empty)."""
    return f"{TOPICS}/{name}"


def topic_broker(name: str, broker_id: int) -> str:
    """Return the path of a broker's partition count for a topic (ephemeral)."""
    return f"{TOPICS}/{name}/{broker_id}"


def group(name: str) -> str:
    """Return the path of a consumer group."""
    return f"{CONSUMERS}/{name}"


def consumer_ids(group_name: str) -> str:
    """Return the path whose children are the members of a group."""
    return f"{CONSUMERS}/{group_name}/ids"


def consumer(group_name: str, consumer_id: str) -> str:
    """Return the path of a member's subscription (ephemeral)."""
    return f"{CONSUMERS}/{group_name}/ids/{consumer_id}"


def owners(group_name: str, topic_name: str) -> str:
    """Return the path whose children are the assigned partitions of a topic."""
    return f"{CONSUMERS}/{group_name}/owners/{topic_name}"


def owner(group_name: str, partition: TopicPartition) -> str:
    """Return the path of a partition's owner, a consumer thread (ephemeral)."""
    return f"{owners(group_name, partition.topic)}/{partition.name}"


def offsets(group_name: str, topic_name: str) -> str:
    """Return the path whose children are the partitions with a committed offset."""
    return f"{CONSUMERS}/{group_name}/offsets/{topic_name}"


def offset(group_name: str, partition: TopicPartition) -> str:
    """Return the path of a group's committed offset in a partition (persistent)."""
    return f"{offsets(group_name, partition.topic)}/{partition.name}"


def mirror_error(group_name: str, partition: TopicPartition) -> str:
    """Return the path of a mirror's last error in a source partition (persistent)."""
    return f"{MIRRORS}/{group_name}/errors/{partition.topic}/{partition.name}"


def running_mirrors(group_name: str) -> str:
    """Return the parent of a group's mirrors that run; each has an ephemeral node."""
    return f"{MIRRORS}/{group_name}/running"


def creation_ids(topic_name: str) -> str:
    """Return the path of the homes of a topic without replicas: all its partitions (persistent).

    Its children are the brokers that have, or had, a topic.
    """
    return f"{CREATION_IDS}/{topic_name}"


def creation_id(topic_name: str, broker_id: int) -> str:
    """Return the path of the id of a topic's creation on a broker (persistent)."""
    # outlives the topic, marked as deleted, so that a later creation is known as another one
    return f"{creation_ids(topic_name)}/{broker_id}"


def replicated_broker(broker_id: int) -> str:
    """Return the path of a broker's registration for replication (ephemeral)."""
    return f"{REPLICATED_BROKERS}/{broker_id}"


def replicated_topic(name: str) -> str:
    """Return the path of the replicas of a topic (persistent)."""
    return f"{REPLICATED_TOPICS}/{name}"


def replicated_partitions(name: str) -> str:
    """Return the path whose children are the partitions of a replicated topic (persistent)."""
    return f"{replicated_topic(name)}/partitions"


def replicated_partition(partition: TopicPartition) -> str:
    """Return the path above a replicated partition's state (persistent, empty)."""
    return f"{replicated_partitions(partition.topic)}/{partition.name}"


def partition_state(partition: TopicPartition) -> str:
    """Return the path of who leads a replicated partition (persistent)."""
    return f"{replicated_partition(partition)}/state"


def deletion(topic_name: str) -> str:
    """Return the path that says that a replicated topic is being deleted (persistent, empty)."""
    return f"{DELETIONS}/{topic_name}"


def deleted(creation_id: str) -> str:
    """Return the path that says which brokers may have logs of a deleted topic (persistent)."""
    return f"{DELETED}/{creation_id}"


def topic_settings(name: str) -> str:
    """Return the path of a topic's own settings (persistent)."""
    return f"{TOPIC_SETTINGS}/{name}"


def broker_settings(broker_id: int) -> str:
    """Return the path of a broker's settings that were changed while it runs (persistent)."""
    return f"{BROKER_SETTINGS}/{broker_id}"


def user(name: str) -> str:
    """Return the path of a user's quotas and keys (persistent); `<default>` names none."""
    return f"{USERS}/{name if name == DEFAULT_USER else quote(name, safe='')}"


def user_of(path: str) -> str:
    """Return the name of the user whose node this is."""
    return unquote(path.removeprefix(f"{USERS}/"))


class ConnectString(NamedTuple):
    """The servers of a ZooKeeper, and the chroot of all paths.

    `chroot` is empty or starts with a slash; IPv6 hosts have no brackets.
    """

    hosts: tuple[tuple[str, int], ...]
    chroot: str

    @property
    def servers(self) -> str:
        """Return the servers alone, as `host:port,host:port`."""
        return ",".join(join_address(host, port) for host, port in self.hosts)

    def __str__(self) -> str:
        return self.servers + self.chroot


def parse_connect_string(text: str) -> ConnectString:
    """Parse `host:port,host:port[/chroot]`, as in 0.7's `zk.connect`; `ConfigError` if invalid.

    The default port is 2181, IPv6 addresses are in brackets; the chroot `/` becomes empty.
    """
    servers, slash, chroot = text.strip().partition("/")
    try:
        hosts = tuple(_parse_address(server.strip()) for server in servers.split(","))
        return ConnectString(hosts, resolve("", slash + chroot.rstrip("/")) if chroot else "")
    except (ValueError, CoordinationError) as error:
        raise ConfigError(f"invalid ZooKeeper address '{text}': {error}") from error


def _parse_address(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"'{text}' is not [IPv6]:PORT")
        port = rest[1:] if rest else str(DEFAULT_PORT)
    else:
        host, colon, port = text.partition(":")
        port = port if colon else str(DEFAULT_PORT)
    if not host:
        raise ValueError("a server has no host name")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"'{port}' is not a port")
    return host, int(port)


def resolve(chroot: str, path: str) -> str:
    """Return a path with the chroot prepended; `/` is the chroot itself.

    Raises `CoordinationError` if the path is not absolute, or has an empty or dotted step, and
    `InvalidNodeNameError` if it has a character that ZooKeeper takes in no name.
    """
    if path == "/":
        return chroot or "/"
    steps = path.split("/")
    if not path.startswith("/") or any(step in {"", ".", ".."} for step in steps[1:]):
        raise CoordinationError(f"invalid path '{path}': steps must be like /a/b")
    if found := unregistrable_in(path):
        raise InvalidNodeNameError(f"invalid path {path!r}: ZooKeeper takes no {found} in names")
    return chroot + path

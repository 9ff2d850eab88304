"""Topic names, the identity of a partition, positions and ranges in it."""

from __future__ import annotations

import codecs
import os
import re
import zlib
from typing import NamedTuple

from broker.errors import InvalidTopicError

MAX_TOPIC_NAME_LENGTH = 255
_DIRECTORY_NAME_MAX_BYTES = 255
# of a topic that is created: responses, and a node of 1 MiB in ZooKeeper, list them all
MAX_PARTITIONS = 10_000
# with replicas: the controller sends all of them to each broker in one request
MAX_CLUSTER_PARTITIONS = 200_000

codecs.lookup("utf-16-le")  # loads a module, for which a busy process may have no descriptor later
_FORBIDDEN = re.compile("[/\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]")
_KAFKA_NAME = re.compile("[a-zA-Z0-9._-]{1,249}")
_PARTITION_NAME = re.compile("(?:([0-9]+)-)?([0-9]+)")
# ZooKeeper judges UTF-16 units, so that all above U+FFFF are surrogates to it
_NOT_IN_NODES = re.compile("[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\U0010ffff]")


NO_HOME = -1
FORMAT_07 = "0.7"
FORMAT_KAFKA = "kafka"
FORMATS = (FORMAT_07, FORMAT_KAFKA)
"""Of a topic, for life: message sets with offsets in bytes, or record batches with ordinals."""


class TopicPartition(NamedTuple):
    """One partition: its topic, the id of its home broker and its index there.

    The name `home-index` never changes, whichever broker leads the partition. Partitions of Kafka's
    topics have no home, -1, and are numbers.
    """

    # a tuple, as it is the key of most dictionaries: no Python is run to find it there
    topic: str
    home: int
    index: int  # type: ignore[assignment]  # hides the method of tuples

    @classmethod
    def named(cls, topic: str, name: str) -> TopicPartition:
        """Return the partition of a topic by its name; `ValueError` if none has such a name."""
        found = _PARTITION_NAME.fullmatch(name)
        if found is None:
            raise ValueError(f"not a partition name: {name!r}")
        home, index = found.groups()
        return cls(topic, NO_HOME if home is None else int(home), int(index))

    @property
    def format(self) -> str:
        """Return the format of its topic, which its home tells."""
        return FORMAT_KAFKA if self.home == NO_HOME else FORMAT_07

    @property
    def name(self) -> str:
        """Return the partition's name within its topic, such as `2-0`; without a home, `0`."""
        return str(self.index) if self.home == NO_HOME else f"{self.home}-{self.index}"

    @property
    def has_records(self) -> bool:
        """Return whether its topic is of format `kafka`: offsets count records, not bytes."""
        return self.home == NO_HOME

    def __str__(self) -> str:
        return f"{self.topic}[{self.name}]"


def share_of(partition: TopicPartition, count: int) -> int:
    """Return which of `count` fetchers of a broker has a partition, whatever the others are."""
    return zlib.crc32(str(partition).encode()) % count


def validate_topic_name(name: str, max_length: int = MAX_TOPIC_NAME_LENGTH) -> None:
    """Raise `InvalidTopicError` if a name is empty, too long, `.`, `..` or has a bad character.

    `max_length` is in UTF-16 units, as in 0.7. Source: Kafka 0.7 `TopicNameValidator`.
    """
    if not name:
        raise InvalidTopicError("invalid topic name '': it is empty")
    length = len(name.encode("utf-16-le", "surrogatepass")) // 2
    if length > max_length:
        shown = name if len(name) <= 40 else f"{name[:40]}..."
        raise InvalidTopicError(
            f"invalid topic name {shown!r}: {length} characters, the limit is {max_length}"
        )
    if name in {".", ".."}:
        raise InvalidTopicError(f"invalid topic name '{name}': reserved by the file system")
    if found := _FORBIDDEN.search(name):
        shown = found[0] if found[0] == "/" else f"U+{ord(found[0]):04X}"
        raise InvalidTopicError(f"invalid topic name {name!r}: '{shown}' is not allowed")


def validate_new_topic_name(
    name: str, max_length: int = MAX_TOPIC_NAME_LENGTH, format: str = FORMAT_07
) -> None:
    """Raise `InvalidTopicError` also if ZooKeeper, or Kafka for its format, would refuse the name.

    Source of the second: Kafka's `Topic.validate`.
    """
    validate_topic_name(name, max_length)
    if found := unregistrable_in(name):
        raise InvalidTopicError(f"invalid topic name {name!r}: ZooKeeper takes no {found}")
    if format == FORMAT_KAFKA and not _KAFKA_NAME.fullmatch(name):
        raise InvalidTopicError(
            f"invalid topic name '{name}': in the format kafka it has at most 249 characters, all "
            "of them ASCII letters, digits, '.', '_' or '-'"
        )


def unregistrable_in(name: str) -> str:
    """Return the first character that no name of a node in ZooKeeper may have, as `U+1F600`."""
    found = _NOT_IN_NODES.search(name)
    return f"U+{ord(found[0]):04X}" if found else ""


def log_directory_name(topic: str, index: int, format: str = FORMAT_07) -> str:
    """Return the name of a log's directory; `InvalidTopicError` if too long for the file system.

    The last separator tells the format, so that no two partitions have the same name.
    """
    name = f"{topic}{'-' if format == FORMAT_KAFKA else '_'}{index}"
    if len(os.fsencode(name)) > _DIRECTORY_NAME_MAX_BYTES:
        raise InvalidTopicError(
            f"invalid topic name '{topic[:40]}...': its directory name would exceed "
            f"{_DIRECTORY_NAME_MAX_BYTES} bytes"
        )
    return name


class MessagePosition(NamedTuple):
    """The offset of an entry, and how many messages of the entry precede the position.

    `inner` is 0 except inside a wrapper, which can only be fetched as a whole.
    """

    offset: int
    inner: int = 0


class ReadRange(NamedTuple):
    """The messages from `start` up to `end`; without an end reading never stops."""

    start: MessagePosition
    end: MessagePosition | None = None

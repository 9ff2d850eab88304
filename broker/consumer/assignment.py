"""The assignment of a topic's partitions to the consumer threads of a group.

Pure functions. Each member computes the assignment itself from the nodes in ZooKeeper, so all
rules are exactly those of 0.7: in a group of 0.7 clients and these, all get the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from broker.topic import TopicPartition


def java_order(text: str) -> bytes:
    """Return a key that sorts strings as Java does, by UTF-16 code unit."""
    # unlike in Python, characters above U+FFFF sort before U+E000..U+FFFF
    return text.encode("utf-16-be", "surrogatepass")


def thread_ids(consumer_id: str, stream_count: int) -> list[str]:
    """Return the ids of a consumer's threads, one for each stream, the same for all its topics."""
    # source: Kafka 0.7 `TopicCount.makeConsumerThreadIdsPerTopic`
    return [f"{consumer_id}-{number}" for number in range(stream_count)]


def split(partitions: Collection[TopicPartition], threads: Collection[str]) -> dict[str, range]:
    """Return the range of a topic's partitions, sorted by name as text, that each thread gets.

    Lengths differ by one at most; the first threads get the longer ranges.
    Source: Kafka 0.7 `ZookeeperConsumerConnector.rebalance`.
    """
    ranges: dict[str, range] = {}
    if not threads:
        return ranges
    each, extra = divmod(len(partitions), len(threads))
    for index, thread in enumerate(sorted(threads, key=java_order)):
        start = each * index + min(index, extra)
        ranges[thread] = range(start, start + each + (index < extra))
    return ranges


def assign(
    partitions: Collection[TopicPartition], threads: Collection[str]
) -> dict[TopicPartition, str]:
    """Return the thread for each partition of one topic; empty without threads."""
    in_order = sorted(partitions, key=lambda partition: java_order(partition.name))
    return {
        in_order[index]: thread
        for thread, indexes in split(partitions, threads).items()
        for index in indexes
    }


def assign_topics(
    partitions_of: Mapping[str, Sequence[TopicPartition]], threads_of: Mapping[str, Collection[str]]
) -> dict[TopicPartition, str]:
    """Return the thread for each partition of several topics, each topic assigned by itself."""
    assigned: dict[TopicPartition, str] = {}
    for topic, partitions in partitions_of.items():
        assigned.update(assign(partitions, threads_of.get(topic, ())))
    return assigned

"""Who reads what: the split of a topic's partitions over the consumer threads of a group.

Pure functions. All members of a group compute the same split from the same registry, so every
rule here is 0.7's to the letter: groups of its clients and ours agree without talking.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from broker.topic import TopicPartition


def java_order(text: str) -> bytes:
    """Return a key that sorts texts as Java does, by UTF-16 code unit.

    Characters outside the basic plane sort before U+E000..U+FFFF, unlike in Python.
    """
    return text.encode("utf-16-be", "surrogatepass")


def thread_ids(consumer_id: str, stream_count: int) -> list[str]:
    """Return the ids of a consumer's threads, one for each stream; all its topics share them.

    Source: Kafka 0.7 `TopicCount.makeConsumerThreadIdsPerTopic`.
    """
    return [f"{consumer_id}-{number}" for number in range(stream_count)]


def split(partitions: Collection[TopicPartition], threads: Collection[str]) -> dict[str, range]:
    """Return which stretch of the sorted partitions each thread gets.

    Args:
        partitions: of one topic.
        threads: ids of the threads that read the topic.

    Returns:
        Indexes into the partitions sorted by name as text; stretches differ by one at most, and
        the first threads get the longer ones. Without threads nobody gets anything.

    Source: Kafka 0.7 `ZookeeperConsumerConnector.rebalance`.
    """
    stretches: dict[str, range] = {}
    if not threads:
        return stretches
    each, extra = divmod(len(partitions), len(threads))
    for place, thread in enumerate(sorted(threads, key=java_order)):
        start = each * place + min(place, extra)
        stretches[thread] = range(start, start + each + (place < extra))
    return stretches


def assign(
    partitions: Collection[TopicPartition], threads: Collection[str]
) -> dict[TopicPartition, str]:
    """Return the thread that owns each partition of one topic.

    Args:
        partitions: of one topic, no two alike.
        threads: ids of the threads that read the topic, no two alike.

    Returns:
        An owner for every partition, or nothing when there are no threads. The order of the
        arguments does not matter.
    """
    in_order = sorted(partitions, key=lambda partition: java_order(partition.name))
    return {
        in_order[index]: thread
        for thread, stretch in split(partitions, threads).items()
        for index in stretch
    }


def assign_topics(
    partitions_of: Mapping[str, Sequence[TopicPartition]],
    threads_of: Mapping[str, Collection[str]],
) -> dict[TopicPartition, str]:
    """Return the thread that owns each partition, each topic split for itself.

    Args:
        partitions_of: the partitions of each topic.
        threads_of: ids of the threads that read each topic, over all members of the group.
    """
    owners: dict[TopicPartition, str] = {}
    for topic, partitions in partitions_of.items():
        owners.update(assign(partitions, threads_of.get(topic, ())))
    return owners

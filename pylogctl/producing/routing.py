"""Which partition a message goes to.

Asks the producer for a topic's partitions; knows the ways to name one of them.
"""

from __future__ import annotations

from broker.client.producer import Producer
from broker.topic import TopicPartition
from pylogctl.errors import CliError, UsageError
from pylogctl.exit_status import ExitStatus
from pylogctl.partition_list import PartitionPattern


def partition_for(
    producer: Producer, topic: str, text: str, pattern: PartitionPattern
) -> TopicPartition:
    """Return the one partition that is meant.

    Args:
        producer: knows the cluster; a topic that does not exist yet will get its partition.
        topic: the topic.
        text: as the user gave it.
        pattern: what it means; must fit one partition.

    Raises:
        UsageError: it fits several.
        CliError: it fits none.
    """
    known = producer.partitions(topic)
    fitting = [one for one in known if pattern.matches(one)]
    if not fitting and producer.is_new(topic) and pattern.first == pattern.last:
        homes = [one.home for one in known if pattern.home in (None, one.home)]
        fitting = [TopicPartition(topic, home, pattern.first) for home in homes]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(one.name for one in (fitting or known))
    if fitting:
        raise UsageError(
            f"'{text}' fits {len(fitting)} partitions of topic '{topic}'",
            hints=[f"choose one: {names}"],
        )
    raise CliError(
        ExitStatus.NOT_FOUND,
        f"topic '{topic}' has no partition '{text}'",
        hints=[f"partitions: {names}"],
        code="PARTITION_NOT_FOUND",
    )

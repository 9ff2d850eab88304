"""How many partitions each topic has on this broker, existing or not.

Owns the rule which count holds; keeps the explicit ones in the data directory.
"""

from __future__ import annotations

from broker.config import BrokerConfig
from broker.log.data_directory import DataDirectory


class PartitionCounts:
    """The partition counts of one broker; changes are up to one thread at a time.

    Args:
        config: the configured counts.
        directory: where explicit counts are kept.
    """

    def __init__(self, config: BrokerConfig, directory: DataDirectory) -> None:
        self._config = config
        self._directory = directory
        self._explicit: dict[str, int] = {}
        self._found: dict[str, int] = {}

    def load(self) -> None:
        """Read the explicit counts.

        Raises:
            ConfigError: their file is damaged.
        """
        self._explicit = self._directory.read_partition_counts()

    def of(self, topic: str) -> int:
        """Return a topic's count.

        Args:
            topic: any text.

        Returns:
            The count it was created with; else the configured one, or more if more are on disk.
        """
        explicit = self._explicit.get(topic)
        if explicit is not None:
            return explicit
        config = self._config
        configured = config.topic_partition_counts.get(topic, config.num_partitions)
        return max(configured, self._found.get(topic, 0))

    def note_partition(self, topic: str, index: int) -> None:
        """Remember that a partition exists.

        Args:
            topic: its topic.
            index: its index.
        """
        self._found[topic] = max(self._found.get(topic, 0), index + 1)

    def set_explicit(self, topic: str, count: int) -> None:
        """Give a topic its count, for good.

        Args:
            topic: a topic without one.
            count: at least 1.

        Raises:
            StorageError: it cannot be kept.
        """
        explicit = {**self._explicit, topic: count}
        self._directory.write_partition_counts(explicit)
        self._explicit = explicit

    def forget(self, topic: str) -> None:
        """Forget a topic, its explicit count and the partitions it had, until the next `load`.

        Args:
            topic: any topic.
        """
        self._found.pop(topic, None)
        self._explicit = {name: n for name, n in self._explicit.items() if name != topic}

    def save(self) -> None:
        """Keep the explicit counts, after `forget`.

        Raises:
            StorageError: they cannot be kept.
        """
        self._directory.write_partition_counts(self._explicit)

    def topics(self) -> set[str]:
        """Return the topics that have a partition or an explicit count."""
        return {*self._explicit, *list(self._found)}

    def __contains__(self, topic: str) -> bool:
        return topic in self._explicit or topic in self._found

"""The calls of a client on topics."""

from __future__ import annotations

from broker.api.access import Access


class TopicCalls(Access):
    """The calls of a client on topics."""

    def topics(self) -> list[str]:
        """Return the names of all topics."""
        with self._call():
            return self._cluster.topics()

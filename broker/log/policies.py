"""Deletion policies that are plug-ins: each decides in a thread of its own what may be deleted.

A policy that takes long, or never returns, holds up the logs that it is named for and no others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from broker.config import CLEANUP_POLICIES, BrokerConfig
from broker.errors import PluginError, StorageError
from broker.log.segment import Segment
from broker.threads import start_once
from broker.topic import TopicPartition
from broker.units import format_duration

_LONG_S = 60.0

logger = logging.getLogger(__name__)


class ExpiredSegment(NamedTuple):
    """A closed segment past retention, as a deletion policy gets it."""

    topic: str
    partition: str
    path: Path
    base_offset: int
    next_offset: int
    size: int
    modified_ms: int  # of its last message, milliseconds since 1970


class PluggedPolicy:
    """A deletion policy of another package, and why segments are kept for it."""

    def __init__(self, setting: str, name: str) -> None:
        from broker.plugins import POLICY, load  # late: few brokers have plug-ins

        self._plugin = load(POLICY, setting, name, known=CLEANUP_POLICIES)
        self._thread: threading.Thread | None = None
        self._failure: StorageError | None = None  # of the run before
        self._asked: tuple[float, Path] | None = None  # since when, and of what

    @property
    def problem(self) -> str | None:
        """Return why segments are kept; None if they are not."""
        asked = self._asked
        if asked is not None and (took_s := time.monotonic() - asked[0]) > _LONG_S:
            return (
                f"{self._plugin.title} has not returned for {format_duration(took_s)}: {asked[1]} "
                "is kept, and what else it is for; if it hangs, start the broker again"
            )
        return None if self._failure is None else str(self._failure)

    def start(self, run: Callable[[], StorageError | None]) -> None:
        """Call `run` in the policy's thread, unless it still runs; it returns what failed."""
        if self._thread is not None and self._thread.is_alive():
            logger.warning("retention waits: %s", self.problem or f"{self._plugin.title} is busy")
            return

        def noted() -> None:
            self._failure = run()

        self._thread = start_once(noted, name="retention-policy")

    def ask(self, partition: TopicPartition, segment: Segment) -> None:
        """Raise `StorageError` if a segment must stay; called in the policy's thread."""
        path = segment.path
        place = (path, segment.base_offset, segment.next_offset, segment.size, segment.time_ms)
        self._asked = (time.monotonic(), path)
        try:
            if not self._plugin(ExpiredSegment(partition.topic, partition.name, *place)):
                raise StorageError(f"{self._plugin.title} refuses: {path} is kept")
        except PluginError as error:
            raise StorageError(f"{error}: {path} is kept") from error
        finally:
            self._asked = None


def plugged_policies(config: BrokerConfig) -> dict[str, PluggedPolicy]:
    """Return the plug-ins that the broker's own settings name as policies, by name."""
    # settings of topics in ZooKeeper can name none of them: they are a choice of CLEANUP_POLICIES
    return {
        name: PluggedPolicy(setting, name)
        for name, setting in config.policy_settings.items()
        if name not in CLEANUP_POLICIES
    }

"""The last error of each route of a mirror, stored in the source's ZooKeeper.

`mirror status` is another process, perhaps on another machine, and also explains why a mirror has
ended: so errors outlive mirrors. A route belongs to the mirror that its source partition is
assigned to, so no two mirrors write the same node.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.errors import BrokerError, CoordinationError
from broker.threads import LoopThread
from broker.tools.mirror import RouteStatus
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import CliError

logger = logging.getLogger(__name__)

_MAX_ERROR_CHARS = 500
_PUBLISH_EVERY_S = 1.0


class RouteError(NamedTuple):
    """The last error of a route."""

    text: str
    time_ms: int  # since 1970
    is_failing: bool
    corrupt_count: int = 0  # corrupt messages that were left out


def load_errors(
    session: Session, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, RouteError]:
    """Return the last error of each route from `partitions` that had one."""
    nodes = {paths.mirror_error(group, one): one for one in partitions}
    values = session.get_many(nodes) if nodes else {}
    decoded = {nodes[path]: _decode(value) for path, (value, _) in values.items()}
    return {partition: error for partition, error in decoded.items() if error is not None}


@dataclass(eq=False)
class ErrorBoard:
    """Keeps the errors of one mirror's routes in ZooKeeper.

    Attributes:
        session: started, of the source.
        group: the mirror's consumer group.
    """

    session: Session
    group: str
    _published: dict[TopicPartition, RouteError | None] = field(default_factory=dict, init=False)

    def publish(self, routes: Sequence[RouteStatus]) -> None:
        """Write changed errors; if ZooKeeper does not respond, the next call writes all of them."""
        errors = {route.source: _error_of(route) for route in routes if route.error_ms is not None}
        changed = {one: e for one, e in errors.items() if self._published.get(one) != e}
        running = {route.source for route in routes if route.next_offset is not None}
        first_seen = running - errors.keys() - self._published.keys()
        before = load_errors(self.session, self.group, first_seen | changed.keys())
        written = {source: self._added(source, error, before) for source, error in changed.items()}
        # a route that works now ends the errors of an earlier mirror
        written |= {
            one: before[one]._replace(is_failing=False)
            for one in first_seen & before.keys()
            if before[one].is_failing
        }
        if written:
            self._write(written)
        self._published |= dict.fromkeys(first_seen) | changed

    def _added(
        self, source: TopicPartition, error: RouteError, before: Mapping[TopicPartition, RouteError]
    ) -> RouteError:
        """Return an error with the messages left out by all mirrors, including this one."""
        published, stored = self._published.get(source), before.get(source)
        count = error.corrupt_count - (published.corrupt_count if published else 0)
        return error._replace(corrupt_count=count + (stored.corrupt_count if stored else 0))

    def _write(self, errors: Mapping[TopicPartition, RouteError]) -> None:
        nodes = {
            paths.mirror_error(self.group, source): json.dumps(error._asdict()).encode()
            for source, error in errors.items()
        }
        existing = self.session.create_many(nodes, ephemeral=False)
        self.session.set_many({path: (nodes[path], -1) for path in existing})


@contextmanager
def published_errors(
    session: Session,
    group: str,
    routes: Callable[[], Sequence[RouteStatus]],
    chore: Callable[[], object],
) -> Iterator[None]:
    """Publish errors of `routes` by a thread until the end of a block; see `ErrorBoard`.

    The thread calls `chore` each time, too.
    """
    board = ErrorBoard(session, group)
    is_over = threading.Event()

    def publish() -> None:
        try:
            board.publish(routes())
        except CoordinationError as error:
            logger.warning("cannot write down what went wrong: %s", error)

    def work() -> None:
        while not is_over.wait(_PUBLISH_EVERY_S):
            publish()
            try:
                chore()
            except (BrokerError, CliError) as error:
                logger.warning("cannot look for a mirror in the other direction: %s", error)

    thread = LoopThread(work, name="mirror-errors")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        publish()


def _error_of(route: RouteStatus) -> RouteError:
    return RouteError(
        route.error[:_MAX_ERROR_CHARS], route.error_ms or 0, route.is_failing, route.corrupt_count
    )


def _decode(value: bytes) -> RouteError | None:
    try:
        fields = json.loads(value)
        return RouteError(
            str(fields["text"]),
            int(fields["time_ms"]),
            bool(fields["is_failing"]),
            int(fields.get("corrupt_count", 0)),
        )
    except (ValueError, KeyError, TypeError):
        return None

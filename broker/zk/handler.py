"""What kazoo waits and works with.

Its own makes an epoll object for each wait, three for a response, and a thread that fails ends.
"""

from __future__ import annotations

import math
import select
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from broker.threads import LoopThread


class Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """The threads and waits of one kazoo client."""

    def spawn(self, func: Callable[..., object], *args: object, **kwargs: object) -> LoopThread:
        """Start a thread; kazoo's loop begins with a new connection if it is called again."""
        thread = LoopThread(partial(func, *args, **kwargs), name="zookeeper")
        thread.start()
        return thread

    def select(
        self,
        readers: Sequence[Any],
        writers: Sequence[Any],
        _errors: Sequence[Any],
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Return who is ready, like `select.select`; descriptors can have any number."""
        poll = select.poll()
        for sockets, events in (writers, select.POLLOUT), (readers, select.POLLIN):
            for one in sockets:
                if one.fileno() < 0:
                    raise OSError("the connection to ZooKeeper is closed")
                poll.register(one, events)
        ready = {fd for fd, _ in poll.poll(None if timeout is None else math.ceil(timeout * 1000))}
        return (
            [one for one in readers if one.fileno() in ready],
            [one for one in writers if one.fileno() in ready],
            [],
        )

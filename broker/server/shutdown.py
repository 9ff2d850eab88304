"""What a shutdown has done so far, step by step, and who is told in the end.

Knows no order of steps: that is the lifecycle's.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from broker.clock import Clock
from broker.errors import BrokerError
from broker.server.purgatory import Parked

logger = logging.getLogger(__name__)

_LAST_ANSWER_TIMEOUT_S = 5.0


class ShutdownSteps:
    """The steps of one shutdown, with what came of each and how long it took.

    Args:
        clock: measures them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps: list[dict[str, Any]] = []

    def run(self, name: str, action: Callable[[], str | None]) -> None:
        """Take a step; if it fails, note why and let the next one follow.

        What a shutdown can still make safe, it makes safe.

        Args:
            name: a few words for people.
            action: does it; what it returns is worth a note.
        """
        started_s = self._clock.monotonic_s()
        is_done = True
        try:
            note = action()
        except BrokerError as error:
            is_done, note = False, str(error)
            logger.error("shutdown step '%s' failed: %s", name, error)
        seconds = round(self._clock.monotonic_s() - started_s, 3)
        self._steps.append({"step": name, "seconds": seconds, "done": is_done, "note": note})
        logger.info("shutdown: %s (%.3f s)", name, seconds)

    def document(self) -> bytes:
        """Return the steps taken so far as a JSON array."""
        return json.dumps(self._steps).encode()


class Lingering(NamedTuple):
    """The socket of a client that asked for the shutdown, after the end of its processor.

    `parked` is the request if its answer is what comes next on the socket, else None.
    """

    sock: socket.socket
    parked: Parked | None

    def end(self) -> None:
        """Answer, if that is possible, and close the socket."""
        with self.sock, suppress(OSError):  # the client may be gone
            if self.parked is not None and self.parked.attempt(is_last=True):
                self.sock.settimeout(_LAST_ANSWER_TIMEOUT_S)
                self.sock.sendall(self.parked.answer.in_memory())

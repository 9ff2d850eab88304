"""What becomes of requests: the outcomes of handlers, as the network takes them.

Nothing here knows what a request is; a protocol's handlers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from broker.config import BrokerConfig
from broker.errors import BrokerError
from broker.protocol.framing import Frames
from broker.server.requests.client import ConnectedClient
from broker.server.requests.purgatory import RequestGroup, Response


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """The connection must be closed."""

    reason: BrokerError
    is_bad_frame: bool  # for bytes that are no request, not for a refused one


@dataclass(frozen=True, slots=True)
class Offload:
    """A request above the validation budget: a worker handles it, before any that follow."""

    frames: Frames


@dataclass(frozen=True, slots=True)
class YieldTurn:
    """The turn's time or validation budget is used up; the rest is handled in the next turn."""


@dataclass(frozen=True, slots=True)
class Work:
    """A request that another thread handles; `Handlers.finish` returns its outcome.

    `future` is done with a list of responses, or with the error to refuse the request for.
    """

    future: Future[Any]
    group: RequestGroup
    correlation_id: int | None  # None for 0.7's
    arrived_s: float
    started_s: float


Outcome = Response | CloseConnection | Offload | YieldTurn | Work


class Handlers(Protocol):
    """Handles the frames of one thread's connections, in one protocol."""

    def handle(
        self, frames: Frames, client: ConnectedClient, arrived_s: float
    ) -> Iterator[tuple[int, Outcome]]:
        """Handle frames in order, each after the outcome of the one before has been taken.

        For each outcome yield how many frames are handled with it. A `CloseConnection` comes last,
        for the request that caused it and all behind it. After an `Offload`, a `Work` or a
        `YieldTurn`, where the caller stops, the rest is for another call. `arrived_s`: when the
        frames had arrived, by `time.perf_counter`.
        """

    def handle_all(
        self, frames: Frames, client: ConnectedClient, arrived_s: float
    ) -> Sequence[Outcome]:
        """Return the outcomes of frames that a worker handles."""

    def finish(self, work: Work) -> Sequence[Outcome]:
        """Return the outcome of a request that another thread has handled."""

    def reconfigure(self, config: BrokerConfig) -> None:
        """Use other limits from now on; callable from any thread."""

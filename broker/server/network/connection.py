"""One client's connection: what it may do next, and its requests and responses in between.

Frames come from its `FrameReceiver`, responses leave by its `ResponseQueue`; this module does not
know their content. A connection belongs to one processor and is used on its thread only.
`connection_state` has the table of its states.
"""

from __future__ import annotations

import math
import selectors
import socket
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.clock import Clock
from broker.endpoints import PLAIN_LISTENER
from broker.errors import BrokerError
from broker.protocol.framing import Frames
from broker.server.network.connection_state import ConnectionEvent, ConnectionState, next_state
from broker.server.network.frame_receiver import STALL_S, FrameReceiver, without_traceback
from broker.server.network.principal_quotas import PrincipalQuotas
from broker.server.network.quotas import ConnectionCount, PeerLog, QueuedBytes
from broker.server.network.response_queue import ResponseQueue
from broker.server.requests.client import ConnectedClient
from broker.server.requests.purgatory import DelayedResponse, Response, Watched

if TYPE_CHECKING:
    from broker.security.tls import ServerTls
    from broker.server.network.tls_transport import TlsTransport

HANDSHAKE_S = 10.0
_FEW_BYTES = 16 << 10
_FEW_FRAMES = 32
"""Connections that send at most this much per read may be muted while a flush is pending."""
_LAST_RESPONSE_TIMEOUT_S = 5.0
_HALF_CLOSED_S = 1.0
"""How long to wait at least for a client that has closed its half, and may have left."""


class Listener(NamedTuple):
    """What a connection was accepted by; `tls` is None for a plain one.

    One with a reserve is for brokers, or for this machine: it has room when others are full. So
    have registered brokers at every listener.
    """

    name: str
    tls: ServerTls | None = None
    has_reserve: bool = False


PLAIN = Listener(PLAIN_LISTENER)


class LingeringClient(NamedTuple):
    """The socket of a client that asked for the shutdown, after the end of its processor."""

    sock: socket.socket
    delayed: DelayedResponse | None  # the response to it, if that is next on the socket
    tls: TlsTransport | None = None

    def end(self) -> None:
        """Send the response, if possible, and close the socket."""
        with self.sock, suppress(OSError):  # the client may be gone
            if self.delayed is not None and self.delayed.attempt(is_last=True):
                self.sock.settimeout(_LAST_RESPONSE_TIMEOUT_S)
                data = self.delayed.in_memory()
                self.sock.sendall(data if self.tls is None else self.tls.last_bytes(data))


@dataclass(eq=False, kw_only=True, slots=True)
class NetworkParts:
    """What the connections of all processors share."""

    clock: Clock
    peer_log: PeerLog  # why connections are closed
    queued_bytes: QueuedBytes  # the budget for large frames
    quotas: PrincipalQuotas
    worker: Executor  # for requests that take too long
    max_frame_bytes: int
    max_idle_s: float  # how long a connection may be without a whole request
    connection_count: ConnectionCount
    make_client: Callable[..., ConnectedClient] = ConnectedClient


class ServerConnection:
    """The state of one client's socket, which is connected and non-blocking.

    `on_granted` is called, from any thread, when `grant_buffer` can continue after a wait.
    """

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        network: NetworkParts,
        on_granted: Callable[[ServerConnection], None],
        listener: str = PLAIN_LISTENER,
        tls: TlsTransport | None = None,
    ) -> None:
        clock = network.clock
        self.sock = sock
        self.tls = tls
        self._transport = tls or sock
        self._is_identified = tls is None
        self._began_s = clock.monotonic_s()
        self.peer = peer
        self._clock = clock
        self.state = ConnectionState.READING
        self._network = network
        self.client = network.make_client(peer, listener=listener, port=_port_of(sock))
        self.receiver = FrameReceiver(
            self._transport,
            max_frame_bytes=network.max_frame_bytes,
            queued_bytes=network.queued_bytes,
            on_granted=partial(on_granted, self),
            check_start=self.client.check_start,
        )
        self.responses = ResponseQueue()
        self._work: Future[Any] | None = None
        """A worker's task that only serves a response: it is cancelled if the client leaves."""
        self.arrived_s = 0.0
        """When the frames that are handled now, or held, arrived, by `time.perf_counter`."""
        self.turn_end_s = 0.0
        """The processor's measure of the work done for this connection."""
        self.fault: Exception | None = None  # why no more requests are received
        self.half_closed_s: float | None = None
        """Since when the client sends no more, by the clock; it may have left altogether."""
        self.throttled_until_s = 0.0  # by the clock; 0 if it is not throttled
        self.registered_events = 0  # that the processor's selector waits for
        self.is_watched = False  # by `HangUps`
        self._muted_by: Response | None = None
        self._flushed_logs: set[Watched] = set()  # whose flush this client waited for last
        self._last_active_s = self._began_s
        self.last_unanswered_s = -math.inf

    @property
    def interest(self) -> int:
        """Return the selector events to wait for; 0 for none."""
        events = selectors.EVENT_READ if self.state is ConnectionState.READING else 0
        if self.responses.has_unsent or (self.tls is not None and self.tls.has_unsent):
            return events | selectors.EVENT_WRITE  # `has_unsent`, without a call more each turn
        return events

    @property
    def has_unsent(self) -> bool:
        """Return whether bytes for the client wait for room in the socket."""
        return self.responses.has_unsent or (self.tls is not None and self.tls.has_unsent)

    def _take(self, event: ConnectionEvent) -> None:
        self.state = next_state(self.state, event)

    def _update(self) -> None:
        """Move to the state for what the connection has to wait for now."""
        if self.state is not ConnectionState.OFFLOADED:
            self.receiver.release_handled()
        has_held = bool(self.receiver.held)
        is_blocked = self.responses.is_full or (has_held and self.responses.has_unsent)
        if self.state is ConnectionState.BLOCKED and not is_blocked:
            self._take(ConnectionEvent.UNBLOCK)
        elif self.state is ConnectionState.MUTED and not self._is_flush_pending:
            self._take(ConnectionEvent.UNMUTE)
        elif self.state is ConnectionState.THROTTLED and not self.throttled_until_s:
            self._take(ConnectionEvent.RESUME)
        if self.state is not ConnectionState.READING:
            return
        if is_blocked:
            self._take(ConnectionEvent.BLOCK)
        elif self.throttled_until_s and not self.receiver.has_begun_large:
            self._take(ConnectionEvent.THROTTLE)  # others may wait for the room of a large frame
        elif has_held:
            return  # for the processor to handle in the next turn
        elif self.fault is not None:
            self._take(ConnectionEvent.END)
        elif self.receiver.is_awaiting_buffer:
            self._take(ConnectionEvent.AWAIT_BUFFER)
        elif self._muted_by is not None and self._is_flush_pending:
            self._take(ConnectionEvent.MUTE)

    def receive(self, shared: bytearray) -> Frames | None:
        """Read once from the socket; return complete frames, None if there are none.

        `shared` is the processor's buffer; small frames are in it, valid until the next call with
        it. If there are very many frames, the last ones are held. `fault` is set after an end
        of stream, an error or a bad frame size; the frames before it are returned all the same.
        """
        frames = self.receiver.receive(shared)
        if not self._is_identified:
            self._identify()
        if frames is not None:
            self._last_active_s = self._clock.monotonic_s()
        if self.receiver.fault is not None:
            self.fault = self.receiver.fault
            if isinstance(self.fault, EOFError):
                self.note_half_closed()
        return frames

    def _identify(self) -> None:
        """Note who the client is, once it has shown its certificate."""
        if self.tls is None or not self.tls.is_open:
            return
        self._is_identified = True
        self.client = self._network.make_client(
            self.peer,
            listener=self.client.listener,
            channel=self.tls.channel,
            certified=self.tls.principal,
            port=self.client.port,
        )
        self.receiver.check_start = self.client.check_start

    def note_half_closed(self) -> None:
        """Note that the client sends nothing after the bytes that the socket holds now."""
        if self.half_closed_s is None:
            self.half_closed_s = self._clock.monotonic_s()

    def fail(self, reason: Exception) -> None:
        """Handle and receive no more requests; responses to earlier ones are still sent."""
        self.fault = without_traceback(reason)
        self.receiver.drop_held()

    def offload(self, frames: Frames | None, work: Future[Any] | None = None) -> None:
        """Note that a worker handles a request, and hold the frames after it."""
        self._take(ConnectionEvent.OFFLOAD)
        self._work = work
        if frames is not None:
            self.receiver.hold(frames)

    def work_done(self) -> None:
        """Note that the worker is done; also after the connection is closed."""
        self._take(ConnectionEvent.WORK_DONE)
        self._work = None
        self.receiver.release_handled()
        self._last_active_s = self._clock.monotonic_s()

    def yield_turn(self, frames: Frames | None = None) -> None:
        """Leave frames, and those that are held already, to the next turn."""
        self._take(ConnectionEvent.YIELD)
        if frames is not None:
            self.receiver.hold(frames)

    def grant_buffer(self) -> None:
        """Continue with a large frame that waited for the budget."""
        self.receiver.resume()
        if (
            self.state is ConnectionState.WAITING_FOR_BUFFER
            and not self.receiver.is_awaiting_buffer
        ):
            self._take(ConnectionEvent.BUFFER_GRANTED)
        self._last_active_s = self._clock.monotonic_s()

    def mute_behind_flush(self, frames: Frames) -> None:
        """Mute the connection until a pending flush is complete, if the client sends little.

        Its next requests could neither have a response before the flush nor be part of it. Handled
        as they arrive, each would cost a turn, an append and a wake-up. Clients that publish to
        several logs are not muted, as those logs are flushed side by side; nor is one that has
        begun a large frame, as others may wait for the budget that it holds.
        """
        delayed = self.responses.delayed
        if max(len(frames), len(delayed)) > _FEW_FRAMES:
            return
        if self.receiver.received_bytes > _FEW_BYTES or self.receiver.has_begun_large:
            return
        pending = [one for one in delayed if one.awaits_flush]
        if not pending:
            return
        logs: set[Watched] = {log for one in pending for log in one.logs}
        if len(logs) == 1 and logs == self._flushed_logs:
            self._muted_by = pending[-1]
        self._flushed_logs = logs

    @property
    def _is_flush_pending(self) -> bool:
        return self._muted_by is not None and self._muted_by.parts is None

    def unmute(self) -> bool:
        """Unmute the connection if the awaited flush is complete; return True if it was muted."""
        if self._muted_by is None or self._is_flush_pending:
            return False
        self._muted_by = None
        if self.state is ConnectionState.MUTED:
            self._take(ConnectionEvent.UNMUTE)
        return True

    def throttle(self, until_s: float) -> None:
        """Receive no more requests until a time by the clock; 0 ends it."""
        self.throttled_until_s = until_s
        self._update()

    def take_held(self) -> Frames | None:
        """Begin the turn after `yield_turn`; return held frames that can be handled in it."""
        self._take(ConnectionEvent.NEXT_TURN)
        if not self.may_take_held:
            return None
        frames = self.receiver.take_held()
        if self.receiver.fault is not None:
            self.fault = self.receiver.fault
        return frames

    @property
    def may_take_held(self) -> bool:
        """Return whether held frames, or bytes that the selector cannot know of, can be handled."""
        self._update()
        if self.state is not ConnectionState.READING:
            return False
        return bool(self.receiver.held) or (self.tls is not None and self.tls.has_decrypted)

    @property
    def may_receive(self) -> bool:
        """Return whether more can be received now."""
        self._update()
        return self.state is ConnectionState.READING and not self.receiver.held

    def send(self) -> int:
        """Send complete responses; return the bytes sent. `fault` is set if the client is gone."""
        before = self.responses.sent_bytes
        try:
            if self.tls is not None:
                self.tls.flush()
            self.responses.send(self._transport)
        except OSError as error:
            self.fault = without_traceback(error)
        sent = self.responses.sent_bytes - before
        if sent:
            self._last_active_s = self._clock.monotonic_s()
        return sent

    @property
    def is_finished(self) -> bool:
        """Return whether no more requests are received and all responses are sent."""
        if not isinstance(self.fault, (BrokerError, EOFError)):
            return self.fault is not None
        # after a refusal the responses to earlier requests are sent; after a closed half, all
        has_held = bool(self.receiver.held)
        is_unsent = self.tls is not None and self.tls.has_unsent
        return not (
            self.responses or has_held or is_unsent or self.state is ConnectionState.OFFLOADED
        )

    def note_unanswered(self) -> None:
        """Note that the requests received last get no response."""
        self.last_unanswered_s = self._last_active_s

    @property
    def has_sent_little_unanswered(self) -> bool:
        """Return whether what was received last is little, and gets no response."""
        return (
            self.last_unanswered_s == self._last_active_s
            and self.receiver.received_bytes <= _FEW_BYTES
        )

    @property
    def awaits_acknowledgements(self) -> bool:
        """Return whether the client publishes, and all its requests get responses."""
        return self.client.has_published and self.last_unanswered_s == -math.inf

    def last_response(self, reason: str) -> bytes | None:
        """Return what tells the client why the broker stops; None if nothing does."""
        return self.client.last_response(reason) if self.last_unanswered_s == -math.inf else None

    @property
    def could_be_deserted(self) -> bool:
        """Return whether the broker does not read now, and so would miss that the client leaves."""
        if self.half_closed_s is not None or self.responses.has_lingering:
            return False
        if self.state is ConnectionState.OFFLOADED:
            return self._work is not None
        awaited = self.responses.awaited
        return (
            self.state
            in (
                ConnectionState.BLOCKED,
                ConnectionState.THROTTLED,
                ConnectionState.YIELDED,
                ConnectionState.CLOSING,
            )
            and awaited is not None
            and not awaited.awaits_flush  # that comes soon
        )

    def is_deserted(self, now_s: float) -> bool:
        """Return whether a client that has closed its half has waited long: it may have left."""
        if self.half_closed_s is None or (self._work is None and self.responses.awaited is None):
            return False
        return now_s - max(self.half_closed_s, self._last_active_s) > _HALF_CLOSED_S

    def is_unused_since(self, since_s: float) -> bool:
        """Return whether there was no whole request since then, nor before."""
        return self._last_active_s == self._began_s <= since_s

    def reason_to_close(self, now_s: float, *, max_idle_s: float) -> str:
        """Return why the connection should be closed for inactivity; empty if it should not."""
        if not self._is_identified and self._began_s < now_s - HANDSHAKE_S:
            return f"its TLS handshake was not complete within {HANDSHAKE_S:g}s"
        is_kept_waiting = self.state in (
            ConnectionState.OFFLOADED,
            ConnectionState.THROTTLED,
            ConnectionState.WAITING_FOR_BUFFER,
        ) or (
            self.state in (ConnectionState.BLOCKED, ConnectionState.YIELDED)
            and not self.responses.has_unsent
        )
        has_stalled = self.receiver.has_stalled(now_s, is_kept_waiting=is_kept_waiting)
        if has_stalled and self._network.queued_bytes.waiting_count:
            return f"too little of a large request came in {STALL_S:g}s, and others need the room"
        if self.state is not ConnectionState.OFFLOADED and (
            reason := self.client.authentication.reason_to_close()
        ):
            return reason
        is_waited_for = self.responses.delayed or self.receiver.is_awaiting_buffer
        if is_waited_for or self.state in (ConnectionState.OFFLOADED, ConnectionState.THROTTLED):
            return ""
        is_idle = self._last_active_s < now_s - max_idle_s
        return "no whole request for connections.max.idle.ms" if is_idle else ""

    def close(self) -> list[DelayedResponse]:
        """Close the socket, release the connection's resources, return its delayed responses."""
        # else a worker has the frame, and `work_done` releases its budget
        if self.state is not ConnectionState.OFFLOADED:
            self.receiver.release_handled()
        self._take(ConnectionEvent.CLOSE)
        delayed = list(self.responses.delayed)
        for one in delayed:
            if not one.lingers:  # which is completed after this
                one.forget()
        self.responses.clear()
        self._muted_by = None
        if self._work is not None:
            self._work.cancel()
        self.client.on_close()
        self.receiver.close()
        if self.tls is not None:
            self.tls.end()
        self.sock.close()
        return delayed

    def linger(self) -> LingeringClient | None:
        """Return the client if it waits for the end of the broker; call this before `close`."""
        if not self.responses.has_lingering or self.fault is not None:
            return None
        tls, self.tls = self.tls, None
        return LingeringClient(self.sock.dup(), self.responses.awaited, tls)


def _port_of(sock: socket.socket) -> int:
    """Return the client's port; 0 if it is gone, or came by a pair of sockets."""
    try:
        return int(sock.getpeername()[1])
    except (OSError, IndexError, ValueError):
        return 0

"""The states of a connection and the events that change them; knows no socket.

A connection receives requests in one state only, READING. Every other state names what it waits
for before it receives more:

    ==================  ==================  ==================================================
    state               event               next state
    ==================  ==================  ==================================================
    READING             MUTE                MUTED
    READING             OFFLOAD             OFFLOADED
    READING             THROTTLE            THROTTLED
    READING             YIELD               YIELDED
    READING             BLOCK               BLOCKED
    READING             AWAIT_BUFFER        WAITING_FOR_BUFFER
    READING             END                 CLOSING
    READING             CLOSE               CLOSED
    MUTED               UNMUTE              READING
    MUTED               CLOSE               CLOSED
    THROTTLED           RESUME              READING
    THROTTLED           CLOSE               CLOSED
    OFFLOADED           WORK_DONE           READING
    OFFLOADED           CLOSE               CLOSED
    YIELDED             NEXT_TURN           READING
    YIELDED             CLOSE               CLOSED
    BLOCKED             UNBLOCK             READING
    BLOCKED             CLOSE               CLOSED
    WAITING_FOR_BUFFER  BUFFER_GRANTED      READING
    WAITING_FOR_BUFFER  CLOSE               CLOSED
    CLOSING             CLOSE               CLOSED
    CLOSED              WORK_DONE           CLOSED
    ==================  ==================  ==================================================

Whatever a connection waited for, it returns to READING, and from there at once to the next state
if it must wait for something else too: a large frame may be short of buffer behind a request that
is offloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class ConnectionState(Enum):
    """What a connection waits for."""

    READING = auto()  # requests of the client
    MUTED = auto()
    """A flush that its last publish waits for.

    The broker does not read from the socket, though it could: the client's next requests stay in
    the socket until the flush is complete, and are then appended with one write and one flush
    instead of one each. Responses are sent all the same.
    """
    THROTTLED = auto()
    """The time at which its client may go on, as its principal has used more than its quota.

    Responses are sent all the same, as an answer that comes late is taken for a dead broker.
    """
    OFFLOADED = auto()  # a worker that handles one of its requests, as that takes long
    YIELDED = auto()  # its next turn: this one is used up, and others are served first
    BLOCKED = auto()  # responses to be completed and taken before more requests are handled
    WAITING_FOR_BUFFER = auto()  # room for a large frame in the budget shared by all connections
    CLOSING = auto()  # the client taking its last responses; no more requests are received
    CLOSED = auto()  # nothing: the socket is closed


class ConnectionEvent(Enum):
    """What changes the state of a connection."""

    MUTE = auto()
    UNMUTE = auto()
    THROTTLE = auto()
    RESUME = auto()
    OFFLOAD = auto()
    WORK_DONE = auto()
    YIELD = auto()
    NEXT_TURN = auto()
    BLOCK = auto()
    UNBLOCK = auto()
    AWAIT_BUFFER = auto()
    BUFFER_GRANTED = auto()
    END = auto()  # the client closed its half, the socket failed, or a request was refused
    CLOSE = auto()


TRANSITIONS: Mapping[ConnectionState, Mapping[ConnectionEvent, ConnectionState]] = {
    ConnectionState.READING: {
        ConnectionEvent.MUTE: ConnectionState.MUTED,
        ConnectionEvent.THROTTLE: ConnectionState.THROTTLED,
        ConnectionEvent.OFFLOAD: ConnectionState.OFFLOADED,
        ConnectionEvent.YIELD: ConnectionState.YIELDED,
        ConnectionEvent.BLOCK: ConnectionState.BLOCKED,
        ConnectionEvent.AWAIT_BUFFER: ConnectionState.WAITING_FOR_BUFFER,
        ConnectionEvent.END: ConnectionState.CLOSING,
        ConnectionEvent.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.MUTED: {
        ConnectionEvent.UNMUTE: ConnectionState.READING,
        ConnectionEvent.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.THROTTLED: {
        ConnectionEvent.RESUME: ConnectionState.READING,
        ConnectionEvent.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.OFFLOADED: {
        ConnectionEvent.WORK_DONE: ConnectionState.READING,
        ConnectionEvent.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.YIELDED: {
        ConnectionEvent.NEXT_TURN: ConnectionState.READING,
        ConnectionEvent.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.BLOCKED: {
        ConnectionEvent.UNBLOCK: ConnectionState.READING,
        ConnectionEvent.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.WAITING_FOR_BUFFER: {
        ConnectionEvent.BUFFER_GRANTED: ConnectionState.READING,
        ConnectionEvent.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.CLOSING: {ConnectionEvent.CLOSE: ConnectionState.CLOSED},
    ConnectionState.CLOSED: {ConnectionEvent.WORK_DONE: ConnectionState.CLOSED},
}


class IllegalTransitionError(Exception):
    """An event came in a state that does not allow it: a bug of the broker."""


def next_state(state: ConnectionState, event: ConnectionEvent) -> ConnectionState:
    """Return the state that an event leads to."""
    found = TRANSITIONS[state].get(event)
    if found is None:
        raise IllegalTransitionError(f"{event.name} is not allowed in state {state.name}")
    return found

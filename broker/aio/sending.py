"""How the engine of producers reaches brokers in an event loop, where nothing may wait.

A thread opens a connection, as for producers with threads; then the loop takes it over. A broker
that is not connected to has no room for sets until it is, or until the attempt has failed.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from broker import deadlines, errors
from broker.client.connection import Connection
from broker.producer.broker_connection import BrokerConnection
from broker.producer.broker_sender import BrokerSender
from broker.producer.parts import Parts
from broker.protocol.client_connection import MAX_RESPONSE_BYTES
from broker.protocol.client_requests import Acks
from broker.protocol.primitives import INT32, Buffer
from broker.threads import start_once

logger = logging.getLogger(__name__)

_READ_BYTES = 64 << 10
# up to this size, copying the parts into one buffer is cheaper than a system call for each
_JOINED_BYTES = 64 << 10
_CLOSE_S = 1.0  # for bytes that are still to be sent
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class LoopConnection(Connection):
    """An open connection, taken over by the event loop: many requests in flight, no call waits.

    `send` only buffers, and `receive` takes what has come. `wake` is called when there is something
    to receive, or room to send.
    """

    def __init__(
        self, opened: Connection, wake: Callable[[], object], *, has_responses: bool
    ) -> None:
        super().__init__(
            opened.address,
            timeout_s=opened.timeout_s,
            client_id=opened.client_id,
            security=opened.security,
        )
        self._protocol, self._tls = opened._protocol, opened._tls
        self._wake = wake
        self._has_responses = has_responses and self._protocol.hello is not None
        self._expected_count = 0  # responses that have not come
        self._responses: deque[memoryview] = deque()
        self._end: errors.BrokerError | None = None  # why it was lost, until it is raised
        self._unsent: deque[Buffer] = deque()
        self._unsent_bytes = 0
        self._is_blocked = False  # the socket takes no more now
        self._is_closing = False
        self._loop = asyncio.get_running_loop()
        self._stuck: asyncio.TimerHandle | None = None  # ends a connection that stays blocked
        self._ended = self._loop.create_future()
        self._socket, opened._socket = opened._socket, None
        self._ahead = opened._ahead
        if self._socket is not None:
            self._socket.setblocking(False)
            self._loop.add_reader(self._socket, self._read)

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open."""
        return self._socket is not None and not self._is_closing

    @property
    def is_writable(self) -> bool:
        """Return whether the broker reads what it is sent."""
        return not self._is_blocked

    @property
    def has_unsent(self) -> bool:
        """Return whether the socket has not taken all that was sent."""
        return self._socket is not None and bool(self._unsent)

    def send(self, *parts: Buffer) -> None:
        """Send a frame, given in parts; an error if the connection is lost."""
        if not self.is_open:
            raise self._end or self._closed_error()
        self._expected_count += self._has_responses
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.extend(parts)
        self._unsent_bytes += sum(map(len, parts))
        if self._unsent_bytes >= _JOINED_BYTES:
            self._flush()

    def has_received(self, within_s: float = 0.0) -> bool:
        """Return whether `receive` gives a response, or says why there is none."""
        return bool(self._responses) or self._end is not None

    def receive(self, max_bytes: int = MAX_RESPONSE_BYTES) -> memoryview:
        """Return the next response, which has come."""
        if self._responses:
            return self._responses.popleft()
        end, self._end = self._end, None
        raise end or self._closed_error()

    def _closed_error(self) -> errors.BrokerUnreachableError:
        return errors.BrokerUnreachableError(f"the connection to {self.name} is closed")

    def close(self) -> None:
        """Close the connection once what is buffered is sent; responses are dropped."""
        self._is_closing = True
        self._flush()
        self._responses.clear()
        self._end = None
        if self._unsent:
            self._loop.call_later(_CLOSE_S, self._shut)
        else:
            self._shut()

    async def closed(self) -> None:
        """Wait until a closed connection has ended."""
        await asyncio.wait([self._ended])  # which a cancelled wait does not cancel

    def _flush(self) -> None:
        """Send what the socket takes now."""
        sock = self._socket
        if sock is None or not self._unsent:
            return
        if self._unsent_bytes < _JOINED_BYTES:
            self._unsent = deque([b"".join(self._unsent)])
        try:
            while self._unsent:
                part = self._unsent[0]
                sent = sock.send(part)
                self._unsent_bytes -= sent
                if sent == len(part):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = memoryview(part)[sent:]
        except _LATER:
            self._block()
        except OSError as error:
            self._lose_by(error, "while sending")
        else:
            if self._is_blocked:
                self._unblock()
                self._wake()
            if self._is_closing:
                self._shut()

    def _block(self) -> None:
        """Go on once the socket takes more; the time until then is limited."""
        if self._is_blocked:
            self._unblock()
        assert self._socket is not None
        self._is_blocked = True
        self._loop.add_writer(self._socket, self._flush)
        late = self._protocol.timed_out(self.timeout_s, "while sending")
        self._stuck = self._loop.call_later(self.timeout_s, self._lose, late)

    def _unblock(self) -> None:
        assert self._socket is not None and self._stuck is not None
        self._is_blocked = False
        self._loop.remove_writer(self._socket)
        self._stuck.cancel()

    def _read(self) -> None:
        assert self._socket is not None
        try:
            while part := self._socket.recv(_READ_BYTES):
                self._ahead = memoryview(b"".join((self._ahead, part)) if self._ahead else part)
                if self._tls is None:
                    break  # if there is more, the loop calls again
            else:
                raise ConnectionResetError("it closed the connection")
        except _LATER:
            pass
        except OSError as error:
            self._lose_by(error, "while waiting for a response")
            return
        self._take_frames()

    def _take_frames(self) -> None:
        data, start = self._ahead, 0
        try:
            while len(data) - start >= INT32.size:
                body = start + INT32.size
                end = body + self._protocol.frame_bytes(data[start:body])
                if end > len(data):
                    break
                if not self._expected_count:
                    self._protocol.decode(data[body:end])  # the last one of a broker that stops
                    raise errors.ProtocolError(
                        f"{self.name} sent a response that no request is for"
                    )
                self._expected_count -= 1
                self._responses.append(data[body:end])
                start = end
        except (errors.ProtocolError, errors.BrokerStoppedError, errors.TlsError) as error:
            self._lose(error)
            return
        self._ahead = data[start:]
        if self._responses:
            self._wake()

    def _lose_by(self, error: OSError, when: str) -> None:
        """End the connection after an error, behind the responses that have come."""
        assert self._socket is not None
        self._ahead, end = self._take_received(self._socket)
        self._take_frames()
        if self._socket is not None:
            self._lose(self._lost(end or error, when))

    def _lose(self, error: errors.BrokerError) -> None:
        self._shut()
        self._end = error
        self._wake()

    def _shut(self) -> None:
        if self._socket is not None:
            if self._is_blocked:
                self._unblock()
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            self._unsent.clear()
            self._ended.set_result(None)


class LoopBroker(BrokerConnection):
    """The connection to one broker, opened by a thread when it is first wanted."""

    def __init__(self, parts: Parts, broker_id: int, wake: Callable[[], object]) -> None:
        super().__init__(parts, broker_id)
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._has_responses = parts.settings.acks is not Acks.NONE
        self._is_connecting = False
        self._is_opened = False  # and not taken over
        self._failure: errors.BrokerError | None = None  # of the last attempt, until it is raised
        self.in_loop: LoopConnection | None = None

    def is_ready(self) -> bool:
        """Return whether a set may be sent, or `open` says why not; else connect."""
        if self.in_loop is not None and self.in_loop.is_open:
            return self.in_loop.is_writable
        if self._failure is not None:
            return True
        if not self._is_connecting:
            self._is_connecting = True
            start_once(self._connect, name=f"producer-connect-{self.broker_id}")
        return False

    def open(self) -> Connection:
        """Return the connection, which `is_ready` has found; else why there is none."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return self.current

    @property
    def current(self) -> Connection:
        """Return the connection in the loop, which may be lost."""
        return super().current if self.in_loop is None else self.in_loop

    def _connect(self) -> None:
        """Open the connection, in a thread of its own."""
        failure: errors.BrokerError | None = None
        try:
            with deadlines.Limit(self.parts.settings.delivery_timeout_s):
                super().open().connect()  # one to a broker of 0.7 may be closed
            self._is_opened = True
        except errors.BrokerError as error:
            failure = error
            if not self._is_aborted:  # one that hangs is absent, too: others get what has no key
                self.parts.partitions.note_presence(self.broker_id, False)
        except Exception as error:  # a bug costs the messages, not the producer
            logger.exception("failure while connecting to broker %d", self.broker_id)
            failure = errors.BrokerError(f"failure while connecting: {error!r}")
        if self._is_aborted:
            super().close()
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._take_over, failure)

    def _take_over(self, failure: errors.BrokerError | None) -> None:
        self._is_connecting = self._is_opened = False
        self._failure = failure
        if failure is None and not self._is_aborted:
            self.in_loop = LoopConnection(
                super().current, self._wake, has_responses=self._has_responses
            )
        self._wake()

    def abort(self) -> None:
        """Give up an attempt to connect; the thread closes what it opens from now on."""
        super().abort()
        if self._is_opened:
            super().close()

    def close(self) -> None:
        """Close the connection; an attempt to make one goes on."""
        if self.in_loop is not None:
            self.in_loop.close()


class LoopSender(BrokerSender):
    """Sends message sets to one broker once it is connected to."""

    notes_ends_07 = False
    connection: LoopBroker

    def has_room(self, size_bytes: int) -> bool:
        """Return whether a set may be sent now."""
        if self.must_reconnect and self.is_idle:
            self.connection.close()
            self.must_reconnect = False
        return self.connection.is_ready() and super().has_room(size_bytes)

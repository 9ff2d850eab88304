"""Connections taken over by an event loop: many requests in flight, lost and slow brokers."""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from broker.aio.sending import LoopConnection
from broker.client.connection import Connection
from broker.errors import (
    BrokerStoppedError,
    BrokerUnreachableError,
    ProtocolError,
    RequestTimeoutError,
)
from broker.protocol.client_requests import (
    Acks,
    HelloRequest,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.responses import (
    BrokerAddress,
    decode_publish_response,
    decode_read_response,
    encode_last_response,
)
from broker.server.broker import Broker
from broker.topic import TopicPartition
from tests.integration.broker.factories import ServerFactory, address_of
from tests.integration.broker.peers import Serve, Server, answer_each

PARTITION = TopicPartition("events", 0, 0)


class Wire:
    """A connection that the loop has taken over, for a task that waits for its responses."""

    def __init__(self, opened: Connection, *, has_responses: bool = True) -> None:
        self._news = asyncio.Event()
        self.connection = LoopConnection(opened, self._news.set, has_responses=has_responses)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so after a wake-up of the connection."""
        async with asyncio.timeout(60):
            while not is_so():
                await self._news.wait()
                self._news.clear()

    async def response(self, correlation_id: int) -> Reader:
        """Return the body of the next response."""
        await self.until(self.connection.has_received)
        return self.connection.receive_extension(correlation_id)

    async def call(self, request: ExtensionRequest) -> Reader:
        """Return the body of the response to a request."""
        return await self.response(self.connection.send_extension(request))

    def send_until_blocked(self) -> None:
        """Send until the broker's end takes no more."""
        while self.connection.is_writable:
            self.connection.send(bytes(1 << 20))


@asynccontextmanager
async def connected(
    address: BrokerAddress, *, timeout_s: float = 60.0, has_responses: bool = True
) -> AsyncIterator[Wire]:
    opened = Connection(address, timeout_s=timeout_s)
    await asyncio.to_thread(opened.hello)
    wire = Wire(opened, has_responses=has_responses)
    try:
        yield wire
    finally:
        wire.connection.close()
        async with asyncio.timeout(60):
            await wire.connection.closed()


async def publish(wire: Wire, payloads: list[bytes]) -> list[int]:
    """Return the offset of each message, and the one after the last."""
    sets = PartitionSet(PARTITION, encode(payloads))
    await wire.call(CreateTopicRequest(PARTITION.topic))
    (published,) = decode_publish_response(
        await wire.call(PublishRequest(Acks.COMMITTED, 60_000, (sets,)))
    )
    offsets = [published.base_offset]
    for one in payloads:
        offsets.append(offsets[-1] + len(encode([one])))
    return offsets


def read_of(offset: int, size: int) -> ReadRequest:
    return ReadRequest(0, 1, 1 << 20, (PartitionPosition(PARTITION, offset, size),))


def answering_hello_then(broker: Broker, serve: Serve) -> Serve:
    """Return what passes the hello on to a broker, and then serves the connection itself."""

    def run(sock: socket.socket) -> None:
        hello = sock.recv(1 << 16)
        with socket.create_connection(("127.0.0.1", broker.port)) as upstream:
            upstream.sendall(hello)
            sock.sendall(upstream.recv(1 << 16))
        serve(sock)

    return run


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_responses_when_they_come_in_parts_of_any_size_then_are_the_same(
    running_broker: Broker, start_server: ServerFactory, size: int
) -> None:
    """Parts that end inside size fields, and responses larger than one read."""

    def pass_on(sock: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", running_broker.port)) as upstream:
            threading.Thread(target=copy, args=(sock, upstream), daemon=True).start()
            while data := upstream.recv(1 << 16):
                step = max(size, len(data) // 50)
                for start in range(0, len(data), step):
                    sock.sendall(data[start : start + step])

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

    async def main() -> None:
        async with connected(start_server(pass_on).address) as wire:
            large = bytes(300_000)
            offsets = await publish(wire, [b"a", large, b"b"])
            sizes = [offsets[1], 1 << 20, 100, 1 << 20]
            starts = [0, 0, offsets[2], offsets[1]]
            asked = [
                wire.connection.send_extension(read_of(*one))
                for one in zip(starts, sizes, strict=True)
            ]
            found = [
                bytes(decode_read_response(await wire.response(one))[0].message_set)
                for one in asked
            ]
            whole = encode([b"a", large, b"b"])
            assert found == [
                whole[: offsets[1]],
                whole,
                whole[offsets[2] :],
                whole[offsets[1] :],
            ]

    asyncio.run(main())


def test_requests_when_the_broker_is_killed_then_receive_says_so(
    start_server: ServerFactory,
) -> None:
    server: Server = start_server(answer_each())

    async def main() -> None:
        async with connected(server.address) as wire:
            correlation_id = wire.connection.send_extension(HelloRequest())
            await asyncio.to_thread(server.drop_connections)
            with pytest.raises(BrokerUnreachableError, match=r"^lost "):
                await wire.response(correlation_id)
            assert not wire.connection.is_open

    asyncio.run(main())


def test_requests_when_the_broker_stops_in_order_then_are_known_to_be_undone(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    def stop(sock: socket.socket) -> None:
        sock.recv(1 << 16)
        sock.sendall(encode_last_response("it stops"))

    server = start_server(answering_hello_then(running_broker, stop))

    async def main() -> None:
        async with connected(server.address) as wire:
            asked = [wire.connection.send_extension(HelloRequest()) for _ in range(3)]
            with pytest.raises(BrokerStoppedError):
                await wire.response(asked[0])

    asyncio.run(main())


def test_response_when_none_is_awaited_then_the_connection_is_lost(running_broker: Broker) -> None:
    async def main() -> None:
        async with connected(address_of(running_broker), has_responses=False) as wire:
            wire.connection.send_extension(HelloRequest())
            await wire.until(wire.connection.has_received)
            with pytest.raises(ProtocolError, match="a response that no request is for"):
                wire.connection.receive()

    asyncio.run(main())


def test_send_when_the_broker_does_not_read_then_is_writable_only_once_it_does(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    may_read = threading.Event()

    def read_late(sock: socket.socket) -> None:
        may_read.wait()
        while sock.recv(1 << 20):
            pass

    server = start_server(answering_hello_then(running_broker, read_late))

    async def main() -> None:
        async with connected(server.address) as wire:
            wire.send_until_blocked()
            await asyncio.sleep(0.05)
            assert not wire.connection.is_writable
            assert wire.connection.has_unsent
            may_read.set()
            await wire.until(lambda: wire.connection.is_writable)
            assert not wire.connection.has_unsent

    asyncio.run(main())


def test_send_when_the_broker_never_reads_then_times_out(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    may_end = threading.Event()
    server = start_server(answering_hello_then(running_broker, lambda _: may_end.wait()))

    async def main() -> None:
        async with connected(server.address, timeout_s=0.5, has_responses=False) as wire:
            wire.send_until_blocked()
            await wire.until(wire.connection.has_received)
            with pytest.raises(RequestTimeoutError, match=r"did nothing for 0\.5s while sending"):
                wire.connection.receive()

    try:
        asyncio.run(main())
    finally:
        may_end.set()


def test_send_when_the_connection_is_lost_meanwhile_then_nothing_is_unsent(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    may_close = threading.Event()
    server = start_server(answering_hello_then(running_broker, lambda _: may_close.wait()))

    async def main() -> None:
        async with connected(server.address) as wire:
            wire.send_until_blocked()
            may_close.set()
            await wire.until(lambda: not wire.connection.has_unsent)
            with pytest.raises(BrokerUnreachableError):
                wire.connection.send(b"x")

    asyncio.run(main())


def test_close_when_something_is_buffered_then_it_still_reaches_the_broker(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    received: queue.Queue[int] = queue.Queue()

    def read_all(sock: socket.socket) -> None:
        size = 0
        while part := sock.recv(1 << 20):
            size += len(part)
        received.put(size)

    server = start_server(answering_hello_then(running_broker, read_all))

    async def main() -> None:
        async with connected(server.address) as wire:
            wire.send_until_blocked()
            wire.connection.close()
            with pytest.raises(BrokerUnreachableError, match="is closed"):
                wire.connection.send(b"x")

    asyncio.run(main())
    assert received.get(timeout=60) % (1 << 20) == 0

"""The connection for event loops: many requests in flight, cancelled tasks, lost brokers."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from broker.aio.connection import AsyncConnection
from broker.errors import (
    BrokerError,
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
from broker.protocol.extension_requests import (
    CreateTopicRequest,
)
from broker.protocol.requests import FetchRequest, encode_request
from broker.protocol.responses import (
    HELLO,
    BrokerAddress,
    decode_fetch_response,
    decode_publish_response,
    decode_read_response,
    encode_last_response,
)
from broker.server.broker import Broker
from broker.topic import TopicPartition
from pylogctl import testing
from tests.integration.broker.factories import ServerFactory, address_of
from tests.integration.broker.peers import (
    Serve,
    Server,
    answer_as_kafka,
    answer_each,
    as_late_door_to,
    hang_up,
    say,
    stay_silent,
)

PARTITION = TopicPartition("events", 0, 0)
MESSAGES = [f"message {n}".encode() for n in range(200)]


@asynccontextmanager
async def connected(
    address: BrokerAddress, *, timeout_s: float = 60.0
) -> AsyncIterator[AsyncConnection]:
    connection = AsyncConnection(address, timeout_s=timeout_s)
    await connection.open()
    try:
        yield connection
    finally:
        connection.close()
        await connection.closed()


def ask(connection: AsyncConnection, request: FetchRequest) -> asyncio.Future[memoryview]:
    response = connection.expect_frame()
    connection.send(encode_request(request))
    return response


async def publish(connection: AsyncConnection, payloads: list[bytes]) -> list[int]:
    """Return the offset of each message, and the one after the last."""
    sets = PartitionSet(PARTITION, encode(payloads))
    await connection.call(CreateTopicRequest(PARTITION.topic))
    body = await connection.call(PublishRequest(Acks.COMMITTED, 60_000, (sets,)))
    (published,) = decode_publish_response(body)
    offsets = [published.base_offset]
    for one in payloads:
        offsets.append(offsets[-1] + len(encode([one])))
    return offsets


def read_of(offset: int, size: int) -> ReadRequest:
    return ReadRequest(0, 1, 1 << 20, (PartitionPosition(PARTITION, offset, size),))


def test_requests_when_many_tasks_send_them_then_each_gets_its_own_response(
    running_broker: Broker,
) -> None:
    async def main() -> None:
        async with connected(address_of(running_broker)) as connection:
            offsets = await publish(connection, MESSAGES)

            async def read(n: int) -> None:
                size = offsets[n + 1] - offsets[n]
                body = await connection.call(read_of(offsets[n], size))
                assert decode_read_response(body)[0].message_set == encode([MESSAGES[n]])

            await asyncio.gather(*(read(n) for n in range(len(MESSAGES))))

    asyncio.run(main())


def test_tasks_when_cancelled_at_random_moments_then_the_others_get_their_responses(
    running_broker: Broker,
) -> None:
    draw = random.Random(22)

    async def main() -> int:
        cancelled = 0
        async with connected(address_of(running_broker)) as connection:
            offsets = await publish(connection, MESSAGES)

            async def work() -> None:
                for _ in range(100):
                    n = draw.randrange(len(MESSAGES))
                    body = await connection.call(read_of(offsets[n], offsets[n + 1] - offsets[n]))
                    assert decode_read_response(body)[0].message_set == encode([MESSAGES[n]])

            async def cancel_some(tasks: list[asyncio.Task[None]]) -> None:
                nonlocal cancelled
                for task in tasks:
                    for _ in range(draw.randrange(5)):
                        await asyncio.sleep(0)
                    cancelled += task.cancel()

            for _ in range(5):
                stay = [asyncio.create_task(work()) for _ in range(8)]
                go = [asyncio.create_task(work()) for _ in range(8)]
                await cancel_some(go)
                await asyncio.gather(*stay)
                await asyncio.wait(go)
            assert HELLO.decode(await connection.call(HelloRequest())).broker_id == 0
        return cancelled

    assert asyncio.run(main()) >= 20


def test_call_when_it_is_cancelled_before_a_refusal_then_nothing_is_left_unread(
    running_broker: Broker,
) -> None:
    async def main() -> None:
        async with connected(address_of(running_broker)) as connection:
            unread: list[object] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, what: unread.append(what))
            refused = connection.request(CreateTopicRequest("no/topic", 1))
            dropped = connection.request(CreateTopicRequest("no/topic", 1))
            dropped.cancel()
            with pytest.raises(BrokerError):
                await refused
            assert (await publish(connection, [b"x"]))[0] == 0
            assert unread == []

    asyncio.run(main())


def test_open_when_nobody_listens_then_says_so() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        address = BrokerAddress(3, "127.0.0.1", holder.getsockname()[1])

        async def main() -> None:
            await AsyncConnection(address).open()

        with pytest.raises(BrokerUnreachableError, match=r"^cannot reach broker 3 at 127.0.0.1:"):
            asyncio.run(main())


def test_open_when_a_proxy_has_closed_it_until_the_broker_was_there_then_not_taken_for_0_7(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    server = start_server(as_late_door_to(running_broker.port, closed_count=2))

    async def main() -> None:
        async with connected(server.address) as connection:
            assert connection.hello is not None

    asyncio.run(main())


def test_open_when_the_hello_is_answered_after_a_silence_then_connects_anew(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    def answer_after_the_end(sock: socket.socket) -> None:
        frame = sock.recv(1 << 16)
        if not frame or sock.recv(1 << 16):
            return
        with socket.create_connection(("127.0.0.1", running_broker.port)) as upstream:
            upstream.sendall(frame)
            sock.sendall(upstream.recv(1 << 16))

    server = start_server(answer_after_the_end)

    async def main() -> None:
        async with connected(server.address, timeout_s=1.0) as connection:
            assert connection.hello is not None

    asyncio.run(main())


def test_open_when_broker_is_of_0_7_then_its_responses_come_in_order(old_broker: Server) -> None:
    async def main() -> None:
        async with connected(old_broker.address) as connection:
            assert connection.hello is None
            asked = [ask(connection, FetchRequest("events", 0, at, 100)) for at in (0, 7, 0)]
            asked[1].cancel()
            assert decode_fetch_response(await asked[0])[0] == 0
            assert decode_fetch_response(await asked[2])[0] == 0

    asyncio.run(main())


def test_open_when_server_speaks_another_protocol_then_says_what_it_said(
    start_server: ServerFactory,
) -> None:
    async def main() -> None:
        await AsyncConnection(start_server(say(b"SSH-2.0-x")).address).open()

    with pytest.raises(ProtocolError, match=r"does not speak the log protocol .*SSH-"):
        asyncio.run(main())


def test_open_when_server_is_silent_then_ends_in_time(start_server: ServerFactory) -> None:
    async def main() -> None:
        await AsyncConnection(start_server(stay_silent).address, timeout_s=0.4).open()

    with pytest.raises(RequestTimeoutError, match=r"did nothing for 0\.[24]s"):
        asyncio.run(main())


def test_open_when_server_hangs_up_then_unreachable(start_server: ServerFactory) -> None:
    async def main() -> None:
        await AsyncConnection(start_server(hang_up).address).open()

    with pytest.raises(BrokerUnreachableError, match=r"^lost .* while waiting") as raised:
        asyncio.run(main())
    assert "is it a broker's port?" in raised.value.hints[0]


def test_open_when_server_is_a_later_kafka_then_says_so(start_server: ServerFactory) -> None:
    async def main() -> None:
        await AsyncConnection(start_server(answer_as_kafka).address).open()

    with pytest.raises(ProtocolError, match=r"is a broker of Kafka 0\.10 or later"):
        asyncio.run(main())


def answering_hello_then(broker: Broker, serve: Serve) -> Serve:
    """Return what passes the hello on to a broker, and then serves the connection itself."""

    def run(sock: socket.socket) -> None:
        hello = sock.recv(1 << 16)
        with socket.create_connection(("127.0.0.1", broker.port)) as upstream:
            upstream.sendall(hello)
            sock.sendall(upstream.recv(1 << 16))
        serve(sock)

    return run


def test_requests_when_the_broker_falls_silent_then_all_time_out_and_the_owner_is_told(
    start_server: ServerFactory,
) -> None:
    server = start_server(answer_each())

    async def main() -> None:
        async with connected(server.address, timeout_s=0.2) as connection:
            told: list[BrokerError] = []
            connection.on_lost = told.append
            found = await asyncio.gather(
                *(connection.call(HelloRequest()) for _ in range(3)), return_exceptions=True
            )
            assert [type(one) for one in found] == [RequestTimeoutError] * 3
            assert [type(one) for one in told] == [RequestTimeoutError]
            assert not connection.is_open
            with pytest.raises(RequestTimeoutError):
                await connection.call(HelloRequest())

    asyncio.run(main())


def test_requests_when_the_broker_is_killed_then_all_fail(
    start_server: ServerFactory,
) -> None:
    server = start_server(answer_each())

    async def main() -> None:
        async with connected(server.address) as connection:
            asked = [connection.request(HelloRequest()) for _ in range(3)]
            await asyncio.to_thread(server.drop_connections)
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert [type(one) for one in found] == [BrokerUnreachableError] * 3

    asyncio.run(main())


def test_requests_when_the_broker_stops_in_order_then_are_known_to_be_undone(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    def stop(sock: socket.socket) -> None:
        sock.recv(1 << 16)
        sock.sendall(encode_last_response("it stops"))

    server = start_server(answering_hello_then(running_broker, stop))

    async def main() -> None:
        async with connected(server.address) as connection:
            asked = [connection.request(HelloRequest()) for _ in range(3)]
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert [type(one) for one in found] == [BrokerStoppedError] * 3

    asyncio.run(main())


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_responses_when_they_come_in_parts_of_any_size_then_are_the_same(
    running_broker: Broker, start_server: ServerFactory, size: int
) -> None:
    """Parts that end inside size fields, and responses larger than the buffer."""

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
        async with connected(start_server(pass_on).address) as connection:
            large = bytes(300_000)
            offsets = await publish(connection, [b"a", large, b"b"])
            sizes = [offsets[1], 1 << 20, 100, 1 << 20]
            starts = [0, 0, offsets[2], offsets[1]]
            asked = [connection.request(read_of(*one)) for one in zip(starts, sizes, strict=True)]
            found = [bytes(decode_read_response(await one)[0].message_set) for one in asked]
            whole = encode([b"a", large, b"b"])
            assert found == [
                whole[: offsets[1]],
                whole,
                whole[offsets[2] :],
                whole[offsets[1] :],
            ]

    asyncio.run(main())


def test_drained_when_the_broker_does_not_read_then_waits_until_it_does(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    may_read = threading.Event()

    def read_late(sock: socket.socket) -> None:
        may_read.wait()
        while sock.recv(1 << 20):
            pass

    server = start_server(answering_hello_then(running_broker, read_late))

    async def main() -> None:
        async with connected(server.address) as connection:
            await asyncio.wait_for(connection.drained(), 60)
            while connection.is_writable:
                connection.send(bytes(1 << 20))
            waiting = asyncio.create_task(connection.drained())
            cancelled = asyncio.create_task(connection.drained())
            await asyncio.sleep(0.05)
            assert not waiting.done()
            cancelled.cancel()
            may_read.set()
            await asyncio.wait_for(waiting, 60)
            assert connection.is_writable

    asyncio.run(main())


def test_drained_when_the_connection_is_lost_then_fails(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    may_close = threading.Event()
    server = start_server(answering_hello_then(running_broker, lambda _: may_close.wait()))

    async def main() -> None:
        async with connected(server.address) as connection:
            while connection.is_writable:
                connection.send(bytes(1 << 20))
            waiting = asyncio.create_task(connection.drained())
            await asyncio.sleep(0)
            may_close.set()
            with pytest.raises(BrokerUnreachableError):
                await asyncio.wait_for(waiting, 60)

    asyncio.run(main())


def test_close_when_requests_are_pending_then_they_fail_and_the_owner_is_not_told(
    running_broker: Broker,
) -> None:
    async def main() -> None:
        async with connected(address_of(running_broker)) as connection:
            connection.on_lost = lambda _: pytest.fail("it was closed here")
            pending = connection.request(HelloRequest())
            connection.close()
            with pytest.raises(BrokerUnreachableError, match="is closed"):
                await pending
            with pytest.raises(BrokerUnreachableError, match="is closed"):
                connection.request(HelloRequest())

    asyncio.run(main())


class _ResetTransport(asyncio.Transport):
    """A connection that its peer has reset before the loop came to it: its socket has no peer."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__({"socket": sock, "sockname": ("127.0.0.1", 1), "peername": None})


def test_connection_when_its_peer_resets_it_at_once_then_taking_it_does_not_fail() -> None:
    async def main() -> None:
        with socket.socket() as unconnected:
            connection = AsyncConnection(BrokerAddress(0, "127.0.0.1", 1))
            connection.connection_made(_ResetTransport(unconnected))
            assert connection.is_open

    asyncio.run(main())


def test_connection_when_lost_after_its_caller_was_cancelled_then_no_failure_is_left() -> None:
    async def main() -> list[object]:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: reported.append(what))
        with testing.Broker() as broker:
            connection = AsyncConnection(BrokerAddress(0, "127.0.0.1", broker.port))
            await connection.open()
            response = ask(connection, FetchRequest("t", 0, 0, 1000))
            connection.close()
            assert response.done()
            del response
            gc.collect()
            await connection.closed()
        return reported

    assert asyncio.run(main()) == []

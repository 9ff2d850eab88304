"""The client for asyncio beside the one for threads: messages read, and requests on one connection.

The broker is a process of its own. Requests are hellos, which cost it least.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pylogctl
from bench.broker_process import BrokerProcess, running_broker
from bench.measure import Measurement, Plan, repeat_rate
from broker.aio.connection import AsyncConnection
from broker.protocol.client_requests import HelloRequest

_TASKS = 64
_PAYLOAD = bytes(100)
_TOPIC = "events"


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure reads by message and by batch, and requests by 64 tasks."""
    messages, requests = plan.size(2_000_000, 200_000), plan.size(64_000, 6400)
    with running_broker(plan.directory) as broker:
        address = f"127.0.0.1:{broker.port}"
        with pylogctl.connect(address) as client, client.producer(acks=pylogctl.Acks.WRITTEN) as to:
            for _ in range(messages // 1000):
                to.send_many(_TOPIC, [_PAYLOAD] * 1000)
        reads: dict[str, Callable[[], float]] = {
            "read by threads": partial(_read, address),
            "read by asyncio": partial(_in_loop, address, _read_in_loop),
            "read by threads, batches": partial(_read_batches, address),
            "read by asyncio, batches": partial(_in_loop, address, _read_batches_in_loop),
        }
        for name, measured in reads.items():
            yield Measurement(name, "messages/s", repeat_rate(plan, messages, measured))
        asked: dict[str, Callable[[], float]] = {
            f"requests, {_TASKS} in flight by a thread": partial(_ask, broker, requests),
            f"requests, {_TASKS} tasks": lambda: asyncio.run(_ask_in_loop(broker, requests)),
        }
        for name, measured in asked.items():
            yield Measurement(name, "requests/s", repeat_rate(plan, requests, measured))


def _read(address: str) -> float:
    with pylogctl.connect(address) as client:
        started_s = time.perf_counter()
        for _ in client.read(_TOPIC):
            pass
        return time.perf_counter() - started_s


def _read_batches(address: str) -> float:
    with pylogctl.connect(address) as client:
        started_s = time.perf_counter()
        for batch in client.read_batches(_TOPIC):
            for _ in batch.messages():
                pass
        return time.perf_counter() - started_s


def _in_loop(address: str, read: Callable[[pylogctl.AsyncClient], Awaitable[None]]) -> float:
    async def main() -> float:
        async with pylogctl.aconnect(address) as client:
            started_s = time.perf_counter()
            await read(client)
            return time.perf_counter() - started_s

    return asyncio.run(main())


async def _read_in_loop(client: pylogctl.AsyncClient) -> None:
    async for _ in client.read(_TOPIC):
        pass


async def _read_batches_in_loop(client: pylogctl.AsyncClient) -> None:
    async for batch in client.read_batches(_TOPIC):
        for _ in batch.messages():
            pass


def _ask(broker: BrokerProcess, count: int) -> float:
    connection = broker.connect()
    connection.hello()
    started_s = time.perf_counter()
    in_flight: deque[int] = deque()
    for _ in range(count):
        in_flight.append(connection.send_extension(HelloRequest()))
        if len(in_flight) == _TASKS:
            connection.receive_extension(in_flight.popleft())
    while in_flight:
        connection.receive_extension(in_flight.popleft())
    connection.close()
    return time.perf_counter() - started_s


async def _ask_in_loop(broker: BrokerProcess, count: int) -> float:
    connection = AsyncConnection(broker.address)
    await connection.open()

    async def ask() -> None:
        for _ in range(count // _TASKS):
            await connection.call(HelloRequest())

    started_s = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(_TASKS)))
    elapsed_s = time.perf_counter() - started_s
    connection.close()
    await connection.closed()
    return elapsed_s

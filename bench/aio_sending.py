"""Sending by asyncio beside sending by threads: messages of 100 bytes, all of them acknowledged.

The broker is a process of its own, and flushes what it acknowledges.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pylogctl
from bench.broker_process import running_broker
from bench.measure import Measurement, Plan, repeat_rate

_SENDERS = 64
_MANY = 1000
_PAYLOAD = bytes(100)
_TOPIC = "events"


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure producers by message and by thousands, and sends that wait, 64 at a time."""
    messages, waited = plan.size(200_000, 50_000), plan.size(32_000, 3200)
    with running_broker(plan.directory) as broker:
        address = f"127.0.0.1:{broker.port}"
        measured: dict[str, tuple[int, Callable[[], float]]] = {
            "producer by threads": (messages, partial(_by_threads, address, _produce, messages)),
            "producer by asyncio": (
                messages,
                partial(_in_loop, address, _produce_in_loop, messages),
            ),
            "producer by threads, send_many": (
                messages,
                partial(_by_threads, address, _produce_many, messages),
            ),
            "producer by asyncio, send_many": (
                messages,
                partial(_in_loop, address, _produce_many_in_loop, messages),
            ),
            f"client.send, {_SENDERS} threads": (
                waited,
                partial(_by_threads, address, _send, waited),
            ),
            f"client.send, {_SENDERS} tasks": (
                waited,
                partial(_in_loop, address, _send_in_loop, waited),
            ),
        }
        for name, (count, once) in measured.items():
            yield Measurement(name, "messages/s", repeat_rate(plan, count, once))


def _by_threads(address: str, send: Callable[[pylogctl.Client, int], None], count: int) -> float:
    with pylogctl.connect(address) as client:
        client.send(_TOPIC, _PAYLOAD)
        started_s = time.perf_counter()
        send(client, count)
        return time.perf_counter() - started_s


def _produce(client: pylogctl.Client, count: int) -> None:
    with client.producer() as producer:
        for _ in range(count):
            producer.send(_TOPIC, _PAYLOAD)


def _produce_many(client: pylogctl.Client, count: int) -> None:
    with client.producer() as producer:
        for _ in range(count // _MANY):
            producer.send_many(_TOPIC, [_PAYLOAD] * _MANY)


def _send(client: pylogctl.Client, count: int) -> None:
    def work() -> None:
        for _ in range(count // _SENDERS):
            client.send(_TOPIC, _PAYLOAD)

    threads = [threading.Thread(target=work) for _ in range(_SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _in_loop(
    address: str, send: Callable[[pylogctl.AsyncClient, int], Awaitable[None]], count: int
) -> float:
    async def main() -> float:
        async with pylogctl.aconnect(address) as client:
            await client.send(_TOPIC, _PAYLOAD)
            started_s = time.perf_counter()
            await send(client, count)
            return time.perf_counter() - started_s

    return asyncio.run(main())


async def _produce_in_loop(client: pylogctl.AsyncClient, count: int) -> None:
    async with client.producer() as producer:
        for _ in range(count):
            await producer.send(_TOPIC, _PAYLOAD)


async def _produce_many_in_loop(client: pylogctl.AsyncClient, count: int) -> None:
    async with client.producer() as producer:
        for _ in range(count // _MANY):
            await producer.send_many(_TOPIC, [_PAYLOAD] * _MANY)


async def _send_in_loop(client: pylogctl.AsyncClient, count: int) -> None:
    async def work() -> None:
        for _ in range(count // _SENDERS):
            await client.send(_TOPIC, _PAYLOAD)

    await asyncio.gather(*(work() for _ in range(_SENDERS)))

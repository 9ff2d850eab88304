"""The client for asyncio beside the one for threads: messages read.

The broker is a process of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pylogctl
from bench.broker_process import running_broker
from bench.measure import Measurement, Plan, repeat_rate

_PAYLOAD = bytes(100)
_TOPIC = "events"


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure reads by message and by batch."""
    messages = plan.size(2_000_000, 200_000)
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

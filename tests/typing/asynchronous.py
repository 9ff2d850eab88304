"""A program in an event loop: see `test_typing.py`."""

from __future__ import annotations

import asyncio
from typing import assert_type

import pylogctl


async def main(address: str) -> None:
    """Read, and ask, in a loop."""
    async with pylogctl.aconnect(address, timeout=5) as client:
        assert_type(client, pylogctl.AsyncClient)
        async for message in client.read("orders"):
            assert_type(message, pylogctl.Message)
        async for batch in client.read_batches("orders", start="@-10m"):
            assert_type(batch.values(), list[bytes])
        assert_type(await client.brokers(), list[pylogctl.BrokerInfo])
        await client.brokers(timeout="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        await client.broker()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


asyncio.run(main("localhost"))

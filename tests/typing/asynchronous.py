"""A program in an event loop: see `test_typing.py`."""

from __future__ import annotations

import asyncio
from typing import assert_type

import pylogctl


async def main(address: str) -> None:
    """Send, read, and ask, in a loop."""
    async with pylogctl.aconnect(address, timeout=5, client_id="orders") as client:
        assert_type(client, pylogctl.AsyncClient)
        receipt = await client.send("orders", "one", key="k")
        assert_type(receipt, pylogctl.Receipt)
        async with client.producer(codec="gzip") as producer:
            delivery = await producer.send("orders", b"two")
            assert_type(await delivery, pylogctl.Receipt)
            both = await producer.send_all([("orders", "three"), ("payments", "four")])
            assert_type(both, list[pylogctl.AsyncDelivery])
        async for message in client.read("orders"):
            assert_type(message, pylogctl.Message)
        async for batch in client.read_batches("orders", start="@-10m"):
            assert_type(batch.values(), list[bytes])
        reader = await client.read("orders", start={receipt.partition: receipt.offset})
        assert_type(reader, pylogctl.AsyncReader)
        await reader.seek(0, "latest")
        async with client.group("billing", "orders", commit="manual") as group:
            async for message in group:
                assert_type(message, pylogctl.Message)
                await group.commit()
        async with client.schema_producer("auto") as values:
            assert_type(values, pylogctl.AsyncSchemaProducer)
            assert_type(await values.send("orders", {"id": 7}), pylogctl.AsyncDelivery)
        decoder = await client.decoder(7)
        assert_type(decoder, pylogctl.AsyncDecoder)
        assert_type(await decoder.decode(b"three"), object)
        assert_type(await client.subjects(), list[str])
        assert_type(await client.brokers(), list[pylogctl.BrokerInfo])
        assert_type(await client.topics(), list[pylogctl.TopicInfo])
        moving = await client.reassign("orders", [0, 1], plan=True)
        assert_type(moving, pylogctl.AsyncReassignment)
        await moving.wait(timeout=None)
        async for change in client.changes(topic="orders"):
            assert_type(change, pylogctl.LoggedChange)
        await client.brokers(timeout="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        await client.broker()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


asyncio.run(main("localhost"))

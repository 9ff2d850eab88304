"""Idempotent producers of the library at topics of format 0.7."""

from __future__ import annotations

import asyncio

import pytest

import pylogctl
from broker import Broker
from broker.log.producer_rows import FILE_NAME, decode_rows
from broker.protocol.message import ProducerStamp
from tests.integration.broker.factories import BrokerFactory
from tests.integration.pylogctl.proxies import BrokerOf07


@pytest.fixture
def broker(start_broker: BrokerFactory) -> Broker:
    return start_broker()


def stamps(broker: Broker) -> list[ProducerStamp]:
    (path,) = broker.config.data_dirs[0].glob(f"t_*/{FILE_NAME}")
    return [one.stamp for one in decode_rows(path.read_bytes())]


def expect_numbered(found: list[ProducerStamp]) -> None:
    assert len({one.producer_id for one in found}) == 1
    assert [one.base_sequence for one in found] == [0, 3]
    assert [one.message_count for one in found] == [3, 2]


def test_producer_when_it_is_idempotent_then_its_batches_are_numbered(broker: Broker) -> None:
    address = f"127.0.0.1:{broker.port}"
    with pylogctl.connect(address) as client, client.producer(idempotent=True) as producer:
        for count in (3, 2):
            producer.send_many("t", ["a"] * count)
            producer.flush()
    expect_numbered(stamps(broker))


async def _send(port: int) -> None:
    async with (
        await pylogctl.aconnect(f"127.0.0.1:{port}") as client,
        client.producer(idempotent=True) as producer,
    ):
        for count in (3, 2):
            await producer.send_many("t", ["a"] * count)
            await producer.flush()


def test_async_producer_when_it_is_idempotent_then_its_batches_are_numbered(broker: Broker) -> None:
    asyncio.run(_send(broker.port))
    expect_numbered(stamps(broker))


def test_producer_when_a_broker_is_of_07_then_says_that_it_cannot_be_idempotent(
    broker: Broker,
) -> None:
    of_07 = BrokerOf07(broker)
    try:
        with pylogctl.connect(f"127.0.0.1:{of_07.port}", timeout=30) as client:
            producer = client.producer(idempotent=True)
            delivery = producer.send("t", "a")
            with pytest.raises(pylogctl.Error, match=r"too old for enable\.idempotence"):
                delivery.result()
            producer.close()
    finally:
        of_07.stop()

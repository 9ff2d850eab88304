"""A program that sends: see `test_typing.py`."""

from __future__ import annotations

from typing import assert_type

import pylogctl


def send(address: str) -> pylogctl.Receipt:
    """Send in each way there is."""
    with pylogctl.connect([address, "other:9093"], timeout=5) as client:
        assert_type(client, pylogctl.Client)
        receipt = client.send("orders", "one", key=b"k", acks=pylogctl.Acks.WRITTEN, timeout=None)
        client.send("orders", "one", key=bytearray(b"k"), acks="all")
        assert_type(receipt.partition, pylogctl.TopicPartition)
        assert_type(receipt.offset, int)
        assert_type(client.send_many("orders", ["one", b"two"]), list[pylogctl.Receipt])
        client.send("orders", "one", partition="2-0")
        client.send("orders", "one", partition=receipt.partition)
        with client.producer(codec="gzip", linger=0.01, on_delivery=note) as producer:
            delivery = producer.send("orders", b"three")
            assert_type(delivery, pylogctl.Delivery)
            both = producer.send_all([("orders", "four"), ("payments", b"five", "k")])
            assert_type(both, list[pylogctl.Delivery])
            assert_type(delivery.exception(), pylogctl.Error | None)
            producer.flush(timeout=1.0)
        return delivery.result(timeout=1)


def send_values(client: pylogctl.Client) -> None:
    """Send values by a schema, and decode them."""
    schema = client.register_schema("orders-value", '"long"', "AVRO")
    assert_type(schema, pylogctl.RegisteredSchema)
    assert_type(client.check_schema("orders-value", '"int"', version=1), list[str])
    client.set_compatibility("orders-value", pylogctl.Compatibility.FULL)
    with client.schema_producer(schema, on_delivery=note) as producer:
        assert_type(producer, pylogctl.SchemaProducer)
        assert_type(producer.send("orders", {"id": 7}), pylogctl.Delivery)
    decoder = client.decoder()
    assert_type(decoder, pylogctl.Decoder)
    for message in client.read("orders"):
        assert_type(decoder.decode(message.value), object)


def note(delivery: pylogctl.Delivery) -> None:
    """Print where a message is."""
    print(delivery.done(), delivery.result().offset)


def mistake(client: pylogctl.Client) -> None:
    """Make the mistakes that checkers find."""
    client.send("orders", 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.send_many("orders", 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.producer().send_all(["orders"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    client.send("orders", "one", acks="most")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.send("orders", "one", on_delivery=note)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.producer(codec="zip")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.schema_producer("latest")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    pylogctl.conect("a")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    client.sent("orders", "one")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


try:
    print(send("localhost").next_offset)
except pylogctl.Unreachable as error:
    assert_type(error.is_retriable, bool)
except pylogctl.NotABoundary as error:
    assert_type(error.before, int)
except (pylogctl.TimedOut, pylogctl.Closed):
    print("not acknowledged")

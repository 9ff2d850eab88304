from __future__ import annotations

from pylogctl.pytest_plugin import MakeBroker
from pylogctl.web.messages import read_page, start_positions
from pylogctl.web.sampler import StatusSampler


def test_rates_of_a_broker_that_was_restarted_are_never_negative(
    pylog_own_broker: MakeBroker,
) -> None:
    broker = pylog_own_broker()
    with broker.connect() as client:
        sampler = StatusSampler(client)
        client.send_many("orders", ["x" * 1000] * 100)
        sampler.look()
        assert "topic/orders/in" not in sampler.newest()  # it takes two looks
        client.send_many("orders", ["x" * 1000] * 100)
        sampler.look()
        assert sampler.newest()["topic/orders/in"] > 0
        assert sampler.newest()["cluster/messages"] > 0
        broker.restart()
        sampler.look()
        client.send("orders", "y")
        sampler.look()
        assert sampler.newest()["topic/orders/messages"] > 0
        values = [one.value for one in sampler.points("topic/orders/in")]
        assert len(values) == 2
        assert min(values) > 0


def test_damaged_message_is_a_row_and_the_others_are_there(pylog_own_broker: MakeBroker) -> None:
    broker = pylog_own_broker()
    with broker.connect() as client:
        receipts = [client.send("orders", f"message {number}") for number in range(5)]
        broker.stop()
        (segment,) = broker.data_dir.glob("orders_0/*.pylog")
        data = bytearray(segment.read_bytes())
        data[receipts[3].offset - 1] ^= 1  # in the value of the third
        segment.write_bytes(data)
        broker.restart()
        partition = receipts[0].partition
        for place, is_backward in (("start", False), ("end", True)):
            at = start_positions(client, "orders", [partition], place)
            found = read_page(client, "orders", at, is_backward=is_backward, limit=10)
            assert [one.value for one in found.rows] == [
                b"message 0",
                b"message 1",
                b"",
                b"message 3",
                b"message 4",
            ]
            assert "checksum" in found.rows[2].problem or "CRC" in found.rows[2].problem

"""A broker of a 0.7 topic, killed under an idempotent producer: each message is there once."""

from __future__ import annotations

import threading
from contextlib import closing

from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings
from broker.protocol.client_requests import Acks
from broker.protocol.codec import decode
from broker.protocol.responses import BrokerAddress
from tests.integration.process.conftest import ProcessFactory
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

KILLS = 3
LEAST = 200  # sets between two of them
SET = 3  # messages
SETTINGS = ("-X", "log.file.size=20000", "-X", "num.partitions=1")


class Sending(threading.Thread):
    """Sends numbers until it is told to end."""

    def __init__(self, address: BrokerAddress) -> None:
        super().__init__()
        self.count = 0  # of sets
        self.ends = threading.Event()
        self._address = address
        self.error: BaseException | None = None

    def run(self) -> None:
        cluster = StaticCluster([self._address], Connection)
        settings = ProducerSettings(acks=Acks.COMMITTED, backoff_s=0.01, is_idempotent=True)
        try:
            with closing(cluster), Producer(cluster, Connection, settings) as producer:
                while not self.ends.is_set():
                    first = SET * self.count
                    producer.send("events", [b"%d" % (first + n) for n in range(SET)])
                    self.count += 1
        except BaseException as error:
            self.error = error
            raise

    def advance(self) -> None:
        least = self.count + LEAST
        wait_until(lambda: self.count >= least or not self.is_alive(), "more sets")
        assert self.error is None


def test_kill_when_an_idempotent_producer_sends_again_then_each_message_is_there_once(
    start_process: ProcessFactory,
) -> None:
    port = port_of_its_own()
    process = start_process(*SETTINGS, "--port", str(port))
    sending = Sending(BrokerAddress(0, "127.0.0.1", port))
    sending.start()
    try:
        for _ in range(KILLS):
            sending.advance()
            process.kill()
            process = start_process(*SETTINGS, "--port", str(port))
        sending.advance()
    finally:
        sending.ends.set()
        sending.join(60)

    assert sending.error is None
    values: list[bytes] = []
    with process.peer() as peer:
        offset = 0
        while chunk := peer.read("events", offset).message_set:
            found = decode(chunk, offset)
            values += [payload for _, _, payload in found.messages]
            offset += found.valid_bytes
    assert values == [b"%d" % n for n in range(SET * sending.count)]

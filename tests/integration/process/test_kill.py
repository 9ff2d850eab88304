"""A broker killed under load: what it acknowledged is there again, in order, once."""

from __future__ import annotations

import os
import random
import threading
from contextlib import closing, suppress
from pathlib import Path

from broker.errors import BrokerError
from broker.producer.producer import Delivery, Producer
from broker.producer.settings import ProducerSettings
from broker.protocol.client_requests import Acks
from broker.protocol.codec import Fault, decode, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME
from broker.topic import TopicPartition
from tests.integration.process.broker_process import BrokerProcess
from tests.integration.process.conftest import ProcessFactory
from tests.support.waiting import wait_until

ROUNDS = 8
PARTITIONS = 2
SETTINGS = ("-X", "log.file.size=300000", "-X", f"num.partitions={PARTITIONS}")
LONGEST_ROUND_S = 0.5


class Publisher:
    """Publishes numbered messages to one partition, and never one of them again.

    Args:
        name: in every message; a publisher keeps it over all rounds.
        index: of the partition.
        batch: messages in a set.
        max_in_flight: sets in the window.
        codec: how the sets are compressed.
    """

    def __init__(
        self, name: str, index: int, *, batch: int, max_in_flight: int, codec: Codec = Codec.NONE
    ) -> None:
        self.name = name
        self.partition = TopicPartition("events", 0, index)
        self.acknowledged: list[int] = []
        self._sent: list[tuple[Delivery, range]] = []  # in this round
        self._batch = batch
        self._max_in_flight = max_in_flight
        self._codec = codec
        self._next = 0

    def run(self, broker: BrokerProcess) -> None:
        """Publish until the broker is gone."""
        self._sent = []
        with closing(broker.cluster()) as cluster, suppress(BrokerError):
            producer = Producer(
                cluster,
                lambda address: broker.connect(),
                ProducerSettings(acks=Acks.COMMITTED, max_in_flight=self._max_in_flight, retries=0),
            )
            with closing(producer):
                while True:
                    numbers = range(self._next, self._next + self._batch)
                    self._next += self._batch
                    message_set = build_set(map(self.payload, numbers), self._codec)
                    self._sent.append((producer.send_set(self.partition, message_set), numbers))
        self.acknowledged += self._acknowledged_now()

    @property
    def has_published(self) -> bool:
        """Return whether any of its messages was acknowledged."""
        return bool(self.acknowledged or self._acknowledged_now())

    def _acknowledged_now(self) -> list[int]:
        done = [one for one in list(self._sent) if one[0].is_done and one[0].error is None]
        return [number for _, numbers in done for number in numbers]

    def payload(self, number: int) -> bytes:
        return b"%s %d %s" % (self.name.encode(), number, b"x" * (number * 7 % 300))


def all_payloads(broker: BrokerProcess, index: int) -> list[bytes]:
    """Return every message of a partition, checked."""
    with broker.peer() as peer:
        (offset,) = peer.offsets("events", EARLIEST_TIME, 1, index)
        (end,) = peer.offsets("events", LATEST_TIME, 1, index)
        payloads: list[bytes] = []
        while offset < end:
            code, data = peer.fetch("events", offset, max_bytes=1 << 28, index=index)
            decoded = decode(data, offset)
            assert (code, decoded.fault) == (0, Fault.NONE)
            payloads += [payload for _, _, payload in decoded.messages]
            offset += len(data)
    return payloads


def check_round(broker: BrokerProcess, publishers: list[Publisher]) -> None:
    """Check what the restarted broker has against what the publishers know."""
    for index in range(PARTITIONS):
        found: dict[str, list[int]] = {one.name: [] for one in publishers}
        of_name = {one.name: one for one in publishers}
        for payload in all_payloads(broker, index):
            name, number, _ = payload.split(b" ", 2)
            publisher = of_name[name.decode()]
            assert publisher.partition.index == index
            assert payload == publisher.payload(int(number))
            found[publisher.name].append(int(number))
        for publisher in publishers:
            if publisher.partition.index == index:
                numbers = found[publisher.name]
                assert numbers == sorted(set(numbers)), "in order, once"
                assert set(publisher.acknowledged) <= set(numbers), "acknowledged, so there"


def run_and_kill(
    broker: BrokerProcess, publishers: list[Publisher], delay_s: float, *, is_last: bool
) -> None:
    """Let all publish at once, and kill the broker some time after the first set arrived.

    In the last round, not before each publisher has got an acknowledgement, in any round.
    """
    threads = [threading.Thread(target=one.run, args=(broker,)) for one in publishers]
    with broker.peer() as peer:
        before = peer.status()["bytes"]
        for thread in threads:
            thread.start()
        wait_until(lambda: peer.status()["bytes"] > before, "the first set")
    wait_until(lambda: has_logs(broker.data), "logs, which the first sets create")
    threading.Event().wait(delay_s)
    if is_last:
        wait_until(lambda: all(one.has_published for one in publishers), "acknowledgements")
    broker.kill()
    for thread in threads:
        thread.join()


def has_logs(data: Path) -> bool:
    """Return whether each partition has a segment."""
    return all(any((data / f"events_{index}").glob("*.pylog")) for index in range(PARTITIONS))


def spoil_tail(data: Path, index: int, chance: random.Random) -> None:
    """Put behind a log's end what a machine that lost its power may leave there."""
    segment = max((data / f"events_{index}").glob("*.pylog"))
    good = encode([b"never sent by anybody"])
    tails = [
        bytes(chance.randrange(1, 5000)),
        chance.randbytes(chance.randrange(20, 5000)),
        good[: chance.randrange(1, len(good))],
        good[:-1] + b"?",
        good[:4] + b"\7" + good[5:],
    ]
    with segment.open("ab") as file:
        file.write(chance.choice(tails))


def test_broker_when_killed_under_load_then_keeps_what_it_acknowledged_in_order_once(
    start_process: ProcessFactory,
) -> None:
    seed = int(os.environ.get("PYLOGCTL_TEST_SEED") or random.randrange(1 << 32))
    print(f"PYLOGCTL_TEST_SEED={seed}")  # shown when the test fails
    chance = random.Random(seed)
    publishers = [
        Publisher("single", 0, batch=1, max_in_flight=1),
        Publisher("pipelined", 0, batch=1, max_in_flight=16),
        Publisher("batch", 1, batch=50, max_in_flight=4),
        Publisher("packed", 1, batch=50, max_in_flight=2, codec=Codec.GZIP),
    ]
    broker = start_process(*SETTINGS)
    for number in range(ROUNDS):
        delay_s = chance.uniform(0, LONGEST_ROUND_S)
        run_and_kill(broker, publishers, delay_s, is_last=number == ROUNDS - 1)
        spoilt = chance.sample(range(PARTITIONS), chance.randrange(PARTITIONS + 1))
        for index in spoilt:
            spoil_tail(broker.data, index, chance)
        cut_before = count_cuts(broker.data)
        broker = start_process(*SETTINGS)
        with broker.peer() as peer:
            assert peer.status()["clean_start"] is False
        check_round(broker, publishers)
        # the kill itself can leave a set half written
        assert count_cuts(broker.data) >= cut_before + len(spoilt)
    assert all(one.acknowledged for one in publishers)


def count_cuts(data: Path) -> int:
    """Return how many side files with cut tails there are."""
    return sum(1 for one in data.glob("events_*/*") if one.suffix != ".pylog")


def test_broker_when_killed_while_it_recovers_then_next_start_recovers_all_the_same(
    start_process: ProcessFactory, tmp_path: Path
) -> None:
    sets = [encode([b"%d" % number]) for number in range(2000)]
    first = start_process("-X", "log.file.size=5000")
    with first.peer() as peer:
        for one in sets:
            peer.produce("events", one)
        peer.flush("events")
    first.kill()
    spoil_tail(first.data, 0, random.Random(1))
    for _ in range(3):
        start_process("-X", "log.file.size=5000").kill()
    last = start_process("-X", "log.file.size=5000")
    assert all_payloads(last, 0) == [b"%d" % number for number in range(2000)]

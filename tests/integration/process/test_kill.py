"""A broker killed under load: what it acknowledged is there again, in order, once."""

from __future__ import annotations

import os
import random
import threading
from collections import deque
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from broker.errors import BrokerError
from broker.log.format import BATCHES, ENTRIES
from broker.log.segment import LogFormat
from broker.producer.producer import Delivery, Producer
from broker.producer.settings import ProducerSettings
from broker.protocol.client_requests import Acks
from broker.protocol.codec import NEW_BATCH, Fault, decode, decode_records, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.record_batch import MAGIC_AT
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME
from broker.protocol.responses import decode_publish_response
from broker.topic import TopicPartition
from tests.integration.broker.server.peer import publish_request
from tests.integration.process.broker_process import BrokerProcess
from tests.integration.process.conftest import ProcessFactory
from tests.support.log_formats import set_of
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


def spoil_tail(log: Path, format: LogFormat, chance: random.Random) -> None:
    """Put behind a log's end what a machine that lost its power may leave there."""
    segment = max(log.glob(format.segment_name(0).replace("0", "[0-9]")))
    good = set_of(format, [b"never sent by anybody"])
    magic_at = 4 if format is ENTRIES else MAGIC_AT
    tails = [
        bytes(chance.randrange(1, 5000)),
        chance.randbytes(chance.randrange(20, 5000)),
        good[: chance.randrange(1, len(good))],
        good[:-1] + b"?",
        good[:magic_at] + b"\7" + good[magic_at + 1 :],
    ]
    with segment.open("ab") as file:
        file.write(chance.choice(tails))


def seeded() -> random.Random:
    seed = int(os.environ.get("PYLOGCTL_TEST_SEED") or random.randrange(1 << 32))
    print(f"PYLOGCTL_TEST_SEED={seed}")  # shown when the test fails
    return random.Random(seed)


def test_broker_when_killed_under_load_then_keeps_what_it_acknowledged_in_order_once(
    start_process: ProcessFactory,
) -> None:
    chance = seeded()
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
            spoil_tail(broker.data / f"events_{index}", ENTRIES, chance)
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
    spoil_tail(first.data / "events_0", ENTRIES, random.Random(1))
    for _ in range(3):
        start_process("-X", "log.file.size=5000").kill()
    last = start_process("-X", "log.file.size=5000")
    assert all_payloads(last, 0) == [b"%d" % number for number in range(2000)]


class IdempotentPublisher:
    """Publishes numbered records to a topic, and those of unknown outcome again."""

    def __init__(self) -> None:
        self.count = 0
        """Of records."""
        self.acknowledged_count = 0
        self._unknown: deque[tuple[bytes, int]] = deque()  # batches and their counts, in order

    def run(self, broker: BrokerProcess, *, end: int) -> None:
        """Publish until the broker is gone, or until so many records are acknowledged."""
        with suppress(BrokerError, OSError, EOFError), broker.peer() as peer:
            peer.make_topics(["events"])
            in_flight = 0
            for number, (batch, _) in enumerate(self._unknown, 1):
                peer.send_extension(publish_request("events", batch), number)
                in_flight = number
            sent = in_flight
            while self.acknowledged_count < end:
                while in_flight < _IN_FLIGHT and self.count < end:
                    sent, in_flight = sent + 1, in_flight + 1
                    peer.send_extension(publish_request("events", self._next()), sent)
                reader = peer.receive_extension(sent - in_flight + 1)
                (published,) = decode_publish_response(reader)
                assert (published.error, published.text) == (0, "")
                in_flight -= 1
                _, count = self._unknown.popleft()
                assert published.base_offset == self.acknowledged_count
                self.acknowledged_count += count

    def has_acknowledged(self, count: int) -> bool:
        """Return whether at least so many records are acknowledged."""
        return self.acknowledged_count >= count

    def _next(self) -> bytes:
        numbers = range(self.count, self.count + 1 + self.count % 7)
        values = [b"%d %s" % (number, b"x" * (number * 7 % 300)) for number in numbers]
        head = NEW_BATCH._replace(producer_id=77, producer_epoch=0, base_sequence=self.count)
        batch = set_of(BATCHES, values, head=head)
        self.count += len(values)
        self._unknown.append((batch, len(values)))
        return batch


_IN_FLIGHT = 5


def numbers_of_records(broker: BrokerProcess) -> list[int]:
    """Return the number of each record, which must be at its offset."""
    found: list[int] = []
    with broker.peer() as peer:
        while (part := peer.read("events", len(found))).message_set:
            assert part.error == 0
            decoded = decode_records(part.message_set)
            found += [int((one.value or b"").split()[0]) for one in decoded.records]
            assert decoded.records[-1].offset == len(found) - 1
    return found


def test_broker_when_killed_under_load_then_a_repeated_batch_is_in_the_log_once(
    start_process: ProcessFactory,
) -> None:
    chance = seeded()
    settings = ("-X", "log.file.size=100000", "-X", "log.format=kafka")
    publisher = IdempotentPublisher()
    for number in range(ROUNDS):
        broker = start_process(*settings)
        if number:
            found = numbers_of_records(broker)
            assert found == [*range(len(found))]
            assert publisher.acknowledged_count <= len(found) <= publisher.count
        thread = threading.Thread(target=publisher.run, args=(broker,), kwargs={"end": 1 << 40})
        thread.start()
        wait_until(partial(publisher.has_acknowledged, 100 * (number + 1)), "acknowledgements")
        threading.Event().wait(chance.uniform(0, LONGEST_ROUND_S))
        broker.kill()
        thread.join()
        if chance.random() < 0.5:
            spoil_tail(broker.data / "events-0", BATCHES, chance)
    broker = start_process(*settings)
    publisher.run(broker, end=publisher.count)
    assert numbers_of_records(broker) == [*range(publisher.count)]

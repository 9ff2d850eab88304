"""A member of a group as Kafka 0.7 has them, with no line of ours.

Called like `group_member`, and writes the same lines. It knows ZooKeeper's nodes and the broker's
bytes from 0.7's protocol alone, and does as 0.7's consumer does, step by step: it gives up all it
owns in each rebalance, watches no owner nodes, and idles when its attempts have run out. What it
finds in the registry must be what 0.7 can read, or it ends with an error.

It differs from 0.7 in one thing: it moves the consumed offset once a message is written out, not
before, as otherwise a kill could lose a message by 0.7's fault.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import queue
import re
import signal
import socket
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError

from tests.integration.cluster.foreign_wire import (
    EARLIEST,
    LATEST,
    OFFSET_OUT_OF_RANGE,
    Broker,
    Fetch,
    iter_messages,
    valid_bytes,
)

log = logging.getLogger("foreign")

_FETCH_BYTES = 1 << 20
_FETCH_BACKOFF_S = 0.02
_REBALANCE_ATTEMPTS = 100  # 0.7 makes 4, with longer waits, and idles after them


def subscription_value(topics: str) -> str:
    """Return the value of a member's node, byte for byte as 0.7 writes it."""
    if topics[0] in "*!":
        return topics
    counts = (one.split(":") for one in topics.split(","))
    return "{ " + ",".join(f'"{topic}": {count}' for topic, count in counts) + " }"


def stream_counts(subscription: str, topics: list[str]) -> dict[str, int]:
    """Return how many streams a member has of each topic, by the value of its node."""
    if subscription[0] in "*!":
        found = re.fullmatch(r"([*!])(\d+)\1(.*)", subscription)
        assert found, subscription
        taken = [one for one in topics if bool(re.fullmatch(found[3], one)) is (found[1] == "*")]
        return dict.fromkeys(taken, int(found[2]))
    counts = json.loads(subscription)
    assert all(type(count) is int for count in counts.values()), subscription
    return dict(counts)


class Nodes:
    """The registry as 0.7 reads and writes it.

    Args:
        zk: the member's session.
        group: the group's name.
        on_change: called when children that were read have changed.
    """

    def __init__(self, zk: KazooClient, group: str, on_change: Callable[[object], None]) -> None:
        self._zk = zk
        self._root = f"/consumers/{group}"
        self._on_change = on_change

    def register(self, consumer: str, subscription: str) -> None:
        path = f"{self._root}/ids/{consumer}"
        self._zk.create(path, subscription.encode(), ephemeral=True, makepath=True)

    def brokers(self) -> dict[str, bytes]:
        """Return the registration of each broker; 0.7 does not watch them."""
        try:
            ids = self._zk.get_children("/brokers/ids")
        except NoNodeError:
            return {}
        return {one: self._zk.get(f"/brokers/ids/{one}")[0] for one in ids}

    def topics(self) -> list[str]:
        return self._children("/brokers/topics")

    def partitions(self, topic: str) -> list[str]:
        """Return the names of a topic's partitions, sorted as text."""
        names = []
        for broker_id in self._children(f"/brokers/topics/{topic}"):
            count = int(self._zk.get(f"/brokers/topics/{topic}/{broker_id}")[0])
            names += [f"{broker_id}-{index}" for index in range(count)]
        return sorted(names)

    def threads(self, topics: list[str]) -> dict[str, list[str]]:
        """Return the threads of all members that read each topic, sorted as text."""
        threads: dict[str, list[str]] = defaultdict(list)
        for consumer in self._children(f"{self._root}/ids"):
            with suppress(NoNodeError):
                value, _ = self._zk.get(f"{self._root}/ids/{consumer}")
                for topic, count in stream_counts(value.decode(), topics).items():
                    threads[topic] += [f"{consumer}-{number}" for number in range(count)]
        return {topic: sorted(found) for topic, found in threads.items()}

    def _children(self, path: str) -> list[str]:
        try:
            return list(self._zk.get_children(path, watch=self._on_change))
        except NoNodeError:
            self._zk.exists(path, watch=self._on_change)
            return []

    def claim(self, threads: Mapping[tuple[str, str], str]) -> bool:
        """Make threads own partitions: all of them, or none."""
        made = []
        for (topic, name), thread in threads.items():
            try:
                path = f"{self._root}/owners/{topic}/{name}"
                self._zk.create(path, thread.encode(), ephemeral=True, makepath=True)
                made.append((topic, name))
            except NodeExistsError:
                log.info("waiting for the partition ownership to be deleted: %s", name)
        if len(made) < len(threads):
            for topic, name in made:
                self.release(topic, name)
        return len(made) == len(threads)

    def release(self, topic: str, name: str) -> None:
        with suppress(NoNodeError):
            self._zk.delete(f"{self._root}/owners/{topic}/{name}")

    def offset(self, topic: str, name: str) -> int | None:
        try:
            return int(self._zk.get(f"{self._root}/offsets/{topic}/{name}")[0])
        except NoNodeError:
            return None

    def set_offset(self, topic: str, name: str, offset: int) -> None:
        path, value = f"{self._root}/offsets/{topic}/{name}", str(offset).encode()
        try:
            self._zk.set(path, value)
        except NoNodeError:
            self._zk.create(path, value, makepath=True)


@dataclass(eq=False)
class Partition:
    """A partition that is owned: its queue, and what was fetched and written out of it."""

    topic: str
    name: str
    chunks: queue.Queue[Chunk]
    fetched: int
    consumed: int

    @property
    def broker_id(self) -> str:
        return self.name.split("-")[0]

    @property
    def index(self) -> int:
        return int(self.name.split("-")[1])


@dataclass
class Chunk:
    """One partition's part of an answer."""

    partition: Partition
    offset: int
    message_set: bytes


class Fetcher(threading.Thread):
    """Reads from one broker what is owned of it.

    Args:
        registration: the value of the broker's node.
        partitions: all on that broker.
        reset: puts a partition right whose offset is out of range.
    """

    def __init__(
        self,
        registration: bytes,
        partitions: list[Partition],
        reset: Callable[[Broker, Partition], None],
    ) -> None:
        super().__init__(daemon=True)
        self._registration = registration
        self._partitions = partitions
        self._reset = reset
        self._stop_event = threading.Event()

    def stop(self) -> None:
        self._stop_event.set()

    def run(self) -> None:
        """Fetch until stopped; an error ends it, and only the next rebalance replaces it."""
        try:
            broker = Broker(self._registration)
            while not self._stop_event.is_set():
                if not self._fetch(broker):
                    self._stop_event.wait(_FETCH_BACKOFF_S)
            broker.close()
        except (OSError, KazooException) as error:
            log.info("fetcher: %r", error)

    def _fetch(self, broker: Broker) -> int:
        """Make one multifetch; return how many bytes of whole messages came."""
        fetches = [
            Fetch(one.topic, one.index, one.fetched, _FETCH_BYTES) for one in self._partitions
        ]
        total = 0
        answers = broker.multifetch(fetches)
        for partition, (code, message_set) in zip(self._partitions, answers, strict=True):
            if code == OFFSET_OUT_OF_RANGE:
                self._reset(broker, partition)
                continue
            assert code == 0, f"error code {code} from {partition.name}"
            size = valid_bytes(message_set)
            if size:
                self._put(Chunk(partition, partition.fetched, message_set[:size]))
            partition.fetched += size
            total += size
        return total

    def _put(self, chunk: Chunk) -> None:
        while not self._stop_event.is_set():
            with suppress(queue.Full):
                chunk.partition.chunks.put(chunk, timeout=0.05)
                return


class Member:
    """A member with its own session.

    Args:
        settings: 0.7's properties.
        subscription: the value of its node.
        output: descriptor for what it is given.
    """

    def __init__(self, settings: dict[str, str], subscription: str, output: int) -> None:
        host, millis = socket.gethostname(), int(time.time() * 1000)
        digits = f"{uuid.uuid4().int >> 64:x}"[:8]
        name = settings.get("consumerid") or f"{host}-{millis}-{digits}"
        self._settings = settings
        self._subscription = subscription
        self._output = output
        self.id = f"{settings['groupid']}_{name}"
        self._zk = KazooClient(
            settings["zk.connect"], timeout=int(settings["zk.sessiontimeout.ms"]) / 1000
        )
        self._nodes = Nodes(self._zk, settings["groupid"], self._trigger)
        self._lock = threading.Lock()  # guards what is owned, and each step of a stream
        self._owned: dict[tuple[str, str], Partition] = {}
        self._queues: dict[tuple[str, int], queue.Queue[Chunk]] = {}
        self._fetchers: list[Fetcher] = []
        self._is_triggered = threading.Event()
        self._is_stopping = threading.Event()
        self._is_expired = False

    def stop(self) -> None:
        """Have `run` end."""
        self._is_stopping.set()
        self._is_triggered.set()

    def run(self) -> None:
        """Be a member until told to stop."""
        self._zk.add_listener(self._note_state)
        self._zk.start()
        self._nodes.register(self.id, self._subscription)
        for target in (self._consume, self._commit_regularly):
            threading.Thread(target=target, daemon=True).start()
        self._rebalance_with_retries()
        while not self._is_stopping.is_set():
            if self._is_triggered.wait(1):
                self._is_triggered.clear()
                self._come_back()
                self._rebalance_with_retries()
        self._stop_fetchers()
        with self._lock:
            self._commit()
            self._owned.clear()
        self._zk.stop()
        self._zk.close()

    def _trigger(self, _event: object) -> None:
        self._is_triggered.set()

    def _note_state(self, state: str) -> None:
        if state == KazooState.LOST:
            self._is_expired = True
        if state == KazooState.CONNECTED:
            self._is_triggered.set()

    def _come_back(self) -> None:
        """Register again after an expired session; what was owned is forgotten, uncommitted."""
        if self._is_expired and self._zk.connected:
            self._is_expired = False
            with self._lock:
                self._owned.clear()
            self._nodes.register(self.id, self._subscription)

    def _rebalance_with_retries(self) -> None:
        for _ in range(_REBALANCE_ATTEMPTS):
            try:
                if self._rebalance():
                    log.info("%s owns %d partitions", self.id, len(self._owned))
                    return
            except KazooException as error:
                log.info("rebalance: %r", error)
            self._stop_fetchers()
            if self._is_stopping.wait(int(self._settings["rebalance.backoff.ms"]) / 1000):
                return
            if self._is_expired:
                return  # the new session brings another one
        log.error("%s can't rebalance", self.id)

    def _rebalance(self) -> bool:
        brokers = self._nodes.brokers()
        topics = self._nodes.topics()
        mine = stream_counts(self._subscription, topics)
        threads = self._nodes.threads(topics)
        partitions = {topic: self._nodes.partitions(topic) for topic in mine}
        self._stop_fetchers()
        self._release()
        gained: dict[tuple[str, str], Partition] = {}
        decision: dict[tuple[str, str], str] = {}
        for topic, count in mine.items():
            for number in range(count):
                thread = f"{self.id}-{number}"
                for name in _share(partitions[topic], threads[topic], thread):
                    decision[topic, name] = thread
                    gained[topic, name] = self._gain(topic, name, number, brokers)
        if not self._nodes.claim(decision):
            return False
        with self._lock:
            self._owned = gained
            # 0.7 has read the offsets before, and reads twice what a former owner commits until the
            # claim: tests could not tell that from what our members do
            for (topic, name), one in gained.items():
                if (offset := self._nodes.offset(topic, name)) is not None:
                    one.fetched = one.consumed = offset
        return self._start_fetchers(brokers)

    def _release(self) -> None:
        with self._lock:
            self._commit()
            for topic, name in self._owned:
                self._nodes.release(topic, name)
            self._owned.clear()

    def _gain(self, topic: str, name: str, number: int, brokers: dict[str, bytes]) -> Partition:
        offset = self._nodes.offset(topic, name)
        if offset is None:
            offset = self._first_offset(topic, name, brokers)
        chunks = self._queues.setdefault((topic, number), queue.Queue(10))
        return Partition(topic, name, chunks, fetched=offset, consumed=offset)

    def _first_offset(self, topic: str, name: str, brokers: dict[str, bytes]) -> int:
        broker_id, index = name.split("-")
        try:
            broker = Broker(brokers[broker_id])
        except (OSError, KeyError):
            return -1  # the first fetch finds it out of range
        try:
            return broker.offset_before(topic, int(index), self._reset_time())
        finally:
            broker.close()

    def _reset_time(self) -> int:
        return LATEST if self._settings.get("autooffset.reset") == "largest" else EARLIEST

    def _reset(self, broker: Broker, partition: Partition) -> None:
        offset = broker.offset_before(partition.topic, partition.index, self._reset_time())
        self._nodes.set_offset(partition.topic, partition.name, offset)
        with self._lock:
            partition.fetched = partition.consumed = offset

    def _stop_fetchers(self) -> None:
        for one in self._fetchers:
            one.stop()
        for one in self._fetchers:
            one.join()
        self._fetchers.clear()
        for chunks in self._queues.values():
            with suppress(queue.Empty):
                while True:
                    chunks.get_nowait()

    def _start_fetchers(self, brokers: dict[str, bytes]) -> bool:
        """Start one for each broker; return False if one is not registered.

        A broker that was registered between the reads of the brokers and of the partitions is
        such a one. 0.7 fails the attempt there, and makes another.
        """
        broker_ids = {one.broker_id for one in self._owned.values()}
        for broker_id in broker_ids - brokers.keys():
            log.info("broker %s is unavailable, fetchers could not be started", broker_id)
            return False
        for broker_id in broker_ids:
            there = [one for one in self._owned.values() if one.broker_id == broker_id]
            self._fetchers.append(Fetcher(brokers[broker_id], there, self._reset))
            self._fetchers[-1].start()
        return True

    def _commit(self) -> None:
        """Write where each owned partition is, changed or not; with the lock."""
        for (topic, name), partition in self._owned.items():
            try:
                self._nodes.set_offset(topic, name, partition.consumed)
            except KazooException as error:
                log.info("commit of %s: %r", name, error)

    def _commit_regularly(self) -> None:
        while not self._is_stopping.wait(int(self._settings["autocommit.interval.ms"]) / 1000):
            with self._lock:
                self._commit()

    def _consume(self) -> None:
        """Write out what comes to the streams, one chunk of each in turn."""
        while True:
            for chunks in list(self._queues.values()):
                with suppress(queue.Empty):
                    self._write(chunks.get_nowait())
            time.sleep(0.001)

    def _write(self, chunk: Chunk) -> None:
        one = chunk.partition
        for offset, next_offset, payload in iter_messages(chunk.message_set, chunk.offset):
            with self._lock:
                if self._owned.get((one.topic, one.name)) is not one:
                    return  # a rebalance clears the chunk under iteration
                line = f"{one.topic} {one.name} {offset} {next_offset} {payload.decode()}\n"
                os.write(self._output, line.encode())
                one.consumed = next_offset


def _share(partitions: list[str], threads: list[str], thread: str) -> list[str]:
    place = threads.index(thread)
    each, extra = divmod(len(partitions), len(threads))
    start = each * place + min(place, extra)
    return partitions[start : start + each + (1 if place < extra else 0)]


def _end_with_thread(failure: threading.ExceptHookArgs) -> None:
    threading.__excepthook__(failure)
    os._exit(1)


def main() -> None:
    faulthandler.register(signal.SIGUSR1)
    threading.excepthook = _end_with_thread
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(message)s")
    path, topics, *properties = sys.argv[1:]
    settings = dict(one.split("=", 1) for one in properties)
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    member = Member(settings, subscription_value(topics), output)
    signal.signal(signal.SIGTERM, lambda *_: member.stop())
    member.run()


if __name__ == "__main__":
    main()

"""What programs queue and do not close: at their end, and when they drop it while they run."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import pylogctl
from broker.producer.config import ProducerConfig
from broker.producer.producer import Producer
from pylogctl.testing import Broker, Cluster, memory_cluster
from tests.support.waiting import wait_until

COUNT = 500
THREADS = f"""
client = pylogctl.connect(address)
producer = client.producer()
for number in range({COUNT}):
    producer.send(topic, str(number))
"""
OLD = f"""
from broker.producer.config import ProducerConfig
from broker.producer.producer import Producer
producer = Producer.from_config(
    ProducerConfig.from_properties({{"broker.list": "0:" + address, "producer.type": "async"}})
)
for number in range({COUNT}):
    producer.send(topic, [str(number).encode()])
"""
PROCESS = f"""
import multiprocessing
def work():
    producer = pylogctl.connect(address).producer()
    for number in range({COUNT}):
        producer.send(topic, str(number))
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
"""
LOOP = f"""
import asyncio
async def main():
    client = await pylogctl.aconnect(address)
    producer = client.producer(linger=60)
    for number in range({COUNT}):
        await producer.send(topic, str(number))
    %s
asyncio.run(main())
"""
PROGRAMS = {
    "threads": THREADS,
    "threads, exit": THREADS + "sys.exit()",
    "threads, error": THREADS + "raise ValueError('of the program')",
    "0.7": OLD,
    "process": PROCESS,
    "asyncio": LOOP % "",
    "asyncio, exit": LOOP % "sys.exit()",
    "asyncio, error": LOOP % "raise ValueError('of the program')",
}


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    head = "import sys\nimport pylogctl\naddress, topic = sys.argv[1:]\n"
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", head + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_when_it_ends_without_closing_its_producer_then_all_messages_are_stored(
    name: str, pylog: pylogctl.Client, pylog_topic: str, pylog_address: str
) -> None:
    done = run(PROGRAMS[name], pylog_address, pylog_topic)

    assert done.returncode == ("error" in name)
    assert [int(one.value) for one in pylog.read(pylog_topic)] == list(range(COUNT))
    assert "was not closed" in done.stderr
    assert "RuntimeError" not in done.stderr
    assert "not delivered" not in done.stderr


def test_program_when_it_ends_and_the_broker_is_dead_then_says_how_many_messages_are_left() -> None:
    done = run(
        """
from broker.producer import unclosed
from pylogctl.testing import Broker
unclosed.LIMIT_S = 0.5
with Broker() as broker:
    producer = pylogctl.connect(broker.address).producer()
    for topic in "ab":
        producer.send(topic, "stored").result()
for number in range(37):
    producer.send("ab"[number % 2], "lost")
""",
        "",
        "",
    )

    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "Warning" not in line] == [
        "37 messages to 'a', 'b' were not delivered: the producer was not closed"
    ]


def test_program_when_its_loop_is_not_closed_then_says_how_many_messages_are_left(
    pylog_address: str, pylog_topic: str
) -> None:
    program = (LOOP % "").replace("asyncio.run(", "asyncio.new_event_loop().run_until_complete(")

    done = run(program, pylog_address, pylog_topic)

    assert f"{COUNT} messages to '{pylog_topic}' were not delivered" in done.stderr


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with memory_cluster(1) as running:
        with running.connect() as client:
            client.send("t", "hello")
        yield running


HELD = """
import asyncio, gc, os, threading, time
def held():
    gc.collect()
    return threading.active_count(), len(os.listdir("/proc/self/fd"))
def is_back():
    return all(now <= then for now, then in zip(held(), before))
give_up_s = time.monotonic() + 60
"""
DROPS = (
    HELD
    + """
kept = pylogctl.connect(address) if topic == "kept" else None
if kept:
    kept.send("t", "hello")
    kept.groups()  # connects to ZooKeeper
before = held()
for number in range(3):
    client = kept or pylogctl.connect(address)
    %s
del client
while not is_back() and time.monotonic() < give_up_s:
    time.sleep(0.01)
assert is_back(), (before, held())
if kept:
    kept.close()
"""
)
ASYNC_DROPS = (
    HELD
    + """
async def use(number):
    client = await pylogctl.aconnect(address)
    %s
async def main():
    global before
    before = held()
    for number in range(3):
        await use(number)
    while not is_back() and time.monotonic() < give_up_s:
        await asyncio.sleep(0.01)
    assert is_back(), (before, held())
asyncio.run(main())
"""
)
CANCELS = (
    HELD
    + """
async def use(number, ending):
    async with pylogctl.aconnect(address) as client:
        %s
        ending.set()
async def main():
    global before
    before = held()
    for number in range(8):
        ending = asyncio.Event()
        using = asyncio.create_task(use(number, ending))
        await ending.wait()
        for _ in range(number):  # turns of the loop, in which it closes
            await asyncio.sleep(0)
        using.cancel()
        await asyncio.wait([using])
    while not is_back() and time.monotonic() < give_up_s:
        await asyncio.sleep(0.01)
    assert is_back(), (before, held())
asyncio.run(main())
"""
)
GROUP = 'client.group(f"{topic}-{number}", "t", start="earliest")'
USES = [
    "client.topics()",
    'client.send("t", "hello")',
    'client.producer().send("t", "hello")',
    'next(client.read("t"))',
    f"next({GROUP})",
]
ASYNC_USES = [
    "await client.topics()",
    'await client.send("t", "hello")',
    'await client.producer(linger=60).send("t", "hello")',
    'await anext(client.read("t"))',
    f"await anext({GROUP})",
]


@pytest.mark.parametrize("use", USES)
def test_client_when_dropped_then_its_threads_and_descriptors_go_and_it_warns(
    cluster: Cluster, use: str
) -> None:
    done = run(DROPS % use, cluster.address, "threads")

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("pylogctl.Client object at ") == 3


@pytest.mark.parametrize("use", [USES[2], USES[4]])
def test_what_a_client_has_opened_when_dropped_then_ends_and_warns(
    cluster: Cluster, use: str
) -> None:
    done = run(DROPS % use, cluster.address, "kept")

    assert done.returncode == 0, done.stderr
    assert done.stderr.count(" was not closed") == 3


@pytest.mark.parametrize("use", ASYNC_USES)
def test_client_for_asyncio_when_dropped_then_its_threads_and_descriptors_go_and_it_warns(
    cluster: Cluster, use: str
) -> None:
    done = run(ASYNC_DROPS % use, cluster.address, "asyncio")

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("AsyncClient object at ") == 3


@pytest.mark.parametrize("use", ASYNC_USES)
def test_close_for_asyncio_when_cancelled_at_any_turn_then_nothing_stays_open(
    cluster: Cluster, use: str
) -> None:
    done = run(CANCELS % use, cluster.address, "cancelled")

    assert done.returncode == 0, done.stderr


def test_queued_messages_when_their_producer_is_dropped_then_are_sent(
    pylog: pylogctl.Client, pylog_topic: str, pylog_address: str
) -> None:
    config = ProducerConfig.from_properties(
        {"broker.list": f"0:{pylog_address}", "producer.type": "async", "queue.time": "60000"}
    )
    with pytest.warns(ResourceWarning, match="was not closed"):
        Producer.from_config(config).send(pylog_topic, [b"0.7"])
        with pylogctl.connect(pylog_address) as client:
            client.producer().send(pylog_topic, "threads")
        gc.collect()

    wait_until(lambda: pylog.topics() and pylog.count(pylog_topic) == 2, "both messages")


def test_failure_when_the_producer_was_dropped_then_is_logged(
    pylog: pylogctl.Client,
    pylog_topic: str,
    pylog_own_broker: Callable[[], Broker],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = pylog_own_broker()
    with broker.connect(timeout=1) as client, pytest.warns(ResourceWarning, match="not closed"):
        producer = client.producer()
        producer.send(pylog_topic, "stored").result()
        broker.stop()
        producer.send(pylog_topic, "lost")
        del producer
        gone = "messages of 1 send were not delivered"
        wait_until(lambda: gc.collect() >= 0 and gone in caplog.text, "the line about it")


def test_queued_messages_when_their_asyncio_producer_is_dropped_then_are_sent(
    pylog: pylogctl.Client, pylog_topic: str, pylog_address: str
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(pylog_address) as client:
            await client.producer(linger=60).send(pylog_topic, "hello")

    with pytest.warns(ResourceWarning, match="AsyncProducer object at .* was not closed"):
        asyncio.run(main())
    assert [one.value for one in pylog.read(pylog_topic)] == [b"hello"]

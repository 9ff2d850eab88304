"""What README and docs/python.md show, as users run it: at once, again, early, and with a loss.

Each command and call on topics runs twice at once, again after its end, while its topic is being
made, and with one of three brokers dead. Lines of the pages run as they stand, with other names of
topics and groups; commands of the table get a topic. `NOT_RUN_COMMANDS` and `NOT_RUN_CALLS` have
what is not run here, and why.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shlex
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pylogctl
from pylogctl.cli.environment import ExitStatus
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.integration.cluster.away import DEAD, one_dead
from tests.support.command_line import Invoke, Result, Spawn
from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import invoke as invoke
from tests.support.command_line import spawn as spawn
from tests.support.documents import REPOSITORY, client_calls, command_lines, table_commands
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

PAGES = [REPOSITORY / "README.md", REPOSITORY / "docs/python.md"]
ALL = [f"{home}-{index}" for home in range(3) for index in range(2)]
LED = [one for one in ALL if not one.startswith(f"{DEAD}-")]
AWAY = f"broker {DEAD} is away: 2 of 6 partitions of topic '{{}}' (2-0 .. 2-1) cannot be read"
TOPICS = (
    "letters",
    "syslog",
    "web",
    "blobs",
    "orders",
    "payments",
    "orders-test",
    "clicks",
    "audit",
)

MESSAGES, ROWS = "messages", "rows"
READS = {
    "consume letters --from-beginning --exit-at-end": MESSAGES,
    "tail syslog": MESSAGES,
    "consume web -o start -e": MESSAGES,
    "consume blobs -o start -e --jsonl": MESSAGES,
    "consume web -o @-10m: -e --grep ' 50[0-9] ' -F '%o %s\\n'": MESSAGES,
    "consume web -o start -e --grep 'GET /login' --grep-at broker": MESSAGES,
    "topic sample": MESSAGES,
    "topic describe": ROWS,
    "topic offsets": ROWS,
    "topic count": ROWS,
}
"""Lines, or commands, and what each line of their output is about."""
PRODUCE = [
    "produce letters",
    "produce syslog",
    "produce web",
    "produce blobs -L",
    "produce orders",
]
COPY = "copy orders orders-test -o @-1h --verify"
GROUP = "consume --group billing orders payments -o start -e"
DESCRIBE = "group describe billing"
RESET = "group reset billing --topic orders --to @-2h --execute --yes"
RETRY = "consume orders --group billing -o start -e --exec 'bill --at {offset}' --retry-dir failed"
RETRY_LIST = "retry list failed"
DRAIN = "retry drain failed --all --exec 'bill --at {offset}'"
COUNTED = "produce clicks --audit audit --time-field .ts"
AUDIT = "audit check audit --count --time-field .ts --fail-above 0"
LOAD = "pipeline load web orders --to lake --local"
DRY_LOAD = "pipeline load web --to lake --dry-run"
CREATE = "topic create orders --partitions 6 --replication-factor 3 --set min.insync.replicas=2"
RUN = [
    *READS, *PRODUCE, COPY, GROUP, DESCRIBE, RESET, RETRY, RETRY_LIST, DRAIN, COUNTED, AUDIT,
    LOAD, DRY_LOAD, CREATE,
]  # fmt: skip


class Commands:
    """Command lines of the pages, with topics, groups and files that no other test has."""

    _numbers = itertools.count()

    def __init__(self, cluster: Cluster, invoke: Invoke, spawn: Spawn, home: Path) -> None:
        self._invoke = invoke
        self._spawn = spawn
        self._home = home
        self.cluster = cluster
        number = next(self._numbers)
        self.names = {one: f"{one}{number}" for one in (*TOPICS, "billing")}

    def words(self, line: str) -> list[str]:
        """Return the words of a line; a command without arguments gets a topic, `tail` an end."""
        command, *others = shlex.split(line)
        words = [command, *(self.names.get(one, one) for one in others)]
        if line in READS and len(words) == 2 and command == "topic":
            words.append(self.names["web"])
        return [*words, "-e"] if words[0] == "tail" else words

    def run(self, line: str, stdin: bytes = b"") -> Result:
        return self._invoke(*self.words(line), stdin=stdin)

    def run_twice_at_once(self, line: str, stdin: bytes = b"") -> list[Result]:
        pipes = {"stdin": subprocess.PIPE, "cwd": self._home}
        both = [self._spawn(*self.words(line), **pipes) for _ in range(2)]
        with ThreadPoolExecutor(2) as pool:
            ended = list(pool.map(lambda one: one.communicate(stdin, timeout=120), both))
        return [
            Result(process.returncode, out, err.decode())
            for process, (out, err) in zip(both, ended, strict=True)
        ]

    def topic_of(self, line: str) -> str:
        return next(one for one in self.words(line) if one in self.names.values())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(3, {"num.partitions": "2"}) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[pylogctl.Client]:
    with pylogctl.connect(cluster.broker(0).address) as connected:
        yield connected


@pytest.fixture
def commands(
    cluster: Cluster,
    invoke: Invoke,
    spawn: Spawn,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Commands:
    monkeypatch.setenv("PYLOGCTL_ZOOKEEPER", cluster.zookeeper)
    monkeypatch.chdir(tmp_path)
    return Commands(cluster, invoke, spawn, tmp_path)


@pytest.fixture
def bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that fails until there is a file `works`, and then adds its input to `bills`."""
    made = tmp_path / "bin" / "bill"
    made.parent.mkdir()
    made.write_text(f"#!/bin/sh\ncd {made.parent}\n[ -e works ] && cat >> bills && echo >> bills\n")
    made.chmod(0o755)
    monkeypatch.setenv("PATH", f"{made.parent}:{os.environ['PATH']}")
    return made


def payload(name: str) -> str:
    return f"GET /login 501 {name}"


def fill(client: pylogctl.Client, topic: str) -> None:
    """Send a message to each partition: its name. The first one makes the topic."""
    for one in reversed(ALL):
        client.send(topic, payload(one), partition=one)


def partitions(result: Result) -> list[str]:
    """Return the partition that each line of output is about, or a message's."""
    found = (re.search(r".*\b(\d-\d)\b", line) for line in result.text.splitlines())
    return sorted(one[1] for one in found if one)


def while_made(client: pylogctl.Client, topic: str, ask: Callable[[], Any]) -> list[Any]:
    """Return what is answered while a topic is made and filled."""
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(fill, client, topic)
        answers = [ask()]
        while not made.done():
            answers.append(ask())
        made.result()
    return answers


# Reading commands


@pytest.mark.parametrize("line", READS)
def test_reading_command_when_run_twice_at_once_and_again_then_each_gives_the_whole(
    commands: Commands, client: pylogctl.Client, line: str
) -> None:
    fill(client, commands.topic_of(line))
    results = [*commands.run_twice_at_once(line), commands.run(line)]
    assert [(one.status, partitions(one)) for one in results] == [(0, ALL)] * 3


@pytest.mark.parametrize(("line", "kind"), READS.items())
def test_reading_command_when_its_topic_is_being_made_then_knows_it_whole_or_not_at_all(
    commands: Commands, client: pylogctl.Client, line: str, kind: str
) -> None:
    for result in while_made(client, commands.topic_of(line), lambda: commands.run(line)):
        found = partitions(result)
        if result.status == ExitStatus.NOT_FOUND:
            assert found == []
        else:
            assert result.status == ExitStatus.OK
            assert found == ALL if kind == ROWS else Counter(found) <= Counter(ALL)
    assert partitions(commands.run(line)) == ALL


# Commands that change something


def messages_of(client: pylogctl.Client, topic: str) -> Counter[bytes]:
    """Return the messages of a topic, which has all its partitions."""
    assert [one.partition.name for one in client.describe(topic)] == ALL
    return Counter(one.value for one in client.read(topic))


def framed(line: str, values: list[bytes]) -> bytes:
    if "-L" in line:
        return b"".join(struct.pack(">I", len(one)) + one for one in values)
    return b"".join(one + b"\n" for one in values)


VALUES = [json.dumps({"ts": 1_790_000_000_000 + number}).encode() for number in range(300)]


@pytest.mark.parametrize("line", PRODUCE)
def test_produce_when_two_make_the_topic_at_once_and_one_comes_later_then_nothing_is_lost(
    commands: Commands, client: pylogctl.Client, line: str
) -> None:
    stdin = framed(line, VALUES)
    results = [*commands.run_twice_at_once(line, stdin), commands.run(line, stdin)]
    assert [one.status for one in results] == [0] * 3
    assert messages_of(client, commands.topic_of(line)) == Counter(VALUES * 3)


def test_audit_when_producers_make_the_topic_at_once_and_beside_it_then_counts_are_right(
    commands: Commands, client: pylogctl.Client
) -> None:
    stdin = framed(COUNTED, VALUES)
    with ThreadPoolExecutor(1) as pool:
        both = pool.submit(commands.run_twice_at_once, COUNTED, stdin)
        early = [commands.run(AUDIT)]
        while not both.done():
            early.append(commands.run(AUDIT))
    # the times in the messages are over: what is not counted yet is too many
    early_ones = {ExitStatus.OK, ExitStatus.NOT_FOUND, ExitStatus.THRESHOLD}
    assert {one.status for one in early} <= early_ones
    assert [one.status for one in (*both.result(), commands.run(COUNTED, stdin))] == [0] * 3
    assert messages_of(client, commands.topic_of(COUNTED)) == Counter(VALUES * 3)
    for result in (*commands.run_twice_at_once(AUDIT), commands.run(AUDIT)):
        assert (result.status, "1 ok" in result.stderr) == (ExitStatus.OK, True), result.stderr


def test_copy_when_run_twice_at_once_and_again_then_each_makes_a_whole_copy(
    commands: Commands, client: pylogctl.Client
) -> None:
    source = commands.names["orders"]
    for result in while_made(client, source, lambda: commands.run(COPY + " --dry-run")):
        assert result.status in (ExitStatus.OK, ExitStatus.NOT_FOUND)
    results = [*commands.run_twice_at_once(COPY), commands.run(COPY)]
    assert [(one.status, one.stderr) for one in results if one.status] == []
    copied = messages_of(client, commands.names["orders-test"])
    assert copied == Counter([payload(one).encode() for one in ALL] * 3)


def test_members_when_started_at_once_beside_new_topics_and_again_then_each_message_comes_once(
    commands: Commands, client: pylogctl.Client
) -> None:
    topics = [commands.names["orders"], commands.names["payments"]]
    fill(client, topics[0])
    both = while_made(client, topics[1], lambda: commands.run_twice_at_once(GROUP))
    results = [*itertools.chain(*both), commands.run(GROUP)]
    assert {one.status for one in results} == {ExitStatus.OK}
    assert sorted(itertools.chain(*map(partitions, results))) == sorted(ALL * 2)
    assert partitions(commands.run(GROUP)) == []

    results = [*commands.run_twice_at_once(DESCRIBE), commands.run(DESCRIBE)]
    assert [(one.status, partitions(one)) for one in results] == [(0, sorted(ALL * 2))] * 3

    both_resets = commands.run_twice_at_once(RESET)
    assert {one.status for one in both_resets} <= {ExitStatus.OK, ExitStatus.CONFLICT}
    assert commands.run(RESET).status == ExitStatus.OK
    stored = client.offsets_of(commands.names["billing"])
    assert {one.topic: offset > 0 for one, offset in stored.items()} == {
        topics[0]: False,
        topics[1]: True,
    }
    assert partitions(commands.run(GROUP)) == ALL


def test_reset_when_its_topic_is_being_made_then_moves_the_group_in_all_of_it_or_not_at_all(
    commands: Commands, client: pylogctl.Client
) -> None:
    def reset() -> tuple[int, int]:
        result = commands.run(RESET)
        return result.status, len(client.offsets_of(commands.names["billing"]))

    client.create_topic(commands.names["payments"], partitions=3)
    commands.run("consume --group billing payments -o start -e")
    answers = while_made(client, commands.names["orders"], reset)
    assert set(answers) <= {(ExitStatus.OK, 9), (ExitStatus.NOT_FOUND, 3)}


def test_failed_messages_when_handled_at_once_and_again_then_each_is_drained_once(
    commands: Commands, client: pylogctl.Client, bill: Path
) -> None:
    fill(client, commands.names["orders"])
    results = [*commands.run_twice_at_once(RETRY), commands.run(RETRY)]
    assert {one.status for one in results} <= {ExitStatus.OK, ExitStatus.CONFLICT}
    listed = [*commands.run_twice_at_once(RETRY_LIST), commands.run(RETRY_LIST)]
    assert [(one.status, partitions(one)) for one in listed] == [(0, ALL)] * 3
    bill.with_name("works").touch()
    drained = [*commands.run_twice_at_once(DRAIN), commands.run(DRAIN)]
    assert {one.status for one in drained} <= {ExitStatus.OK, ExitStatus.CONFLICT}
    assert sorted(bill.with_name("bills").read_text().splitlines()) == list(map(payload, ALL))
    assert partitions(commands.run(RETRY_LIST)) == []


def test_load_when_run_twice_at_once_and_again_then_each_message_is_loaded_once(
    commands: Commands, client: pylogctl.Client, tmp_path: Path
) -> None:
    fill(client, commands.names["web"])
    planned = [*commands.run_twice_at_once(DRY_LOAD), commands.run(DRY_LOAD)]
    assert [(one.status, partitions(one)) for one in planned] == [(0, ALL)] * 3
    early = while_made(client, commands.names["orders"], lambda: commands.run(LOAD))
    both = [commands.run(LOAD), *commands.run_twice_at_once(LOAD), commands.run(LOAD)]
    loaded = itertools.chain(*map(partitions, early + both))
    assert sorted(loaded) == sorted(ALL * 2)


def test_create_when_run_twice_at_once_and_again_then_one_makes_the_topic(
    commands: Commands, client: pylogctl.Client
) -> None:
    results = commands.run_twice_at_once(CREATE)
    assert sorted(one.status for one in results) == [ExitStatus.OK, ExitStatus.CONFLICT]
    assert commands.run(CREATE).status == ExitStatus.CONFLICT
    found = client.describe(commands.names["orders"])
    assert [len(one.in_sync) for one in found] == [3] * 6


STATES: dict[str, tuple[str, ExitStatus, str]] = {
    "topic list": (r"web\S* +6 .* 0,1,2 ", ExitStatus.PARTIAL, r"web\S* +6 .* 0,1,2 .*OFFLINE"),
    "group list": (r"billing\S* +empty +0 +web\S* +0 ", ExitStatus.PARTIAL, r"billing\S* +empty"),
    "group lag billing": (r"total .* OK", ExitStatus.PARTIAL, r"total .* UNKNOWN"),
    "broker list": (r"2 .* up ", ExitStatus.OK, r"2 .* DOWN "),
    "broker status 2": (r"2 .* running ", ExitStatus.UNREACHABLE, r"2 .* down "),
    "cluster describe": (r"2  .* up", ExitStatus.OK, r"2  .* DOWN"),
    "cluster health": (r"brokers not there +ok", ExitStatus.THRESHOLD, r"fail +1 +broker 2"),
}
"""What commands show, and the status and what they show once a broker is dead."""


def test_states_when_shown_twice_at_once_again_and_with_a_dead_broker_then_are_true(
    commands: Commands, cluster: Cluster, client: pylogctl.Client
) -> None:
    fill(client, commands.names["web"])
    commands.run("consume --group billing web -o start -e")
    for line, (shown, _, _) in STATES.items():
        for result in (*commands.run_twice_at_once(line), commands.run(line)):
            assert (line, result.status) == (line, ExitStatus.OK)
            assert re.search(shown, result.text), result.text
    with one_dead(cluster):
        for line, (_, status, shown) in STATES.items():
            result = commands.run(line)
            assert (line, result.status) == (line, status)
            assert re.search(shown, result.text), result.text


# Commands while a broker is dead


def test_commands_when_one_of_three_brokers_is_dead_then_do_what_can_be_done_and_name_it(
    commands: Commands, cluster: Cluster, client: pylogctl.Client, bill: Path
) -> None:
    for topic in ("letters", "syslog", "web", "blobs", "orders", "payments"):
        fill(client, commands.names[topic])
    commands.run(COUNTED, framed(COUNTED, VALUES))
    reads = [*READS, DRY_LOAD, LOAD, GROUP, RETRY, COPY, AUDIT, RESET]
    twice = dict.fromkeys((LOAD, GROUP), 2)
    nothing = dict.fromkeys((RETRY, COPY, AUDIT, RESET), 0)
    with one_dead(cluster):
        results = {line: commands.run(line) for line in reads}
        sent = commands.run(COUNTED, framed(COUNTED, VALUES))
        new = commands.run("produce new", framed("", VALUES))
        created = commands.run(CREATE.replace("orders", "replicated"))
        counted = client.count("new")

    for line, result in results.items():
        assert (line, result.status) == (line, ExitStatus.PARTIAL)
        assert re.search(rf"error: .*broker {DEAD} is (away|back)", result.stderr), result.stderr
        found = set(partitions(result)) if READS.get(line) != ROWS else set(LED)
        assert (line, found) == (line, set(LED) if line not in nothing else set())
        if line not in nothing and READS.get(line) != ROWS:
            assert partitions(result) == sorted(LED * twice.get(line, 1))
    assert (sent.status, new.status, counted) == (0, 0, len(VALUES))
    assert messages_of(client, commands.names["clicks"]) == Counter(VALUES * 2)
    assert created.status == ExitStatus.CONFLICT
    assert "3 replicas need as many live brokers, not 2" in created.stderr


# Calls of the clients


class Call(NamedTuple):
    """A call as `docs/python.md` has it, and the partitions that its result is about."""

    make: Callable[[Any, str], Any]
    names: Callable[[Any], list[str]]
    kind: str = ROWS


def of_messages(found: list[pylogctl.Message]) -> list[str]:
    return [one.text()[-3:] for one in found]


READ_CALLS = {
    "read": Call(lambda client, topic: client.read(topic), of_messages, MESSAGES),
    "read_batches": Call(
        lambda client, topic: client.read_batches(topic),
        lambda found: [value[-3:].decode() for one in found for value in one.values()],
        MESSAGES,
    ),
    "sample": Call(lambda client, topic: client.sample(topic), of_messages, MESSAGES),
    "count": Call(lambda client, topic: client.count(topic), lambda found: ALL[:found], MESSAGES),
    "offsets": Call(
        lambda client, topic: client.offsets(topic, "end"),
        lambda found: [one.name for one in found],
    ),
    "describe": Call(
        lambda client, topic: client.describe(topic),
        lambda found: [one.partition.name for one in found],
    ),
}
KINDS = ["sync", "asyncio"]


async def _settled(found: Any) -> Any:
    return [one async for one in found] if hasattr(found, "__aiter__") else await found


def call(
    kind: str, address: str, make: Callable[[Any], Any], at_once: int = 1, *, retries: int = 1
) -> list[Any]:
    """Return the results, or errors, of calls at once, by clients of their own or in one loop."""

    def settle(_: int) -> Any:
        with pylogctl.connect(address, retries=retries) as client:
            try:
                found = make(client)
                return list(found) if isinstance(found, Iterator) else found
            except pylogctl.Error as error:
                return error

    async def gather() -> list[Any]:
        async def settle() -> Any:
            async with pylogctl.aconnect(address, retries=retries) as client:
                return await _settled(make(client))

        found = await asyncio.gather(*(settle() for _ in range(at_once)), return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, pylogctl.Error):
                raise one
        return found

    if kind == "asyncio":
        return asyncio.run(gather())
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(settle, range(at_once)))


@pytest.fixture
def topic(commands: Commands) -> str:
    return commands.names["web"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READ_CALLS)
def test_reading_call_when_made_while_its_topic_is_twice_at_once_and_again_then_tells_the_whole(
    cluster: Cluster, client: pylogctl.Client, topic: str, name: str, kind: str
) -> None:
    shown = READ_CALLS[name]
    make = partial(lambda topic, client: shown.make(client, topic), topic)
    for (found,) in while_made(client, topic, lambda: call(kind, cluster.address, make)):
        if isinstance(found, pylogctl.Error):
            assert isinstance(found, pylogctl.UnknownTopic)
        elif shown.kind == ROWS:
            assert sorted(shown.names(found)) == ALL
        else:
            assert Counter(shown.names(found)) <= Counter(ALL)
    results = call(kind, cluster.address, make, 2) + call(kind, cluster.address, make)
    assert [sorted(shown.names(one)) for one in results] == [ALL] * 3


def queue(client: Any, topic: str, values: list[bytes]) -> Any:
    """Send by a producer of a client of either kind."""
    if isinstance(client, pylogctl.Client):
        with client.producer() as producer:
            for one in values:
                producer.send(topic, one)
        return None

    async def send() -> None:
        async with client.producer() as producer:
            for one in values:
                await producer.send(topic, one)

    return send()


SEND_CALLS: dict[str, Callable[[Any, str], Any]] = {
    "send": lambda client, topic: client.send(topic, VALUES[0], key="customer-7"),
    "send_many": lambda client, topic: client.send_many(topic, VALUES),
    "producer": lambda client, topic: queue(client, topic, VALUES),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SEND_CALLS)
def test_sending_call_when_two_make_the_topic_at_once_and_one_comes_later_then_nothing_is_lost(
    cluster: Cluster, client: pylogctl.Client, topic: str, name: str, kind: str
) -> None:
    make = partial(lambda topic, client: SEND_CALLS[name](client, topic), topic)
    results = call(kind, cluster.address, make, 2) + call(kind, cluster.address, make)
    assert [one for one in results if isinstance(one, Exception)] == []
    if name == "send":
        assert len({one.partition for one in results}) == 1  # that of its key
    assert messages_of(client, topic) == Counter((VALUES if name != "send" else VALUES[:1]) * 3)


@pytest.mark.parametrize("kind", KINDS)
def test_group_when_two_begin_beside_a_new_topic_and_one_later_then_each_message_comes_once(
    cluster: Cluster, client: pylogctl.Client, commands: Commands, kind: str
) -> None:
    topics = [commands.names["orders"], commands.names["payments"]]
    fill(client, topics[0])

    def group(client: Any, idle: float = 1) -> Any:
        return client.group(commands.names["billing"], topics, start="earliest", idle=idle)

    both = while_made(client, topics[1], lambda: call(kind, cluster.address, group, 2))
    # the last one takes what the others left when nothing came for a moment
    found = [*itertools.chain(*both), *call(kind, cluster.address, partial(group, idle=6))]
    names = itertools.chain(*map(of_messages, found))
    assert sorted(names) == sorted(ALL * 2)
    assert call(kind, cluster.address, group) == [[]]


def test_calls_when_one_of_three_brokers_is_dead_then_no_part_is_given_for_the_whole(
    cluster: Cluster, client: pylogctl.Client, commands: Commands, topic: str
) -> None:
    fill(client, topic)
    sent = Counter(payload(one).encode() for one in ALL)
    address = cluster.broker(0).address
    with one_dead(cluster):
        for kind in KINDS:
            for name, shown in READ_CALLS.items():
                make = partial(lambda shown, client: shown.make(client, topic), shown)
                (found,) = call(kind, address, make, retries=0)
                if name == "describe":
                    assert sorted(shown.names(found)) == ALL
                else:
                    assert isinstance(found, pylogctl.Unreachable)
                    assert AWAY.format(topic) in str(found)
            for name, send in SEND_CALLS.items():
                new = f"{topic}-{kind}-{name}"
                for one in (topic, new):
                    make = partial(lambda send, one, client: send(client, one), send, one)
                    (found,) = call(kind, address, make)
                    assert not isinstance(found, Exception)
                assert client.count(new) == len(VALUES[: 1 if name == "send" else None])
                sent.update(VALUES[: 1 if name == "send" else None])
    assert messages_of(client, topic) == sent


class Order(NamedTuple):
    """A call that changes something, what refuses another one, and what is there then."""

    make: Callable[[Any, str], Any]
    refusals: tuple[type[pylogctl.Error], ...]
    state: Callable[[pylogctl.Client, str], Any]
    expected: Any


def stored(client: pylogctl.Client, group: str) -> set[int]:
    return set(client.offsets_of(group).values())


ORDERS = {
    "create_topic": Order(
        lambda client, topic: client.create_topic(f"{topic}-b", partitions=6),
        (pylogctl.TopicExists,),
        lambda client, topic: len(client.describe(f"{topic}-b")),
        6,
    ),
    "alter_topic": Order(
        lambda client, topic: client.alter_topic(topic, partitions=9),
        (pylogctl.Conflict,),
        lambda client, topic: len(client.describe(topic)),
        9,
    ),
    "delete_topic": Order(
        lambda client, topic: client.delete_topic(topic),
        (pylogctl.UnknownTopic,),
        lambda client, topic: topic in [one.name for one in client.topics()],
        False,
    ),
    "copy": Order(
        lambda client, topic: client.copy(topic, f"{topic}-b"),
        (),
        lambda client, topic: client.count(f"{topic}-b"),
        18,
    ),
    "reset": Order(
        lambda client, topic: client.reset(topic, to="earliest"), (pylogctl.Partial,), stored, {0}
    ),
    "import_offsets": Order(
        lambda client, topic: client.import_offsets(
            topic, {pylogctl.TopicPartition(topic, 0, 0): 0}
        ),
        (pylogctl.Partial,),
        lambda client, topic: client.offsets_of(topic)[pylogctl.TopicPartition(topic, 0, 0)],
        0,
    ),
    "delete_group": Order(
        lambda client, topic: client.delete_group(topic),
        (pylogctl.UnknownGroup, pylogctl.Conflict),
        lambda client, topic: topic in [one.name for one in client.groups()],
        False,
    ),
    "set_settings": Order(
        lambda client, topic: client.set_settings({"retention.ms": 7_200_000}, topic=topic),
        (pylogctl.Conflict,),
        lambda client, topic: client.settings(topic=topic)["retention.ms"].value,
        7_200_000,
    ),
    "unset_settings": Order(
        lambda client, topic: client.unset_settings(["retention.ms"], topic=topic),
        (pylogctl.Conflict,),
        lambda client, topic: client.settings(topic=topic)["retention.ms"].origin,
        "default",
    ),
    "elect": Order(lambda client, topic: client.elect(), (), lambda client, topic: None, None),
    "reassign": Order(
        lambda client, topic: client.reassign(f"{topic}-r", [0, 1], replicas=2),
        (pylogctl.Conflict,),
        lambda client, topic: {len(one.replicas) for one in client.describe(f"{topic}-r")},
        {2},
    ),
    "cancel_reassignment": Order(
        lambda client, topic: client.cancel_reassignment(f"{topic}-r"),
        (pylogctl.Conflict,),
        lambda client, topic: client.reassignments(),
        [],
    ),
    "throttle_reassignments": Order(
        lambda client, topic: client.throttle_reassignments(1 << 30),
        (),
        lambda client, topic: client.reassignments(),
        [],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ORDERS)
def test_order_when_given_twice_at_once_and_again_then_one_is_carried_out_and_the_state_is_its(
    cluster: Cluster, client: pylogctl.Client, topic: str, name: str, kind: str
) -> None:
    order = ORDERS[name]
    fill(client, topic)
    if name in ("reset", "import_offsets", "delete_group"):
        client.import_offsets(topic, client.offsets(topic, "end"))
    if "reassign" in name:
        client.create_topic(f"{topic}-r", partitions=3, replicas=3)
    make = partial(lambda topic, client: order.make(client, topic), topic)
    results = call(kind, cluster.address, make, 2) + call(kind, cluster.address, make)
    refused = [one for one in results if isinstance(one, Exception)]
    assert [one for one in refused if not isinstance(one, order.refusals)] == []
    wait_until(lambda: order.state(client, topic) == order.expected, f"what {name} orders")


def test_alter_when_one_of_three_brokers_is_dead_then_counts_its_partitions_and_it_follows(
    cluster: Cluster, client: pylogctl.Client, topic: str
) -> None:
    fill(client, topic)
    with one_dead(cluster), cluster.broker(0).connect() as connected:
        with pytest.raises(
            pylogctl.Conflict, match="has 6 partitions, 2 on each of brokers 0, 1, 2"
        ):
            connected.alter_topic(topic, partitions=8)
        connected.alter_topic(topic, partitions=9)
    wait_until(lambda: len(client.describe(topic)) == 9, "the partitions of the dead broker")


LOOKS: dict[str, tuple[Callable[[Any, str], Any], Callable[[Any, str], Any], Any]] = {
    "topics": (
        lambda client, topic: client.topics(),
        lambda found, topic: [one.partitions for one in found if one.name == topic],
        [6],
    ),
    "brokers": (
        lambda client, topic: client.brokers(),
        lambda found, topic: [one.id for one in found],
        [0, 1, 2],
    ),
    "broker": (lambda client, topic: client.broker(1), lambda found, topic: found.phase, "running"),
    "health": (
        lambda client, topic: client.health(),
        lambda found, topic: topic in str(found),  # it is without replicas
        True,
    ),
    "changes": (lambda client, topic: client.changes(), lambda found, topic: len(found) > 0, True),
    "groups": (
        lambda client, topic: client.groups(),
        lambda found, topic: [len(one.offsets) for one in found if one.name == topic],
        [6],
    ),
    "describe_group": (
        lambda client, topic: client.describe_group(topic),
        lambda found, topic: len(found.offsets),
        6,
    ),
    "offsets_of": (
        lambda client, topic: client.offsets_of(topic),
        lambda found, topic: sorted(one.name for one in found),
        ALL,
    ),
    "lag": (
        lambda client, topic: client.lag(topic),
        lambda found, topic: len(found.partitions),
        6,
    ),
    "verify_group": (
        lambda client, topic: client.verify_group(topic),
        lambda found, topic: {one.kind.value for one in found},
        {"no-owner"},
    ),
    "settings": (
        lambda client, topic: client.settings(topic=topic),
        lambda found, topic: "retention.ms" in found,
        True,
    ),
    "reassignments": (
        lambda client, topic: client.reassignments(),
        lambda found, topic: found,
        [],
    ),
}
"""Calls that look at the cluster, what is compared of their results, and its value."""


def test_looks_when_taken_twice_at_once_again_and_with_a_dead_broker_then_tell_of_all(
    cluster: Cluster, client: pylogctl.Client, topic: str
) -> None:
    fill(client, topic)
    client.import_offsets(topic, client.offsets(topic, "end"))

    def check(kind: str, name: str, at_once: int) -> None:
        look, compared, expected = LOOKS[name]
        for found in call(kind, cluster.address, lambda client: look(client, topic), at_once):
            assert not isinstance(found, Exception)
            assert (name, compared(found, topic)) == (name, expected)

    for kind, name, at_once in itertools.product(KINDS, LOOKS, (2, 1)):
        check(kind, name, at_once)
    with one_dead(cluster):
        for kind, name in itertools.product(KINDS, LOOKS):
            check(kind, name, 1)


# What is shown

NOT_RUN_CALLS = {
    "close": "every test does",
    "register_metrics": "counts in the process of the program",
    "rebalance": "an order to members: tests/integration/api/test_group_control.py",
    "stop_broker": "a broker of its own: tests/integration/api/test_cluster.py",
    "decommission": "a broker of its own: tests/integration/api/test_decommission.py",
    "move_log": "directories of a broker: tests/integration/api/test_replicas.py",
    **dict.fromkeys(
        (
            *("subjects", "subject_schema", "schema", "schema_versions", "schema_uses"),
            *("register_schema", "find_schema", "check_schema", "delete_schema"),
            *("compatibility", "set_compatibility", "schema_producer", "decoder"),
        ),
        "schemas, not topics: tests/integration/api/test_schemas.py",
    ),
}
NOT_RUN_COMMANDS = {
    "broker start": "tests/integration/test_readme.py",
    "broker stop": "tests/integration/test_readme.py",
    "topic create visits --format kafka --partitions 3": "tests/integration/test_readme.py",
    "produce visits -K :": "tests/integration/test_readme.py",
    "consume visits --from-beginning --exit-at-end -F": "tests/integration/test_readme.py",
    "zk": "nodes, not topics",
    "mirror": "for ever, between two clusters: test_mirror.py",
    "pipeline sql": "Spark",
    "pipeline window": "Spark",
    "pipeline join": "Spark",
    "pipeline audit": "Spark",
    "pipeline verify": "Spark",
    "log": "files, not topics",
    "archive": "files, not topics",
    "schema": "schemas, not topics: tests/integration/pylogctl/schema",
    "produce orders --schema auto": "tests/integration/pylogctl/test_decoding.py",
    "consume orders -o start -e --decode auto": "tests/integration/pylogctl/test_decoding.py",
    "pipeline latency": "tests/integration/pylogctl/pipeline/test_pipeline_latency.py",
    "metrics": "for ever",
    "top": "for ever",
    "web": "for ever",
    "perf": "measures",
    "user": "who may come in, not topics",
    "acl": "who may come in, not topics",
    "cluster rotate-key": "who may come in, not topics",
    "config": "the calls set_settings, unset_settings and settings",
    "context": "a file of the user",
    "plugins": "the installation",
    "doctor": "the installation",
    "version": "the installation",
    "help": "the installation",
    "man": "the installation",
    "completion": "the installation",
    "topic alter": "the call alter_topic",
    "topic elect": "the call elect",
    "topic reassign": "the call reassign",
    "group rebalance": "an order to members: tests/integration/api/test_group_control.py",
}


def test_lists_when_compared_with_the_pages_then_have_all_that_is_shown_and_nothing_else() -> None:
    shown = [" ".join(one) for one in command_lines(PAGES)]
    run = [" ".join(shlex.split(one)) for one in (*RUN, *STATES)]

    def begins(line: str, starts: Iterable[str]) -> bool:
        return any(f"{line} ".startswith(f"{one} ") for one in starts)

    assert [one for one in shown if one not in run and not begins(one, NOT_RUN_COMMANDS)] == []
    table = table_commands(PAGES[0])
    assert [
        one
        for one in sorted(table)
        if not any(begins(line, [one]) for line in run) and not begins(one, NOT_RUN_COMMANDS)
    ] == []
    known = [*shown, *table]
    assert [one for one in run if one not in shown and not begins(one, table)] == []
    assert [one for one in NOT_RUN_COMMANDS if not any(begins(line, [one]) for line in known)] == []
    calls = {*READ_CALLS, *SEND_CALLS, *ORDERS, *LOOKS, "group", *NOT_RUN_CALLS}
    assert calls == set().union(*map(client_calls, PAGES))

"""`pylogctl consume --group` against a real broker and a real ZooKeeper."""

from __future__ import annotations

import signal
import urllib.request
import uuid
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from broker import Broker, Codec, Registry
from broker.zk import paths
from broker.zk.session import Session
from tests.integration.pylogctl.consume.test_consume import fill
from tests.support.command_line import Invoke, Result, Spawn, first_note
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def broker(start_broker: Callable[..., Broker], zookeeper: str) -> Broker:
    """A broker with two partitions a topic, in the registry."""
    return start_broker(zookeeper=zookeeper, num_partitions=2)


def await_topic(session: Session, topic: str) -> None:
    wait_until(lambda: session.exists(paths.topic_broker(topic, 0)), f"registration of {topic}")


@pytest.fixture
def publish(broker: Broker, session: Session) -> Callable[..., None]:
    """Publish payloads and wait until the registry knows the topic."""

    def run(
        topic: str, payloads: list[bytes], *, index: int = 0, codec: Codec = Codec.NONE
    ) -> None:
        fill(broker, topic, payloads, codec=codec, index=index)
        await_topic(session, topic)

    return run


@pytest.fixture
def group() -> str:
    return f"g{uuid.uuid4().hex[:8]}"


@pytest.fixture
def consume(zookeeper: str, group: str, invoke: Invoke) -> Callable[..., Result]:
    """Run `consume --group` to the end."""

    def run(*args: str) -> Result:
        return invoke("consume", "-Z", zookeeper, "--group", group, "-e", *args)

    return run


def stored(session: Session, group: str, topic: str) -> dict[str, int]:
    """The offsets a group has stored of a topic, by partition."""
    root = f"{paths.group(group)}/offsets/{topic}"
    return {name: int(session.get(f"{root}/{name}")[0]) for name in session.children(root)}


def test_consume_when_in_a_group_without_topic_reads_every_topic(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    publish("a", [b"1", b"2"])
    publish("b", [b"3"], index=1)
    result = consume("--from-beginning")
    assert sorted(result.stdout.split()) == [b"1", b"2", b"3"]
    assert result.status == 0


def test_consume_when_a_pattern_chooses_topics_ends_at_the_end_of_these(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    publish("a", [b"1"])
    publish("b", [b"2"])
    result = consume("--include", "a", "--from-beginning")
    assert (result.status, result.stdout) == (0, b"1\n")


def test_consume_when_run_again_goes_on_where_the_group_is(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    publish("t", [b"1", b"2", b"3"])
    assert consume("t", "--from-beginning", "-n", "2").stdout == b"1\n2\n"
    assert consume("t").stdout == b"3\n"
    publish("t", [b"4"])
    assert consume("t").stdout == b"4\n"
    assert consume("t").stdout == b""


def test_consume_when_limited_commits_exactly_what_was_written(
    publish: Callable[..., None],
    consume: Callable[..., Result],
    session: Session,
    group: str,
) -> None:
    publish("t", [b"1", b"2", b"3"])
    consume("t", "--from-beginning", "-n", "2")
    assert stored(session, group, "t")["0-0"] == 22


def test_consume_when_limited_inside_a_compressed_set_replays_the_set(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    publish("t", [b"1", b"2", b"3"], codec=Codec.GZIP)
    assert consume("t", "--from-beginning", "-n", "2").stdout == b"1\n2\n"
    assert consume("t").stdout == b"1\n2\n3\n"


def test_consume_when_filtered_in_a_group_commits_what_was_left_out_too(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    publish("t", [b"yes 1", b"no", b"yes 2", b"no"])
    assert consume("t", "--from-beginning", "--grep", "yes").stdout == b"yes 1\nyes 2\n"
    assert consume("t").stdout == b""


def test_consume_when_nothing_is_to_be_committed_moves_nothing(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    publish("t", [b"1"])
    for _ in range(2):
        assert consume("t", "-o", "start", "--commit", "none").stdout == b"1\n"


def test_consume_when_committing_before_goes_on_behind_what_was_written(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    numbers = [b"%04d" % number for number in range(3000)]
    publish("t", numbers)
    before = ("t", "-o", "start", "--commit", "before")
    assert consume(*before, "-n", "2").stdout.split() == numbers[:2]
    assert consume(*before, "-n", "1500").stdout.split() == numbers[2:1502]
    assert consume(*before).stdout.split() == numbers[1502:]
    assert consume(*before).stdout == b""


def test_consume_when_committing_before_and_limited_inside_a_compressed_set_leaves_its_rest_out(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    publish("t", [b"1", b"2", b"3"], codec=Codec.GZIP)
    publish("t", [b"4"])
    before = ("t", "-o", "start", "--commit", "before")
    assert consume(*before, "-n", "2").stdout == b"1\n2\n"
    assert consume(*before).stdout == b"4\n"


def test_consume_when_committing_at_exit_stores_the_offsets(
    publish: Callable[..., None],
    consume: Callable[..., Result],
    session: Session,
    group: str,
) -> None:
    publish("t", [b"1"])
    assert consume("t", "--from-beginning", "--commit", "exit").stdout == b"1\n"
    assert stored(session, group, "t")["0-0"] == 11


def test_consume_when_the_group_has_no_offset_starts_where_the_default_says(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    publish("t", [b"1"])
    assert consume("t").stdout == b""
    publish("t", [b"2"])
    assert consume("t").stdout == b"2\n"


def test_consume_when_the_group_has_offsets_then_a_start_is_for_partitions_without_one(
    publish: Callable[..., None], consume: Callable[..., Result], group: str
) -> None:
    publish("t", [b"1", b"2"])
    assert consume("t", "--from-beginning").stdout == b"1\n2\n"
    publish("u", [b"3"])
    again = consume("t", "u", "--from-beginning")
    assert again.stdout == b"3\n"
    assert f"group '{group}' continues at its stored offsets in 2 of 4 partitions" in again.stderr
    assert f"pylogctl group reset {group} moves them" in again.stderr
    assert consume("t", "-o", "-1").stdout == b""


def test_consume_when_a_group_starts_inside_a_compressed_set_writes_only_its_last_messages(
    publish: Callable[..., None], consume: Callable[..., Result]
) -> None:
    publish("t", [b"1"])
    publish("t", [b"2", b"3", b"4"], codec=Codec.GZIP)
    assert consume("t", "-o", "-2").stdout == b"3\n4\n"
    publish("t", [b"5"])
    assert consume("t").stdout == b"5\n"


def test_consume_when_a_new_group_has_other_members_starts_where_it_is_told_nevertheless(
    publish: Callable[..., None], consume: Callable[..., Result], zookeeper: str, group: str
) -> None:
    publish("t", [b"1", b"2"])
    with Registry(zookeeper) as other:
        other.session.create(
            f"{paths.consumer_ids(group)}/{group}_x", b'{ "u": 1 }', ephemeral=True
        )
        assert consume("t", "--from-beginning").stdout == b"1\n2\n"


def test_consume_when_a_message_is_corrupt_commits_up_to_it(
    broker: Broker,
    publish: Callable[..., None],
    consume: Callable[..., Result],
    session: Session,
    group: str,
) -> None:
    publish("t", [b"one", b"two", b"three"])
    path = broker.config.data_dir / "t_0" / "00000000000000000000.pylog"
    data = bytearray(path.read_bytes())
    data[13 + 10] ^= 1
    path.write_bytes(bytes(data))
    result = consume("t", "--from-beginning")
    assert (result.status, result.stdout) == (8, b"one\n")
    assert stored(session, group, "t")["0-0"] == 13
    assert consume("t", "--on-corrupt", "skip").stdout == b"three\n"


DAMAGES = {"length": (13, 0x7F), "magic byte": (17, 7), "payload": (13 + 10, ord("?"))}


@pytest.mark.parametrize(("position", "value"), DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("commit", ["after", "exit"])
def test_consume_when_a_message_is_damaged_stays_there_and_keeps_what_else_was_read(
    broker: Broker,
    publish: Callable[..., None],
    zookeeper: str,
    run_process: Invoke,
    session: Session,
    group: str,
    position: int,
    value: int,
    commit: str,
) -> None:
    publish("t", [b"one", b"two", b"three"])
    publish("t", [b"other"], index=1)
    path = broker.config.data_dir / "t_0" / "00000000000000000000.pylog"
    with path.open("r+b") as file:
        file.seek(position)
        file.write(bytes((value,)))
    options = ("-Z", zookeeper, "-g", group, "-o", "start", "--commit", commit)

    result = run_process("consume", "t", "-e", *options)

    assert result.status == 8
    assert "t[0-0]: the message at 13 " in result.stderr
    assert "--on-corrupt skip goes on at 26" in result.stderr
    committed = stored(session, group, "t")
    assert committed["0-0"] == 13
    assert committed.get("0-1", 0) == (15 if b"other" in result.stdout else 0)

    rest = run_process("consume", "t", "-e", *options, "--on-corrupt", "skip")

    assert rest.status == 6
    assert sorted((result.stdout + rest.stdout).split()) == [b"one", b"other", b"three"]
    assert stored(session, group, "t") == {"0-0": 41, "0-1": 15}


def test_consume_when_a_group_was_moved_behind_damage_goes_on_there(
    broker: Broker, publish: Callable[..., None], zookeeper: str, invoke: Invoke, group: str
) -> None:
    publish("t", [b"one", b"two", b"three"])
    path = broker.config.data_dir / "t_0" / "00000000000000000000.pylog"
    with path.open("r+b") as file:
        file.seek(13)
        file.write(b"\x7f")
    read = ("consume", "t", "-Z", zookeeper, "-g", group, "-e", "-o", "start")
    assert invoke(*read).status == 8
    moved = invoke(
        *("group", "reset", group, "-Z", zookeeper, "-t", "t", "-p", "0-0", "--to", "26"),
        *("--execute", "-y"),
    )
    assert moved.status == 0, moved.stderr

    result = invoke(*read)

    assert (result.status, result.stdout) == (0, b"three\n")


def test_consume_when_two_members_share_a_topic_each_message_comes_once(
    publish: Callable[..., None], zookeeper: str, group: str, spawn: Spawn, session: Session
) -> None:
    for index in range(2):
        publish("t", [b"%d-%d" % (index, n) for n in range(50)], index=index)
    options = ("-Z", zookeeper, "--group", group, "-o", "start", "-q")
    with ExitStack() as stack:
        members = [stack.enter_context(spawn("consume", "t", *options)) for _ in range(2)]
        for member in members:
            stack.callback(member.kill)
        wait_until(lambda: len(owners(session, group, "t")) == 2, "an owner for each partition")
        for index in range(2):
            publish("t", [b"%d-%d" % (index, n) for n in range(50, 60)], index=index)
        for member in members:
            member.send_signal(signal.SIGINT)
        outputs = [member.communicate(timeout=60)[0] for member in members]
    assert [member.returncode for member in members] == [130, 130]
    lines = b"".join(outputs).split()
    with spawn("consume", "t", *options, "-e") as process:
        rest = process.communicate(timeout=60)[0].split()
    assert sorted(lines + rest) == sorted(b"%d-%d" % (i, n) for i in range(2) for n in range(60))


@pytest.mark.parametrize("options", [(), ("-o", "end")])
def test_consume_when_a_topic_is_created_under_a_group_then_reads_it_from_its_start(
    publish: Callable[..., None],
    zookeeper: str,
    group: str,
    spawn: Spawn,
    session: Session,
    options: tuple[str, ...],
) -> None:
    publish("old", [b"before"])
    often = ("-X", "autocommit.interval.ms=100")
    command = ("consume", "-Z", zookeeper, "-g", group, "-n", "3", *often)
    with spawn(*command, *options) as member, ExitStack() as stack:
        stack.callback(member.kill)
        wait_until(lambda: owners(session, group, "old"), "an owner of the first topic")
        publish("new", [b"1", b"2", b"3"])
        output, _ = member.communicate(timeout=60)
    assert output.split() == [b"1", b"2", b"3"]


def owners(session: Session, group: str, topic: str) -> set[bytes]:
    """The consumer threads that own partitions of a topic."""
    root = f"{paths.group(group)}/owners/{topic}"
    if not session.exists(root):
        return set()
    found = session.get_many(f"{root}/{name}" for name in session.children(root))
    return {value for value, _ in found.values()}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("t", "-p", "0"), "--partition cannot be used with --group"),
        (("t", "-o", "start:end"), "with --group an offset has no END"),
        (("t", "--include", "a"), "either name topics or give --include"),
        (("--include", "a b"), "a pattern of a group has no blank"),
        (("--include", "a{2,5}"), "a pattern of a group has no blank, comma"),
        (("t", "-b", "127.0.0.1:1"), "--group needs a ZooKeeper"),
        (("t", "-X", "autocommit.interval.ms=soon"), "soon"),
    ],
)
def test_consume_when_an_option_does_not_go_with_a_group_is_a_usage_error(
    invoke: Invoke, options: tuple[str, ...], text: str
) -> None:
    result = invoke("consume", "-g", "g", "-Z", "127.0.0.1:1", "--timeout", "100ms", *options)
    assert result.status == 2
    assert text in result.stderr


def test_consume_when_the_topic_is_unknown_in_a_group_says_so(
    broker: Broker, consume: Callable[..., Result]
) -> None:
    result = consume("nope")
    assert result.status == 3
    assert "topic 'nope' not found" in result.stderr


def test_consume_when_in_a_group_with_a_port_for_metrics_then_serves_what_it_has_read(
    publish: Callable[..., None], zookeeper: str, group: str, spawn: Spawn
) -> None:
    publish("t", [b"1", b"2", b"3"])
    options = ("-Z", zookeeper, "--group", group, "--from-beginning", "--metrics-port", "0")
    with spawn("consume", "t", *options) as process:
        assert process.stdout is not None
        address = first_note(process).removeprefix("metrics at ").strip()
        assert [process.stdout.readline() for _ in range(3)] == [b"1\n", b"2\n", b"3\n"]
        with urllib.request.urlopen(address, timeout=60) as answer:
            text = answer.read().decode()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert f'pylogctl_consumer_messages_total{{group="{group}",topic="t"}} 3.0' in text
    assert f'pylogctl_consumer_assigned_partitions{{group="{group}"}} 2.0' in text
    assert "pylogctl_producer" not in text
    assert "python_info" in text


def test_consume_when_alone_then_has_no_metrics(zookeeper: str, invoke: Invoke) -> None:
    result = invoke("consume", "t", "-Z", zookeeper, "--metrics-port", "0")
    assert result.status == 2
    assert "needs --group" in result.stderr

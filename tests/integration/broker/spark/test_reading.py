from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.client.connection import Connection
from broker.errors import (
    BrokerUnreachableError,
    ConfigError,
    DataLossError,
    InvalidMessageError,
    LogCorruptError,
    TopicNotFoundError,
)
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.message_set import build_set
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.topic import TopicPartition
from tests.support.segments import WriteSegments
from tests.support.spark_rows import plan, read, run, values
from tests.support.spark_session import publish

SIZE = len(build_set([b"abc"]))


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%03d" % number for number in range(first, last)]


def at(broker: Broker, **options: str) -> dict[str, str]:
    return {"brokers": f"127.0.0.1:{broker.port}", "subscribe": "events", **options}


def test_topic_when_read_from_a_broker_then_gives_all_messages(running_broker: Broker) -> None:
    publish(running_broker, "events", numbered(0, 300))

    rows = read(**at(running_broker))

    assert values(rows) == numbered(0, 300)
    assert [row["offset"] for row in rows] == [n * SIZE for n in range(300)]


def test_topic_when_cut_into_pieces_then_every_message_comes_once(running_broker: Broker) -> None:
    publish(running_broker, "events", numbered(0, 900))
    options = at(running_broker, maxBytesPerPartition="1000", fetchSize="100")

    made = plan(options)

    assert len(made.tasks) == 12
    assert values(run(made, options)) == numbered(0, 900)


def test_range_when_more_is_written_after_planning_then_stays_the_same(
    running_broker: Broker,
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    options = at(running_broker)
    made = plan(options)
    publish(running_broker, "events", numbered(100, 200))

    assert values(run(made, options)) == numbered(0, 100)
    assert run(made, options) == run(made, options)


def test_wrappers_when_read_then_inner_messages_are_numbered(running_broker: Broker) -> None:
    sets = build_set([b"a", b"b"], Codec.GZIP) + build_set([b"c"]) + build_set([b"d"], Codec.ZSTD)
    connection = Connection(BrokerAddress(-1, "127.0.0.1", running_broker.port))
    target = PartitionSet(TopicPartition("events", 0, 0), sets)
    connection.call(CreateTopicRequest("events"))
    connection.call(PublishRequest(Acks.COMMITTED, 10_000, (target,)))
    connection.close()

    rows = read(**at(running_broker))

    assert values(rows) == [b"a", b"b", b"c", b"d"]
    assert [row["inner_index"] for row in rows] == [0, 1, 0, 0]
    assert rows[0]["offset"] == rows[1]["offset"] == rows[0]["next_offset"]
    assert [row["next_offset"] for row in rows[1:3]] == [row["offset"] for row in rows[2:]]


@pytest.mark.parametrize("fetch_bytes", ["64", "1000"])
def test_message_when_larger_than_a_fetch_then_is_read_whole(
    running_broker: Broker, fetch_bytes: str
) -> None:
    payloads = [b"small", bytes(10_000), b"small"]
    publish(running_broker, "events", payloads)

    assert values(read(**at(running_broker, fetchSize=fetch_bytes))) == payloads


def test_offsets_when_given_then_bound_the_read(running_broker: Broker) -> None:
    publish(running_broker, "events", numbered(0, 100))
    options = at(
        running_broker,
        startingOffsets=f'{{"events":{{"0-0":{10 * SIZE}}}}}',
        endingOffsets=f'{{"events":{{"0-0":{20 * SIZE}}}}}',
    )

    assert values(read(**options)) == numbered(10, 20)


def test_offset_when_inside_a_message_on_a_broker_then_its_neighbours_are_named(
    running_broker: Broker,
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    options = at(running_broker, endingOffsets=f'{{"events":{{"0-0":{SIZE + 1}}}}}')

    with pytest.raises(ConfigError, match=f"inside a message; messages start at {SIZE} and"):
        read(**options)


def test_range_when_it_ends_before_its_start_then_is_refused(running_broker: Broker) -> None:
    publish(running_broker, "events", numbered(0, 100))
    options = at(
        running_broker,
        startingOffsets=f'{{"events":{{"0-0":{20 * SIZE}}}}}',
        endingOffsets=f'{{"events":{{"0-0":{10 * SIZE}}}}}',
    )

    with pytest.raises(ConfigError, match="before it starts"):
        read(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": "nowhere"},
        {"subscribe": "", "assign": '{"nowhere":["0-0"]}'},
        {"subscribe": "", "assign": '{"events":["0-9"]}'},
    ],
)
def test_topic_or_partition_when_unknown_then_says_so(
    running_broker: Broker, options: dict[str, str]
) -> None:
    publish(running_broker, "events", numbered(0, 1))
    chosen = {name: value for name, value in at(running_broker, **options).items() if value}

    with pytest.raises(TopicNotFoundError, match="not found"):
        read(**chosen)


def test_bound_when_it_names_a_partition_that_is_not_read_then_is_refused(
    running_broker: Broker,
) -> None:
    publish(running_broker, "events", numbered(0, 1))

    with pytest.raises(ConfigError, match=r"names others\[0-0\], which is not among those read"):
        read(**at(running_broker, startingOffsets='{"others":{"0-0":0},"events":{"0-0":0}}'))


def test_broker_when_gone_after_planning_then_the_task_names_what_it_could_not_read(
    start_broker: Callable[..., Broker],
) -> None:
    broker = start_broker()
    publish(broker, "events", numbered(0, 100))
    options = at(broker, connectTimeoutMs="100", timeoutMs="5000")
    made = plan(options)
    broker.stop()

    with pytest.raises(
        BrokerUnreachableError,
        match=rf"events\[0-0\] 0\.\.{100 * SIZE}: stopped at offset 0: cannot reach broker 0",
    ):
        run(made, options)


@pytest.fixture
def one_of_two(start_broker: Callable[..., Broker], tmp_path: Path) -> dict[str, str]:
    """Options that list two brokers with messages, of which one is away."""
    first = start_broker(broker_id=1, data_dir=tmp_path / "first")
    second = start_broker(broker_id=2, data_dir=tmp_path / "second")
    publish(first, "events", numbered(0, 10))
    publish(second, "events", numbered(10, 20))
    second.stop()
    brokers = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
    return {"brokers": brokers, "subscribe": "events", "connectTimeoutMs": "100"}


def test_broker_when_listed_and_away_then_the_read_fails(one_of_two: dict[str, str]) -> None:
    with pytest.raises(BrokerUnreachableError, match="failOnDataLoss=false reads what the other"):
        read(**one_of_two)


def test_broker_when_away_and_that_is_borne_then_the_others_are_read(
    one_of_two: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    assert values(read(**one_of_two, failOnDataLoss="false")) == numbered(0, 10)
    assert "going on without it" in caplog.text


@pytest.fixture
def short_log(start_broker: Callable[..., Broker]) -> Broker:
    """A broker with 300 messages in segments of 100, of which retention keeps the last 100."""
    broker = start_broker(segment_bytes=100 * SIZE, retention_bytes=100 * SIZE)
    for first in (0, 100, 200):  # one after the other: what comes at once is appended at once
        publish(broker, "events", numbered(first, first + 100))
    return broker


def expire(broker: Broker) -> None:
    broker.logs.retention.apply()


def test_range_when_retention_passed_its_start_then_fails_naming_both_offsets(
    short_log: Broker,
) -> None:
    expire(short_log)

    with pytest.raises(
        DataLossError,
        match=rf"events\[0-0\]: offset {10 * SIZE} was asked for, and the log starts at "
        rf"{200 * SIZE}: {190 * SIZE} bytes are gone; failOnDataLoss=false",
    ):
        read(**at(short_log, startingOffsets=f'{{"events":{{"0-0":{10 * SIZE}}}}}'))


def test_range_when_retention_passed_it_and_that_is_borne_then_the_rest_comes(
    short_log: Broker,
) -> None:
    expire(short_log)
    options = at(
        short_log,
        startingOffsets=f'{{"events":{{"0-0":{10 * SIZE}}}}}',
        failOnDataLoss="false",
    )

    made = plan(options)

    assert values(run(made, options)) == numbered(200, 300)
    assert [(one.start, one.end) for one in made.omissions] == [(10 * SIZE, 200 * SIZE)]


def test_range_when_it_lies_behind_the_end_then_fails(short_log: Broker) -> None:
    with pytest.raises(DataLossError, match=f"and the log ends at {300 * SIZE}"):
        read(**at(short_log, endingOffsets=f'{{"events":{{"0-0":{301 * SIZE}}}}}'))


def test_task_when_retention_overtakes_it_then_fails_naming_the_log_start(
    short_log: Broker,
) -> None:
    options = at(short_log)
    made = plan(options)
    expire(short_log)

    with pytest.raises(
        DataLossError, match=rf"events\[0-0\]: offset 0 is gone .* the log starts at {200 * SIZE}"
    ):
        run(made, options)


def test_task_when_retention_overtakes_it_and_that_is_borne_then_says_what_was_skipped(
    short_log: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = at(short_log, failOnDataLoss="false", reportPath=str(tmp_path / "report"))
    made = plan(options)
    expire(short_log)

    rows = run(made, options)

    assert values(rows) == numbered(200, 300)
    assert f"events[0-0]: offsets 0 to {200 * SIZE} were deleted" in caplog.text
    (event,) = events_of(tmp_path / "report")
    assert (event["cause"], event["topic"], event["partition"]) == ("lost", "events", "0-0")
    assert (event["start"], event["end"], event["size_bytes"]) == (0, 200 * SIZE, 200 * SIZE)


def events_of(report: Path) -> list[dict[str, object]]:
    texts = [file.read_text() for file in sorted(report.glob("*.json"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def damage(data: Path, place: int, replacement: bytes) -> None:
    """Overwrite bytes of a segment, `place` counted from the start of the only file below."""
    (file,) = data.rglob("*.pylog")
    content = bytearray(file.read_bytes())
    content[place : place + len(replacement)] = replacement
    file.write_bytes(content)


BAD_CRC = (50 * SIZE + SIZE - 1, b"?")
BAD_LENGTH = (50 * SIZE, b"\x00\x00\x00\x02")
BAD_MAGIC = (50 * SIZE + 4, b"\x09")
BAD_CODEC = (50 * SIZE + 5, b"\x07")
LONG_LENGTH = (50 * SIZE, b"\x00\x7f\x00\x00")
KINDS = [BAD_CRC, BAD_LENGTH, BAD_MAGIC, BAD_CODEC, LONG_LENGTH]
IDS = ["crc", "length", "magic", "codec", "long"]


@pytest.fixture(params=["files", "broker"])
def damaged(
    request: pytest.FixtureRequest, write_segments: WriteSegments, tmp_path: Path
) -> Callable[[tuple[int, bytes]], dict[str, str]]:
    """Damage one of 100 messages, in files and on a broker; returns options to read them."""

    def in_files(where: tuple[int, bytes]) -> dict[str, str]:
        data = write_segments(numbered(0, 100))
        damage(data, *where)
        return {"path": str(data)}

    def on_a_broker(where: tuple[int, bytes]) -> dict[str, str]:
        broker = request.getfixturevalue("running_broker")
        publish(broker, "events", numbered(0, 100))
        damage(tmp_path / "data", *where)
        return at(broker, fetchSize="70")

    return in_files if request.param == "files" else on_a_broker


Damaged = Callable[[tuple[int, bytes]], dict[str, str]]


@pytest.mark.parametrize("where", KINDS, ids=IDS)
def test_damage_when_met_then_the_task_fails_naming_topic_partition_and_offset(
    damaged: Damaged, where: tuple[int, bytes]
) -> None:
    with pytest.raises(
        InvalidMessageError, match=rf"^events\[0-0\]: the message at {50 * SIZE} is invalid: "
    ):
        read(**damaged(where))


@pytest.mark.parametrize("where", KINDS, ids=IDS)
def test_damage_when_skipped_then_all_other_messages_come_and_it_is_reported(
    damaged: Damaged, where: tuple[int, bytes], tmp_path: Path
) -> None:
    options = damaged(where) | {"crc": "skip", "reportPath": str(tmp_path / "report")}

    rows = read(**options)

    assert values(rows) == numbered(0, 50) + numbered(51, 100)
    (event,) = events_of(tmp_path / "report")
    assert (event["cause"], event["start"], event["end"]) == ("corrupt", 50 * SIZE, 51 * SIZE)


@pytest.mark.parametrize("where", KINDS, ids=IDS)
def test_damage_when_marked_then_a_row_stands_for_it(
    damaged: Damaged, where: tuple[int, bytes]
) -> None:
    rows = read(**damaged(where), crc="mark")

    assert [row["crc_ok"] for row in rows] == [True] * 50 + [False] + [True] * 49
    assert (rows[50]["offset"], rows[50]["next_offset"]) == (50 * SIZE, 51 * SIZE)
    has_value = where in (BAD_CRC, BAD_CODEC)
    assert (rows[50]["value"] is not None) == has_value


def test_crc_when_switched_off_then_the_message_comes_as_it_is(damaged: Damaged) -> None:
    rows = read(**damaged(BAD_CRC), crc="off")

    assert values(rows) == [*numbered(0, 50), b"05?", *numbered(51, 100)]


def test_chain_when_broken_and_crc_switched_off_then_the_task_fails(damaged: Damaged) -> None:
    with pytest.raises(InvalidMessageError, match=f"the message at {50 * SIZE} "):
        read(**damaged(BAD_LENGTH), crc="off")


def test_damage_when_there_is_more_of_it_then_each_is_passed(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments(numbered(0, 100))
    for place, replacement in ((10 * SIZE + 4, b"\x09"), BAD_CRC, (99 * SIZE + 12, b"?")):
        damage(data, place, replacement)

    rows = read(path=str(data), crc="skip", reportPath=str(tmp_path / "report"))

    wanted = itertools.chain(numbered(0, 10), numbered(11, 50), numbered(51, 99))
    assert values(rows) == list(wanted)
    assert len(events_of(tmp_path / "report")) == 3


def test_task_when_tried_again_then_reports_the_same_once(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments(numbered(0, 100))
    damage(data, *BAD_CRC)
    options = {"path": str(data), "crc": "skip", "reportPath": str(tmp_path / "report")}

    assert read(**options) == read(**options)
    assert len(events_of(tmp_path / "report")) == 1


def test_file_when_shortened_after_planning_then_the_task_says_so(
    write_segments: WriteSegments,
) -> None:
    options = {"path": str(write_segments(numbered(0, 100)))}
    made = plan(options)
    (file,) = Path(options["path"]).rglob("*.pylog")
    file.write_bytes(file.read_bytes()[: 40 * SIZE])

    with pytest.raises(LogCorruptError, match=f"ends at offset {40 * SIZE}"):
        run(made, options)

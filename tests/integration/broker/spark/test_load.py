"""Loads without a JVM: what becomes visible, whatever happens on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from broker.errors import (
    BrokerError,
    ConfigError,
    DataLossError,
    InvalidMessageError,
    LogCorruptError,
    OffsetNotAvailableError,
    OutputConflictError,
)
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.server.broker import Broker
from broker.spark import load as load_module
from broker.spark.load import LoadRequest, look_at_load, prepare_load, run_load
from broker.spark.loading import output as output_module
from broker.spark.loading.dates import DateRule
from broker.spark.loading.output import LoadOutput, Manifest
from broker.spark.loading.plan import account
from broker.spark.loading.task import TaskResult, load_range
from broker.spark.local import LocalProcesses
from broker.spark.reading.ranges import ReadTask
from broker.topic import TopicPartition
from tests.support.recreation import await_creation, create_again
from tests.support.segments import WriteSegments
from tests.support.spark_rows import parse
from tests.support.spark_session import publish
from tests.support.waiting import wait_until

ENGINE = LocalProcesses(1)
SIZE = len(build_set([b"0000"]))
DAY = DateRule("2026-11-22")
EVENTS = TopicPartition("events", 0, 0)


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, last)]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def request_of(output: Path) -> Callable[..., LoadRequest]:
    """Load segment files."""

    def make(data: Path, options: dict[str, str] | None = None, **fields: Any) -> LoadRequest:
        made = parse({"path": str(data), **(options or {})})
        return LoadRequest(output, made, dates=DAY, **fields)

    return make


RequestOf = Callable[..., LoadRequest]


def loaded(output: Path) -> list[bytes]:
    """All values that readers see, in the order of loads and offsets."""
    rows = []
    for path in output.glob("loads/**/*.parquet"):
        number = path.relative_to(output).parts[1]
        table = pq.ParquetFile(path).read().to_pylist()
        rows += [(number, row["offset"], row["inner_index"], row["value"]) for row in table]
    return [value for *_, value in sorted(rows)]


def last(output: Path) -> Manifest:
    found = LoadOutput(output).last()
    assert found is not None
    return found


def test_load_when_run_again_then_adds_what_came_since(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    data = write_segments(numbered(0, 100))
    first = run_load(ENGINE, request_of(data, {"maxBytesPerPartition": "300"}))
    again = run_load(ENGINE, request_of(data))
    write_segments(numbered(100, 150), start=100 * SIZE)
    second = run_load(ENGINE, request_of(data))

    assert first and second and again is None
    assert (first.message_count, second.message_count) == (100, 50)
    assert len(first.files) == 1
    assert second.partitions[0].start == first.partitions[0].end == 100 * SIZE
    assert loaded(output) == numbered(0, 150)


def test_manifest_when_read_back_then_is_what_was_written(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    made = run_load(ENGINE, request_of(write_segments(numbered(0, 10))))

    assert made and last(output) == made
    (part,) = made.partitions
    assert (part.message_count, part.payload_bytes, part.left_out) == (10, 40, ())
    crcs = [row["crc"] for row in pq.read_table(output / "loads").to_pylist()]
    assert part.crc_sum == sum(crcs)
    assert made.size_bytes == sum(path.stat().st_size for path in output.glob("loads/**/*.parquet"))


def test_files_when_partitions_have_many_days_then_there_is_one_a_day(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    """Each of four partitions has messages of eleven days."""
    lines = [b"2026-01-%02d %04d" % (day, number) for day in range(1, 12) for number in range(4)]
    data = write_segments(lines)
    for index in range(1, 4):
        write_segments(lines, directory=f"events_{index}")
    options = parse({"path": str(data), "maxBytesPerPartition": "600"})
    dates = DateRule(DAY.load_day, pattern=r"^\S+")

    made = run_load(ENGINE, LoadRequest(output, options, dates=dates))

    paths = list(output.glob("loads/**/*.parquet"))
    assert made and len(paths) == len(made.files) == len({path.parent for path in paths}) == 11
    assert sorted(loaded(output)) == sorted(lines * 4)
    assert made.message_count == sum(one.message_count for one in made.files) == 4 * 44
    assert made.size_bytes == sum(path.stat().st_size for path in paths)


class Killed(BaseException):
    """Stands for the end of the process."""


def kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """End the process before the given durable step; returns the steps that were taken."""
    steps: list[str] = []

    def dying(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(steps) == step:
                raise Killed
            steps.append(name)
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(load_module, "load_range", dying("task", load_range))
    for name in ("write_atomically", "sync_directory", "_remove_unnamed"):
        monkeypatch.setattr(output_module, name, dying(name, getattr(output_module, name)))
    monkeypatch.setattr(Path, "rename", dying("rename", Path.rename))
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    return steps


@pytest.mark.parametrize("rewinds", [False, True])
def test_load_when_killed_at_any_step_and_run_again_then_has_each_message_once(
    write_segments: WriteSegments, tmp_path: Path, rewinds: bool
) -> None:
    for step in range(100):
        output = tmp_path / f"lake-{step}"
        data = write_segments(numbered(0, 40))
        options = parse({"path": str(data), "maxBytesPerPartition": "300"})
        request = LoadRequest(output, options, dates=DAY)
        run_load(ENGINE, request)
        write_segments(numbered(40, 60), start=40 * SIZE)
        run_load(ENGINE, request)
        write_segments(numbered(60, 80), start=60 * SIZE)
        with pytest.MonkeyPatch.context() as patch:
            taken = kill_at(step, patch)
            try:
                run_load(ENGINE, replace(request, rewinds=rewinds))
            except Killed:
                pass
            else:
                assert len(taken) == step > 5
                break

        seen = loaded(output)
        assert seen == numbered(0, len(seen)), "a prefix is visible, each message once"
        assert len(seen) in ((0, 40, 60, 80) if rewinds else (60, 80))
        run_load(ENGINE, request)
        assert loaded(output) == numbered(0, 80)
        for path in sorted((tmp_path / "logs").glob("*/*.pylog"))[1:]:
            path.unlink()
    else:
        pytest.fail("there is no end of steps")


def test_files_when_no_result_names_them_then_are_not_committed(
    write_segments: WriteSegments,
    request_of: RequestOf,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What attempts leave that failed after they had written everything."""

    def twice(task: ReadTask, **settings: Any) -> TaskResult:
        load_range(task, **settings)
        return load_range(task, **settings)

    monkeypatch.setattr(load_module, "load_range", twice)
    run_load(ENGINE, request_of(write_segments(numbered(0, 30))))

    assert loaded(output) == numbered(0, 30)


def test_load_when_another_runs_then_is_refused(
    write_segments: WriteSegments, request_of: RequestOf
) -> None:
    request = request_of(write_segments(numbered(0, 3)))

    with (
        prepare_load(request),
        pytest.raises(OutputConflictError, match=r"another load into .* is running"),
        prepare_load(request),
    ):
        pytest.fail("two at once")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"file_format": "json"}, "has loads with format 'parquet', not 'json'"),
        ({"group": "other"}, "has loads with group 'load', not 'other'"),
    ],
)
def test_load_when_the_output_has_loads_of_another_kind_then_is_refused(
    write_segments: WriteSegments, request_of: RequestOf, fields: dict[str, str], words: str
) -> None:
    data = write_segments(numbered(0, 3))
    run_load(ENGINE, request_of(data))

    with pytest.raises(OutputConflictError, match=words):
        run_load(ENGINE, request_of(data, **fields))


def test_load_when_the_output_has_something_else_then_is_refused(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    request = request_of(write_segments(numbered(0, 3)))
    output.mkdir()
    (output / "thesis.txt").touch()

    with pytest.raises(OutputConflictError, match=r"has 'thesis.txt', which is not of a load"):
        look_at_load(request)


@pytest.mark.parametrize("content", ["", "{}", '{"version": 7}', '{"version": 1, "load": 1}'])
def test_load_when_the_manifest_is_none_of_ours_then_is_refused(
    write_segments: WriteSegments, request_of: RequestOf, output: Path, content: str
) -> None:
    request = request_of(write_segments(numbered(0, 3)))
    run_load(ENGINE, request)
    manifest = output / "loads" / "load=0000000001" / "_offsets.json"
    manifest.write_text(content)

    with pytest.raises(OutputConflictError, match=str(manifest)):
        look_at_load(request)


def test_output_when_on_an_object_store_then_is_refused() -> None:
    with pytest.raises(ConfigError, match="'s3a://bucket/x' is not a directory"):
        LoadOutput("s3a://bucket/x")


def test_rewind_when_asked_for_then_loads_again_from_where_loads_stay(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    data = write_segments(numbered(0, 10))
    run_load(ENGINE, request_of(data))
    for start in (10, 20):
        write_segments(numbered(start, start + 10), start=start * SIZE)
        run_load(ENGINE, request_of(data))
    wanted = json.dumps({"events": {"0-0": 15 * SIZE}})

    made = run_load(ENGINE, request_of(data, {"startingOffsets": wanted}, rewinds=True))

    assert made and (made.number, made.partitions[0].start) == (2, 10 * SIZE)
    assert loaded(output) == numbered(0, 30)
    assert len(list((output / "_retired").iterdir())) == 2


def test_rewind_when_into_the_first_load_then_loads_all_of_it_again(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    data = write_segments(numbered(0, 10))
    run_load(ENGINE, request_of(data))
    wanted = json.dumps({"events": {"0-0": 5 * SIZE}})

    made = run_load(ENGINE, request_of(data, {"startingOffsets": wanted}, rewinds=True))

    assert made and (made.number, made.partitions[0].start) == (1, 0)
    assert loaded(output) == numbered(0, 10)


def test_rewind_when_retention_has_passed_what_is_taken_back_then_is_refused(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    data = write_segments(numbered(0, 10))
    write_segments(numbered(10, 20), start=10 * SIZE)
    run_load(ENGINE, request_of(data))
    (data / "events_0" / f"{0:020d}.pylog").unlink()

    with pytest.raises(DataLossError, match=r"offset 0 was asked for"):
        run_load(ENGINE, request_of(data, rewinds=True))

    assert loaded(output) == numbered(0, 20)


def test_rewind_when_a_load_has_another_topic_too_then_is_refused(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    write_segments(numbered(0, 5), directory="other_0")
    data = write_segments(numbered(0, 5))
    run_load(ENGINE, request_of(data))

    with pytest.raises(
        ConfigError, match=r"load 1 would be retired, and has messages of other\[0-0\]"
    ):
        look_at_load(request_of(data, {"subscribe": "events"}, rewinds=True))


def test_retention_when_it_was_faster_then_load_fails_or_says_what_is_missing(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    data = write_segments(numbered(0, 10))
    run_load(ENGINE, request_of(data))
    write_segments(numbered(20, 30), start=20 * SIZE)
    (data / "events_0" / f"{0:020d}.pylog").unlink()

    with pytest.raises(DataLossError, match=rf"events\[0-0\]: offset {10 * SIZE} was asked for"):
        run_load(ENGINE, request_of(data))
    made = run_load(ENGINE, request_of(data, {"failOnDataLoss": "false"}))

    assert made and loaded(output) == [*numbered(0, 10), *numbered(20, 30)]
    (part,) = made.partitions
    assert (part.start, part.end) == (10 * SIZE, 30 * SIZE)
    (gap,) = made.left_out
    assert (gap.cause, gap.start, gap.end) == ("lost", 10 * SIZE, 20 * SIZE)


def test_log_when_it_was_made_anew_then_load_fails_or_starts_from_its_start(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    data = write_segments(numbered(0, 10))
    run_load(ENGINE, request_of(data))
    write_segments(numbered(50, 55))

    with pytest.raises(DataLossError, match=f"the log ends at {5 * SIZE}"):
        run_load(ENGINE, request_of(data))
    made = run_load(ENGINE, request_of(data, {"failOnDataLoss": "false"}))

    assert made and made.offsets == {EVENTS: 5 * SIZE}
    assert len(made.left_out) == 1
    assert loaded(output) == [*numbered(0, 10), *numbered(50, 55)]


def test_partitions_when_they_are_away_then_their_offsets_are_kept(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    data = write_segments(numbered(0, 5), directory="other_0")
    write_segments(numbered(0, 5))
    run_load(ENGINE, request_of(data))
    (data / "other_0" / f"{0:020d}.pylog").unlink()
    write_segments(numbered(5, 8), start=5 * SIZE)
    other = TopicPartition("other", 0, 0)

    assert look_at_load(request_of(data)).absent == (other,)
    made = run_load(ENGINE, request_of(data))

    assert made and made.offsets == {EVENTS: 8 * SIZE, other: 5 * SIZE}


def test_damage_when_met_then_load_fails_or_leaves_it_out_and_says_so(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    data = write_segments(numbered(0, 20))
    path = data / "events_0" / f"{0:020d}.pylog"
    content = bytearray(path.read_bytes())
    content[7 * SIZE + SIZE - 1] ^= 1
    path.write_bytes(content)

    with pytest.raises(InvalidMessageError, match=rf"events\[0-0\]: .*{7 * SIZE}"):
        run_load(ENGINE, request_of(data))
    assert LoadOutput(output).last() is None
    made = run_load(ENGINE, request_of(data, skips_corrupt=True))

    assert made and loaded(output) == [*numbered(0, 7), *numbered(8, 20)]
    (gap,) = made.left_out
    assert (gap.cause, gap.start, gap.end) == ("corrupt", 7 * SIZE, 8 * SIZE)


@pytest.mark.parametrize(("step", "entry_count"), [(1, 1), (2, 101)])
def test_damage_when_in_many_messages_then_the_manifest_is_small_and_has_all_of_it(
    write_segments: WriteSegments,
    request_of: RequestOf,
    output: Path,
    caplog: pytest.LogCaptureFixture,
    step: int,
    entry_count: int,
) -> None:
    data = write_segments(numbered(0, 1000), numbered(1000, 2000))
    for path in data.rglob("*.pylog"):
        content = bytearray(path.read_bytes())
        for end in range(SIZE, len(content) + 1, step * SIZE):
            content[end - 1] ^= 1
        path.write_bytes(content)
    request = request_of(data, {"maxBytesPerPartition": "10000"}, skips_corrupt=True)

    made = run_load(ENGINE, request)

    assert made and len(made.left_out) == entry_count
    assert sum(gap.count for gap in made.left_out) == 2000 // step
    assert sum(gap.size_bytes for gap in made.left_out) == 2000 // step * SIZE
    assert made.message_count == 2000 - 2000 // step
    assert LoadOutput(output).last() == made
    assert len(caplog.records) <= 11 * 4


def test_account_when_a_part_is_missing_then_nothing_is_committed(
    write_segments: WriteSegments, request_of: RequestOf, tmp_path: Path
) -> None:
    request = request_of(write_segments(numbered(0, 20)), {"maxBytesPerPartition": "100"})
    plan = look_at_load(request)
    rows = request.row_settings(request.options, has_records=False)
    parts = [load_range(task, tmp_path, "parquet", rows).part for task in plan.read.tasks]
    assert account(plan, parts)[0].message_count == 20

    for wrong in (parts[1:], parts[:-1], [*parts[:1], *parts[2:]], [*parts, parts[0]]):
        with pytest.raises(LogCorruptError):
            account(plan, wrong)


def test_compressed_messages_when_loaded_then_come_singly(
    write_segments: WriteSegments, request_of: RequestOf, output: Path
) -> None:
    data = write_segments()
    log = data / "events_0"
    parts = [
        build_set(numbered(0, 5)),
        build_set(numbered(5, 30), Codec.GZIP),
        build_set([b"0030"]),
    ]
    (log / f"{0:020d}.pylog").write_bytes(b"".join(parts))

    run_load(ENGINE, request_of(data))

    assert loaded(output) == numbered(0, 31)


def test_load_of_brokers_when_topics_grow_then_has_each_message_once(
    running_broker: Broker, output: Path
) -> None:
    options = {
        "brokers": f"127.0.0.1:{running_broker.port}",
        "subscribePattern": "ev.*",
        "maxBytesPerPartition": "500",
    }
    request = LoadRequest(output, parse(options), dates=DAY)
    seen: Counter[bytes] = Counter()
    for start in (0, 100, 200):
        publish(running_broker, "events", numbered(start, start + 100))
        publish(running_broker, "evenings", numbered(start, start + 50))
        run_load(ENGINE, request)
        seen.update([*numbered(start, start + 100), *numbered(start, start + 50)])

    assert Counter(loaded(output)) == seen


def test_topic_when_unknown_then_is_an_error_of_ours(running_broker: Broker, output: Path) -> None:
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "subscribe": "nothing"}
    with pytest.raises(BrokerError, match="topic 'nothing' not found"):
        look_at_load(LoadRequest(output, parse(options)))
    assert not output.exists()


@pytest.mark.parametrize("where", [pytest.param("zk", marks=pytest.mark.zookeeper), "brokers"])
def test_topic_when_created_again_then_the_next_load_fails_or_begins_at_its_start(
    start_broker: Callable[..., Broker],
    request: pytest.FixtureRequest,
    where: str,
    output: Path,
) -> None:
    zookeeper = request.getfixturevalue("zookeeper") if where == "zk" else ""
    session = request.getfixturevalue("session") if where == "zk" else None
    broker = start_broker(zookeeper=zookeeper)
    publish(broker, "events", numbered(0, 10))
    options = parse({where: zookeeper or f"127.0.0.1:{broker.port}", "subscribe": "events"})
    load = LoadRequest(output, options, dates=DAY)
    former = await_creation(session, "events")
    run_load(ENGINE, load)

    create_again(broker, "events", numbered(100, 130))
    await_creation(session, "events", other_than=former)

    with pytest.raises(DataLossError, match=f"{10 * SIZE} was reached, and the topic was deleted"):
        run_load(ENGINE, load)
    bearing = replace(load, options=replace(options, fail_on_data_loss=False))
    manifest = run_load(ENGINE, bearing)
    assert manifest is not None
    assert manifest.message_count == 30
    assert [gap.message for gap in manifest.left_out if "created again" in gap.message]
    assert run_load(ENGINE, load) is None
    publish(broker, "events", numbered(130, 131))
    following = run_load(ENGINE, load)
    assert following is not None
    assert following.message_count == 1


def test_load_when_the_leader_is_behind_what_was_loaded_then_waits_and_loads_nothing_twice(
    running_broker: Broker, output: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a new leader that does not know yet what is committed."""
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "subscribe": "events"}
    load = LoadRequest(output, parse(options | {"failOnDataLoss": "false"}), dates=DAY)
    publish(running_broker, "events", numbered(0, 10))
    run_load(ENGINE, load)
    claim_loaded(output, 50)
    hasty = replace(load, options=parse(options | {"timeoutMs": "500"}))

    with pytest.raises(OffsetNotAvailableError, match=rf"events\[0-0\]: offset {50 * SIZE} was"):
        run_load(ENGINE, hasty)
    caplog.clear()
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(run_load, ENGINE, load)
        wait_until(lambda: "asking again" in caplog.text, "the wait for the leader")
        publish(running_broker, "events", numbered(10, 60))
        loading.result()
    run_load(ENGINE, load)  # what was committed since the load looked

    assert loaded(output) == [*numbered(0, 10), *numbered(50, 60)]
    assert caplog.text.count("asking again") == 1


def claim_loaded(output: Path, count: int) -> None:
    """Have the last manifest say that so many messages of events[0-0] are loaded."""
    (path,) = output.glob("loads/*/_offsets.json")
    path.write_text(path.read_text().replace(f'"0-0": {10 * SIZE}', f'"0-0": {count * SIZE}'))

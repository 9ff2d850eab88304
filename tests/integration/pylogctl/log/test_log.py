"""`pylogctl log`."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from broker import Broker
from broker.client.connection import Connection
from broker.log.archiving import archive_segment
from broker.log.data_directory import LOCK_NAME
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.message_set import build_set, wrap
from broker.protocol.responses import BrokerAddress
from broker.topic import FORMAT_KAFKA, TopicPartition
from broker.units import format_size
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Spawn

NAME = "00000000000000000000.pylog"
ENTRY = len(encode([b"hello"]))


def _segment(directory: Path, data: bytes, name: str = NAME) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_bytes(data)
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Three plain messages and a compressed entry of two."""
    data = encode([b"hello", b"world", b"\xff\n"]) + build_set([b"in", b"side"], Codec.GZIP)
    return _segment(tmp_path / "data" / "t_0", data)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Three messages, the second with a flipped payload bit."""
    data = bytearray(encode([b"hello", b"world", b"again"]))
    data[2 * ENTRY - 1] ^= 1
    return _segment(tmp_path / "data" / "t_1", bytes(data))


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Two messages and the beginning of a third."""
    return _segment(tmp_path / "data" / "t_2", encode([b"hello", b"world", b"again"])[:-3])


def _jsonl(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_dump_shows_each_message_on_a_line(invoke: Invoke, good: Path) -> None:
    result = invoke(
        "log", "dump", str(good), "-n", "3", "--columns", "pos,size,codec,inner,payload"
    )
    assert result.status == 0
    assert result.text.splitlines() == [
        "POS  SIZE  CODEC  INNER  PAYLOAD",
        "  0     5  none       0  hello",
        " 15     5  none       0  world",
        " 30     2  none       0  \\xff\\n",
    ]


def test_dump_unfolds_compressed_entries_unless_shallow(invoke: Invoke, good: Path) -> None:
    deep = _jsonl(invoke("log", "dump", str(good), "-o", "-2", "--output", "jsonl").text)
    assert [(r["pos"], r["inner"], r["payload"]) for r in deep] == [(42, 0, "in"), (42, 1, "side")]
    args = ("--shallow", "--no-payload", "--output", "jsonl")
    shallow = _jsonl(invoke("log", "dump", str(good), *args).text)
    assert [(r["inner"], r["payload"]) for r in shallow] == [(None, None)] * 4
    assert [r["codec"] for r in shallow] == ["none", "none", "none", "gzip"]


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("utf8", "\\xff\\n"), ("hex", "ff0a"), ("base64", "/wo="), ("escape", "\\xff\\n")],
)
def test_dump_shows_payloads_as_asked(
    invoke: Invoke, good: Path, encoding: str, shown: str
) -> None:
    args = ("-o", "30:42", "--payload", encoding, "--columns", "payload", "--no-header")
    assert invoke("log", "dump", str(good), *args).text == f"{shown}\n"


def test_dump_with_a_format_writes_bytes(invoke: Invoke, good: Path) -> None:
    result = invoke("log", "dump", str(good), "-F", "%t[%p] %o %n %i %s|")
    assert result.stdout.startswith(
        b"t[0-0] 0 15 1 hello|t[0-0] 15 30 2 world|t[0-0] 30 42 3 \xff\n|"
    )


@pytest.mark.parametrize(
    ("spec", "payloads"),
    [
        ("start", 5), (":end", 5), ("+4", 1), ("15:30", 1), ("~1", 4), ("-1:", 1), ("end", 0),
        ("42:42", 0),
    ],
)  # fmt: skip
def test_dump_given_offsets_shows_that_part(
    invoke: Invoke, good: Path, spec: str, payloads: int
) -> None:
    text = invoke("log", "dump", str(good), "-o", spec, "--output", "jsonl").text
    assert len(text.splitlines()) == payloads


def test_dump_counts_offsets_from_the_name_of_the_file(invoke: Invoke, tmp_path: Path) -> None:
    path = _segment(tmp_path / "t_0", encode([b"a", b"b"]), "00000000000000001000.pylog")
    (record,) = _jsonl(invoke("log", "dump", str(path), "-o", "1011", "--output", "jsonl").text)
    assert (record["pos"], record["offset"]) == (11, 1011)


def test_dump_given_a_position_inside_a_message_names_the_neighbours(
    invoke: Invoke, good: Path
) -> None:
    result = invoke("log", "dump", str(good), "-o", "17")
    assert result.status == ExitStatus.USAGE
    assert "17 is not a message boundary in t[0-0]; nearest are 15 and 30" in result.stderr


def test_dump_given_a_time_is_a_usage_error(invoke: Invoke, good: Path) -> None:
    result = invoke("log", "dump", str(good), "-o", "@-1h")
    assert result.status == ExitStatus.USAGE
    assert "need a broker" in result.stderr


def test_dump_of_a_damaged_message_shows_it_and_fails(invoke: Invoke, damaged: Path) -> None:
    result = invoke("log", "dump", str(damaged), "--output", "csv", "--columns", "pos,valid")
    assert result.status == ExitStatus.CORRUPT
    assert result.text == "pos,valid\n0,true\n15,false\n30,true\n"


def test_dump_of_a_torn_file_shows_what_is_whole_and_fails(invoke: Invoke, torn: Path) -> None:
    result = invoke("log", "dump", str(torn), "--output", "json")
    assert result.status == ExitStatus.CORRUPT
    assert len(json.loads(result.text)["data"]) == 2
    assert "the message at 30 is invalid: it is incomplete" in result.stderr


def test_dump_of_keys_is_unsupported(invoke: Invoke, good: Path) -> None:
    assert invoke("log", "dump", str(good), "-F", "%k").status == ExitStatus.UNSUPPORTED


def test_dump_of_several_files_names_them(invoke: Invoke, good: Path, damaged: Path) -> None:
    text = invoke("log", "dump", str(good), str(damaged), "-n", "1").text
    assert text.splitlines()[1].startswith(str(good))


def test_dump_reads_a_segment_from_stdin(invoke: Invoke, good: Path) -> None:
    result = invoke("log", "dump", "-", "-F", "%s,", "-n", "2", stdin=good.read_bytes())
    assert result.stdout == b"hello,world,"


def test_dump_reads_a_segment_of_a_real_broker(invoke: Invoke, shared_data: Path) -> None:
    path = shared_data / "kafka-magic0" / "00000000000000000000.kafka"
    assert len(invoke("log", "dump", str(path), "--output", "jsonl").text.splitlines()) == 100


def test_dump_of_a_missing_file_is_not_found(invoke: Invoke) -> None:
    result = invoke("log", "dump", "/no/such")
    assert result.status == ExitStatus.NOT_FOUND
    assert result.stderr == "error: '/no/such': no such file or directory\n"


def test_verify_of_good_files_says_so_and_writes_nothing(invoke: Invoke, good: Path) -> None:
    result = invoke("log", "verify", str(good.parent))
    assert (result.status, result.stdout) == (0, b"")
    assert result.stderr.startswith(f"1 file, {good.stat().st_size} B, 5 messages, 0 problems, ")


def test_verify_of_good_files_for_a_program_is_an_empty_document(
    invoke: Invoke, good: Path
) -> None:
    result = invoke("log", "verify", str(good), "--output", "json", "-q")
    assert result.text == '{"schema":"pylogctl.log.verify/1","data":[]}\n'
    assert result.stderr == ""


@pytest.mark.parametrize("engine", ["codec", "zlib", "crcmod"])
def test_verify_reports_every_problem(
    invoke: Invoke, damaged: Path, torn: Path, engine: str
) -> None:
    args = (str(damaged), str(torn), "--engine", engine, "--output", "jsonl")
    result = invoke("log", "verify", *args)
    assert result.status == ExitStatus.CORRUPT
    assert [(r["file"], r["pos"], r["kind"], r["bytes_after"]) for r in _jsonl(result.text)] == [
        (str(damaged), 15, "crc", 30),
        (str(torn), 30, "partial", 12),
    ]
    assert "2 files" in result.stderr
    assert "2 problems" in result.stderr


def test_verify_finds_gaps_between_segments(invoke: Invoke, good: Path) -> None:
    _segment(good.parent, encode([b"x"]), "00000000000000000100.pylog")
    (record,) = _jsonl(invoke("log", "verify", str(good.parent), "--output", "jsonl").text)
    assert (record["kind"], record["found"]) == ("gap", "100")


def test_verify_uses_several_processes(run_process: Invoke, good: Path, damaged: Path) -> None:
    data = str(good.parents[1])
    result = run_process("log", "verify", data, "--jobs", "2", "--output", "name")
    assert result.status == ExitStatus.CORRUPT
    assert result.text == f"{damaged}\n"


@pytest.mark.parametrize(
    ("names", "status"),
    [(["/no/such"], ExitStatus.NOT_FOUND), (["/no/such", "GOOD"], ExitStatus.PARTIAL)],
)
def test_verify_of_missing_files_names_them(
    invoke: Invoke, good: Path, names: list[str], status: ExitStatus
) -> None:
    result = invoke("log", "verify", *(str(good) if name == "GOOD" else name for name in names))
    assert result.status == status
    assert "error: '/no/such': no such file or directory\n" in result.stderr
    assert "0 files" not in result.stderr


@pytest.mark.parametrize("command", ["verify", "stat", "dump"])
def test_directory_when_one_below_is_removed_meanwhile_then_the_rest_is_read_and_status_tells(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for name in "abc":
        _segment(tmp_path / f"{name}_0", encode([b"x"]))
    gone, scandir = tmp_path / "b_0", os.scandir

    def scan_later(path: object) -> Any:
        if str(path) == str(gone):
            shutil.rmtree(gone)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan_later)
    result = invoke("log", command, str(tmp_path), "--output", "jsonl")
    assert result.status == ExitStatus.PARTIAL, result
    assert "b_0" in result.stderr
    if command == "verify":
        assert "2 files" in result.stderr
    else:
        files = [record["file"] for record in _jsonl(result.text)]
        assert files == [str(tmp_path / f"{one}_0" / NAME) for one in "ac"]


def test_verify_of_shallow_depth_leaves_wrappers_closed(invoke: Invoke, tmp_path: Path) -> None:
    inner = bytearray(encode([b"hello"]))
    inner[-1] ^= 1
    wrapper = build_set([b"x"], Codec.GZIP)
    path = _segment(tmp_path / "t_0", wrap(bytes(inner), Codec.GZIP) + wrapper)
    deep = invoke("log", "verify", str(path), "--output", "jsonl")
    assert [record["kind"] for record in _jsonl(deep.text)] == ["compressed"]
    assert invoke("log", "verify", str(path), "--shallow").status == 0


def test_stat_measures(invoke: Invoke, good: Path) -> None:
    (record,) = _jsonl(invoke("log", "stat", str(good), "--output", "jsonl").text)
    assert (record["entries"], record["messages"], record["min"], record["max"]) == (4, 5, 2, 5)
    assert record["codecs"] == {"none": 3, "gzip": 1}
    assert record["fault"] is None


def test_stat_of_an_empty_segment_knows_no_sizes_of_messages(
    invoke: Invoke, tmp_path: Path
) -> None:
    path = _segment(tmp_path / "t_0", b"")
    result = invoke("log", "stat", str(path), "--columns", "messages,min,avg,max", "--no-header")
    assert result.text == "0  ?  ?  ?\n"
    (record,) = _jsonl(invoke("log", "stat", str(path), "--output", "jsonl").text)
    assert (record["messages"], record["min"], record["avg"], record["max"]) == (
        0,
        None,
        None,
        None,
    )


@pytest.mark.parametrize("command", ["stat", "verify"])
def test_progress_over_archives_ends_at_their_unpacked_size(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    path = _segment(tmp_path / "t_0", build_set([b"x" * 1000] * 1000))
    archive_segment(tmp_path / "archive", TopicPartition("t", 0, 0), path)
    monkeypatch.setattr("pylogctl.cli.progress.LINE_EVERY_S", 0.0)
    result = invoke("log", command, str(tmp_path / "archive"), "-v")
    size = format_size(path.stat().st_size)
    assert f"{command}: {size} of {size}, " in result.stderr


def test_stat_of_a_damaged_file_fails_after_its_figures(invoke: Invoke, torn: Path) -> None:
    result = invoke("log", "stat", str(torn), "--columns", "messages,fault", "--no-header")
    assert result.status == ExitStatus.CORRUPT
    assert result.text == "2  partial\n"


def test_recover_shows_a_plan_and_changes_nothing(invoke: Invoke, torn: Path) -> None:
    before = torn.read_bytes()
    result = invoke("log", "recover", str(torn.parent), "--output", "jsonl")
    assert result.status == 0
    (plan,) = _jsonl(result.text)
    assert (plan["cut_at"], plan["cut_bytes"], plan["done"]) == (30, 12, False)
    assert "nothing changed; add --execute" in result.stderr
    assert torn.read_bytes() == before


def test_recover_of_good_files_has_nothing_to_do(invoke: Invoke, good: Path) -> None:
    result = invoke("log", "recover", str(good), "--execute")
    assert (result.status, result.stdout, result.stderr) == (0, b"", "nothing to recover\n")


def test_recover_without_confirmation_declines(invoke: Invoke, torn: Path) -> None:
    result = invoke("log", "recover", str(torn), "--execute")
    assert result.status == ExitStatus.DECLINED
    assert f"add --yes --confirm {NAME}" in result.stderr


def test_recover_cuts_and_keeps_a_copy(invoke: Invoke, torn: Path) -> None:
    tail = torn.read_bytes()[30:]
    args = ("--execute", "--yes", "--confirm", NAME, "--output", "jsonl")
    result = invoke("log", "recover", str(torn), *args)
    assert result.status == 0
    (done,) = _jsonl(result.text)
    assert done["done"] is True
    assert Path(str(done["backup"])).read_bytes() == tail
    assert invoke("log", "verify", str(torn)).status == 0


def test_recover_without_backup_keeps_nothing(invoke: Invoke, torn: Path) -> None:
    args = ("--execute", "--no-backup", "--yes", "--confirm", NAME)
    assert invoke("log", "recover", str(torn), *args).status == 0
    assert [path.name for path in torn.parent.iterdir()] == [NAME]


def test_recover_with_dry_run_only_plans(invoke: Invoke, torn: Path) -> None:
    result = invoke("log", "recover", str(torn), "--execute", "--dry-run")
    assert result.status == 0
    assert torn.stat().st_size == 42


def test_recover_of_a_directory_in_use_is_a_conflict(invoke: Invoke, torn: Path) -> None:
    lock = torn.parents[1] / LOCK_NAME
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        result = invoke("log", "recover", str(torn), "--execute", "--yes", "--confirm", NAME)
    assert result.status == ExitStatus.CONFLICT
    assert torn.stat().st_size == 42


def test_dump_with_a_format_on_a_terminal_escapes_control_characters(
    tmp_path: Path, invoke: Invoke
) -> None:
    payload = b"a\x1b[2J\xff"
    path = _segment(tmp_path, encode([payload]))
    arguments = ("log", "dump", str(path), "-F", "%s\\n", "--no-pager")
    assert invoke(*arguments, tty=True).stdout == b"a\\x1b[2J\\xff\n"
    assert invoke(*arguments).stdout == payload + b"\n"


PAYLOADS = [b"text", b"\xff\x00\n", "é\u202e".encode(), b""]


@pytest.mark.parametrize("form", ["utf8", "hex", "base64"])
def test_dump_as_json_when_produced_again_gives_the_same_bytes(
    tmp_path: Path, invoke: Invoke, running_broker: Broker, form: str
) -> None:
    path = _segment(tmp_path, encode(PAYLOADS))
    dumped = invoke("log", "dump", str(path), "--output", "jsonl", "--payload", form)
    at = f"127.0.0.1:{running_broker.port}"
    assert invoke("produce", "t", "-b", at, "--jsonl", stdin=dumped.stdout).status == 0
    lines = invoke("consume", "t", "-b", at, "--from-beginning", "-e", "--hex").text.split("\n")
    assert [bytes.fromhex(line) for line in lines[:-1]] == PAYLOADS


@pytest.mark.parametrize("command", [["verify"], ["dump"], ["stat"], ["recover"]])
def test_directory_without_segments_is_not_found(
    tmp_path: Path, invoke: Invoke, good: Path, command: list[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    result = invoke("log", *command, str(empty))
    assert (result.status, result.stdout) == (ExitStatus.NOT_FOUND, b"")
    assert f"no segment files in '{empty}'" in result.stderr
    both = invoke("log", *command, str(empty), str(good))
    assert both.status == ExitStatus.PARTIAL
    assert f"no segment files in '{empty}'" in both.stderr


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Two archived segments of a partition, as retention makes them."""
    first = encode([b"one", b"two"])
    for number, data in ((0, first), (len(first), encode([b"three"]))):
        path = _segment(tmp_path / "log", data, f"{number:020d}.pylog")
        archive_segment(tmp_path / "archive", TopicPartition("t_1", 2, 3), path)
    return tmp_path / "archive"


def test_archived_segments_are_verified_measured_and_dumped_as_others(
    invoke: Invoke, archive: Path
) -> None:
    verified = invoke("log", "verify", str(archive))
    assert (verified.status, verified.stdout) == (0, b"")
    assert "2 files" in verified.stderr
    assert "3 messages, 0 problems" in verified.stderr
    stat = _jsonl(invoke("log", "stat", str(archive), "--output", "jsonl").text)
    assert [(one["bytes"], one["messages"]) for one in stat] == [(26, 2), (15, 1)]
    dumped = invoke("log", "dump", str(archive), "-F", "%t[%p] %o %s\\n")
    assert dumped.stdout == b"t_1[2-3] 0 one\nt_1[2-3] 13 two\nt_1[2-3] 26 three\n"
    last = invoke("log", "dump", str(archive), "-o", "-1", "-F", "%o ")
    assert last.stdout == b"13 26 "


def test_stat_when_an_archive_is_damaged_then_has_a_row_for_it_and_the_others(
    invoke: Invoke, archive: Path
) -> None:
    damaged = min(archive.rglob("*.gz"))
    damaged.write_bytes(damaged.read_bytes()[:20])
    result = invoke("log", "stat", str(archive), "--output", "jsonl")
    assert result.status == ExitStatus.CORRUPT
    assert [(one["bytes"], one["fault"]) for one in _jsonl(result.text)] == [
        (None, "archive"),
        (15, None),
    ]
    assert f"{damaged}: the archive is damaged" in result.stderr


def test_dump_of_the_end_of_an_archive_unpacks_it_once(
    invoke: Invoke, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Mock(wraps=gzip.open)
    monkeypatch.setattr(gzip, "open", opened)
    last = max(archive.rglob("*.gz"))
    assert invoke("log", "dump", str(last), "-o", "-1").status == 0
    opened.assert_called_once_with(last)


def test_verify_when_archived_segments_leave_a_gap_reports_it(
    invoke: Invoke, archive: Path, tmp_path: Path
) -> None:
    path = _segment(tmp_path / "log", encode([b"late"]), f"{1000:020d}.pylog")
    archive_segment(archive, TopicPartition("t_1", 2, 3), path)
    result = invoke("log", "verify", str(archive), "--output", "jsonl")
    (problem,) = _jsonl(result.text)
    assert result.status == ExitStatus.CORRUPT
    assert (problem["kind"], problem["skipped_bytes"]) == ("gap", 1000 - 41)


def test_verify_of_an_archive_that_is_cut_off_is_damage(invoke: Invoke, archive: Path) -> None:
    first = min(archive.rglob("*.gz"))
    first.write_bytes(first.read_bytes()[:-6])
    result = invoke("log", "verify", str(first), "--output", "jsonl")
    (problem,) = _jsonl(result.text)
    assert (result.status, problem["kind"]) == (ExitStatus.CORRUPT, "archive")
    assert invoke("log", "dump", str(first)).status == ExitStatus.CORRUPT


def test_recover_of_an_archive_is_refused_and_leaves_it(invoke: Invoke, archive: Path) -> None:
    first = min(archive.rglob("*.gz"))
    before = first.read_bytes()
    result = invoke("log", "recover", str(first), "--execute", "--yes", "--confirm", first.name)
    assert result.status == ExitStatus.USAGE
    assert first.read_bytes() == before


def test_move_when_the_broker_has_two_directories_then_the_log_is_in_the_other(
    start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path
) -> None:
    dirs = (tmp_path / "a", tmp_path / "b")
    broker = start_broker(data_dirs=dirs)
    with closing(Connection(BrokerAddress(-1, "127.0.0.1", broker.port))) as connection:
        sets = (PartitionSet(TopicPartition("t", 0, 0), encode([b"x"] * 9)),)
        connection.call(CreateTopicRequest("t"))
        connection.call(PublishRequest(Acks.COMMITTED, 10_000, sets))
    at = f"127.0.0.1:{broker.port}"
    moved = invoke("log", "move", "t[0-0]", "--to", str(dirs[1]), "-b", at, "--output", "json")
    assert moved.status == ExitStatus.OK
    (record,) = json.loads(moved.stdout)["data"]
    assert (record["directory"], record["bytes"]) == (str(dirs[1]), 9 * len(encode([b"x"])))
    assert (dirs[1] / "t_0").exists()
    assert not (dirs[0] / "t_0").exists()
    again = invoke("log", "move", "t[0-0]", "--to", str(dirs[1]), "-b", at)
    assert again.status == ExitStatus.CONFLICT
    assert "is in" in again.stderr
    for name in ("t", "t[-1]", "t-0", "[0-0]"):
        wrong = invoke("log", "move", name, "--to", str(dirs[1]), "-b", at)
        assert wrong.status == ExitStatus.USAGE
    for missing in (["t[0-0]", "--on-broker", "5"], ["t[0]"]):
        found = invoke("log", "move", *missing, "--to", "/x", "-b", at)
        assert found.status == ExitStatus.NOT_FOUND


def test_move_when_the_partition_has_no_home_then_its_leader_moves_it(
    start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path
) -> None:
    dirs = (tmp_path / "a", tmp_path / "b")
    broker = start_broker(data_dirs=dirs)
    broker.logs.creation.create_topic("t", 1, format=FORMAT_KAFKA)
    broker.logs.creation.get_or_create("t", 0)
    at = f"127.0.0.1:{broker.port}"
    moved = invoke("log", "move", "t[0]", "--to", str(dirs[1]), "-b", at, "--output", "json")
    assert moved.status == ExitStatus.OK
    assert (dirs[1] / "t-0" / "partition.metadata").exists()
    assert not (dirs[0] / "t-0").exists()


@pytest.mark.parametrize("command", [["verify"], ["dump"], ["stat"], ["recover"]])
def test_file_when_it_is_a_fifo_then_is_refused_at_once(
    tmp_path: Path, invoke: Invoke, command: list[str]
) -> None:
    fifo = tmp_path / NAME
    os.mkfifo(fifo)
    result = invoke("log", *command, str(fifo))
    assert (result.status, result.stdout) == (ExitStatus.FAILED, b"")
    assert f"'{fifo}': it is no regular file" in result.stderr


def test_verify_when_other_files_lie_beside_segments_then_leaves_them_out(
    invoke: Invoke, good: Path
) -> None:
    other = good.with_name("checkpoint")
    other.write_text("1")
    result = invoke("log", "verify", str(good), str(other))
    assert result.status == 0
    assert "1 file left out, which is no segment" in result.stderr
    alone = invoke("log", "verify", str(other))
    assert alone.status == ExitStatus.CORRUPT


def test_verify_of_all_in_a_data_directory_leaves_out_the_zookeeper_but_no_empty_log(
    invoke: Invoke, good: Path, tmp_path: Path
) -> None:
    data = tmp_path / "broker"
    for name in ("t_0", "t_1", "zookeeper"):
        (data / name).mkdir(parents=True)
    shutil.copy(good, data / "t_0" / NAME)
    (data / "meta.properties").write_text("broker.id=0\n")
    log, zookeeper = str(data / "t_0"), str(data / "zookeeper")

    result = invoke("log", "verify", log, zookeeper)
    assert result.status == 0
    assert f"'{zookeeper}' left out, which is no directory of a log" in result.stderr
    assert invoke("log", "verify", log, str(data / "t_1")).status == ExitStatus.PARTIAL
    assert invoke("log", "verify", zookeeper).status == ExitStatus.NOT_FOUND


def test_segment_of_any_width_of_name_when_in_a_directory_then_is_found(
    tmp_path: Path, invoke: Invoke
) -> None:
    first = encode([b"one"])
    _segment(tmp_path / "t_0", first, "00000000000.kafka")
    _segment(tmp_path / "t_0", encode([b"two"]), f"{len(first):011d}.kafka")
    result = invoke("log", "dump", str(tmp_path), "--columns", "payload", "--no-header")
    assert result.text == "one\ntwo\n"
    assert invoke("log", "verify", str(tmp_path)).status == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_dump_when_an_entry_holds_a_million_messages_then_memory_is_bounded(
    tmp_path: Path, spawn: Spawn
) -> None:
    path = _segment(tmp_path / "t_0", build_set([b"x"] * 1_500_000, Codec.GZIP))
    with spawn("log", "dump", str(path), "--columns", "inner", "--no-header") as process:
        assert process.stdout is not None
        assert process.stdout.readline().split() == [b"0"]  # the whole set was unfolded here
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.kill()
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    assert int(peak) < 150 << 10  # KiB; with all messages as objects at once, 300 MB


def test_grep_shows_the_messages_that_match_also_in_compressed_sets(
    invoke: Invoke, good: Path
) -> None:
    args = (str(good), "--columns", "payload", "--no-header")
    assert invoke("log", "grep", "^(w|si)", *args).text == "world\nside\n"
    assert invoke("log", "grep", "-i", "HELLO", *args).text == "hello\n"
    assert invoke("log", "grep", "--invert", "l|\\n", *args).text == "in\nside\n"
    assert invoke("log", "grep", "o", *args, "-o", "15", "-n", "1").text == "world\n"
    assert invoke("log", "grep", "absent", *args).text == ""


def test_grep_when_messages_are_damaged_then_finds_those_behind_them(
    invoke: Invoke, damaged: Path
) -> None:
    result = invoke("log", "grep", ".", str(damaged), "-F", "%s\\n")
    assert (result.status, result.text) == (0, "hello\nagain\n")


def test_grep_of_no_regular_expression_is_a_usage_error(invoke: Invoke, good: Path) -> None:
    result = invoke("log", "grep", "(", str(good))
    assert result.status == ExitStatus.USAGE
    assert "'(' is no regular expression" in result.stderr


def test_index_lists_where_entries_start(invoke: Invoke, tmp_path: Path) -> None:
    path = _segment(tmp_path / "t_0", encode([b"hello", b"on"]), f"{500:020d}.pylog")
    rows = _jsonl(invoke("log", "index", str(path), "--output", "jsonl").text)
    assert [(row["pos"], row["offset"], row["bytes"]) for row in rows] == [
        (0, 500, ENTRY),
        (ENTRY, 500 + ENTRY, ENTRY - 3),
    ]


def test_repair_writes_a_copy_without_what_is_damaged(invoke: Invoke, tmp_path: Path) -> None:
    bad_set = wrap(encode([b"in"])[:-1] + b"x", Codec.GZIP)
    data = bytearray(encode([b"hello", b"world", b"again"]) + bad_set + encode([b"last"]))
    data[2 * ENTRY - 1] ^= 1
    source = _segment(tmp_path / "t_0", bytes(data) + b"torn")
    copy = tmp_path / "copy.pylog"
    planned = invoke("log", "repair", str(source), "--to", str(copy), "--dry-run")
    assert not copy.exists()
    result = invoke("log", "repair", str(source), "--to", str(copy), "--output", "jsonl")
    assert [(row["pos"], row["kind"]) for row in _jsonl(result.text)] == [
        (ENTRY, "crc"),
        (3 * ENTRY, "compressed"),
        (len(data), "partial"),
    ]
    assert "3 messages, 44 B" in planned.stderr
    assert f"3 messages, 44 B written to '{copy}'" in result.stderr
    assert copy.read_bytes() == encode([b"hello", b"again", b"last"])
    assert source.read_bytes() == bytes(data) + b"torn"
    again = invoke("log", "repair", str(source), "--to", str(copy))
    assert again.status == ExitStatus.CONFLICT


def test_split_and_merge_when_one_follows_the_other_then_give_the_segment_again(
    invoke: Invoke, good: Path, tmp_path: Path
) -> None:
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    args = ("log", "split", str(good), "--at", "30", "--to", str(parts))
    result = invoke(*args, "--output", "jsonl")
    assert [(row["start"], row["end"]) for row in _jsonl(result.text)] == [
        (0, 30),
        (30, good.stat().st_size),
    ]
    assert invoke("log", "verify", str(parts)).status == 0
    assert invoke("log", "merge", str(parts), "--to", str(whole)).status == 0
    assert (whole / NAME).read_bytes() == good.read_bytes()
    assert invoke(*args).status == ExitStatus.CONFLICT


def test_split_inside_a_message_names_the_neighbours(
    invoke: Invoke, good: Path, tmp_path: Path
) -> None:
    result = invoke("log", "split", str(good), "--at", "17", "--to", str(tmp_path))
    assert result.status == ExitStatus.USAGE
    assert "nearest are 15 and 30" in result.stderr


def test_merge_of_segments_with_a_gap_is_a_conflict_and_writes_nothing(
    invoke: Invoke, tmp_path: Path
) -> None:
    _segment(tmp_path / "t_0", encode([b"hello"]))
    _segment(tmp_path / "t_0", encode([b"hello"]), f"{ENTRY + 1:020d}.pylog")
    result = invoke("log", "merge", str(tmp_path / "t_0"), "--to", str(tmp_path / "whole"))
    assert result.status == ExitStatus.CONFLICT
    assert f"ends at {ENTRY}, and" in result.stderr
    assert not (tmp_path / "whole").exists()

"""`pylogctl log`: dump, verify, compare, recover and replay segment files; move logs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from broker.errors import LogCorruptError
from broker.log.data_directory import parse_log_directory_name, read_broker_id
from broker.log.offline import inspect, rewrite
from broker.log.offline.recover import RecoveryPlan, plan_recovery
from broker.log.offline.recover import recover as recover_file
from broker.log.offline.segments import expand_paths, is_archive, is_segment, total_bytes
from broker.log.offline.verify import verify_paths
from broker.log.side_files import is_side_file
from broker.patterns import PayloadTest
from broker.units import counted, format_size
from pylogctl.cli import options as shared
from pylogctl.cli.confirmation import confirm_name
from pylogctl.cli.declarations import argument, limits, option, outputs, safety, selection
from pylogctl.cli.decoding import opened_decoding
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.log import document
from pylogctl.log.dump import dump_file, of_each, show, show_index

app = shared.App()

PARALLEL_FROM_BYTES = 64 << 20
READS = (ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.CORRUPT)

Files = Annotated[
    list[Path],
    argument(
        "FILE|DIR...",
        "Segment files, also Kafka's, archives (.gz), directories of these, or - for stdin.",
    ),
]
FilesOnDisk = Annotated[list[Path], argument("FILE|DIR...", "Segment files, directories of them.")]


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PAGER,
    exits=(*READS, ExitStatus.UNSUPPORTED),
)
def dump(
    env: Environment,
    files: Files,
    offset: str | None = shared.offset_option("Part of each file to show. Default: all."),
    max_messages: shared.MaxMessagesOption = None,
    shallow: bool = selection.flag(
        "--shallow", "Show compressed entries and Kafka's batches as one, not what is inside."
    ),
    no_payload: bool = outputs.flag("--no-payload", "Leave payloads out."),
    payload: shared.PayloadOption = "utf8",
    message_format: shared.MessageFormatOption = None,
    *,
    decoding: shared.DecodeChoice,
) -> None:
    r"""Show the messages of segment files, of this broker and of Kafka.

    The JSON forms can be produced again: payload_b64 has a payload that is not UTF-8. Records of
    Kafka have more: key, headers, timestamp, producer, and what a mark of a transaction means;
    --format leaves marks out.
    Ends with exit status 8 when a message or the end of a file is damaged.
    Only --decode needs brokers, which have the schemas.

    $ pylogctl log dump data/orders_0 -n 10
    $ pylogctl log dump /var/lib/kafka/orders-0 -o @-1h -F '%o %k %s\n'
    $ pylogctl log dump segment.kafka --output jsonl
    $ pylogctl log dump data/orders_0 -o -5 -F '%o %s\n'
    $ pylogctl log dump data/orders_0 --decode auto -b localhost:9092
    """
    form = None if no_payload else payload
    with opened_decoding(env, decoding) as decode, _segment_paths(env, files) as paths:
        messages = partial(dump_file, shallow=shallow, decoding=decode)
        damaged_count = show(
            env, paths, offset, messages, max_messages, form, message_format, shallow=shallow
        )
    if damaged_count:
        raise CliError(ExitStatus.CORRUPT, f"{counted(damaged_count, 'damaged message')} shown")


@app.command(shared.OUTPUT + shared.PAGER, exits=(*READS, ExitStatus.UNSUPPORTED))
def grep(
    env: Environment,
    pattern: str = argument("RE", "Regular expression, searched for in payloads and keys."),
    files: list[Path] = argument("FILE|DIR...", "As for `log dump`.", default=...),
    offset: str | None = shared.offset_option("Part of each file to search. Default: all."),
    max_messages: shared.MaxMessagesOption = None,
    ignore_case: bool = selection.flag("-i, --ignore-case", "Ignore the case of letters."),
    invert: bool = selection.flag("--invert", "Messages that do not match."),
    message_format: shared.MessageFormatOption = None,
) -> None:
    r"""Show the messages of segment files whose payload matches, of Kafka's also by their key.

    Messages that are damaged are passed over; `log verify` finds them.

    $ pylogctl log grep 'oom|segfault' data/syslog_0
    $ pylogctl log grep -i error data -o -64KiB -F '%t[%p] %o %s\n'
    """
    is_wanted = PayloadTest(pattern, ignore_case=ignore_case, invert=invert)
    messages = partial(dump_file, is_wanted=is_wanted)
    with _segment_paths(env, files) as paths:
        show(env, paths, offset, messages, max_messages, "utf8", message_format)


@app.command(shared.OUTPUT + shared.PAGER, exits=READS)
def index(env: Environment, files: Files) -> None:
    """List where each message, compressed set or batch of segment files starts.

    $ pylogctl log index data/orders_0
    $ pylogctl log index segment.kafka --output csv
    """
    with _segment_paths(env, files) as paths:
        show_index(env, paths)


@contextmanager
def _segment_paths(env: Environment, given: list[Path]) -> Iterator[list[Path]]:
    """Yield the segment files of paths; standard input is copied to a temporary file."""
    if Path("-") not in given:
        yield segment_files(env, given)
        return
    if env.streams.stdin is None:
        raise UsageError("standard input is closed")
    import tempfile  # late: only standard input needs it

    with tempfile.NamedTemporaryFile(prefix="pylogctl-", suffix=".segment") as copy:
        while chunk := env.streams.stdin.read(1 << 20):
            copy.write(chunk)
        copy.flush()
        paths = [Path(copy.name) if path == Path("-") else path for path in given]
        yield segment_files(env, paths)


def segment_files(env: Environment, given: Sequence[Path], *, archives: bool = True) -> list[Path]:
    """Return the segment files of paths; a directory that has none is reported.

    Other files beside segments, as in `data/*`, are left out, and so is the directory of the
    embedded ZooKeeper; one file alone may have any name.
    """
    others = [one for one in given if one.is_file() and not is_segment(one, archives=archives)]
    if others and len(others) < len(given):
        which = "is no segment" if len(others) == 1 else "are no segments"
        env.note(f"{counted(len(others), 'file')} left out, which {which}")
        given = [one for one in given if one not in others]
    elif beside := next((one for one in others if is_side_file(one)), None):
        raise UsageError(
            f"'{beside}' is no segment, but a file that Kafka has beside segments",
            f"try: pylogctl log verify {shlex.quote(str(beside.parent))}",
        )
    found = {path: expand_paths([path], archives=archives) for path in given}
    for path in (path for path, files in found.items() if not files):
        message = f"no segment files in '{path}'"
        if not any(found.values()):
            raise CliError(ExitStatus.NOT_FOUND, message, document.SEGMENT_NAMES)
        broker_id = read_broker_id(path.parent)
        if broker_id is not None and not parse_log_directory_name(path.name, broker_id):
            env.note(f"'{path}' left out, which is no directory of a log")
        else:
            env.leave_out(message)
    files = dict.fromkeys(file for files in found.values() for file in files)
    gone = [one for one in files if one not in given and not one.is_file()]
    for one in gone:
        env.leave_out(f"'{one}' was removed meanwhile")
        del files[one]
    return list(files)


@app.command(shared.OUTPUT + shared.PROGRESS, exits=READS)
def verify(
    env: Environment,
    files: Files,
    deep: shared.DeepOption = True,
    jobs: int | None = limits.option(
        "--jobs N", "Processes. Default: one for each processor, one for little data.", min=1
    ),
    max_errors: int = limits.option(
        "--max-errors N", "Stop in a file after N problems.", min=1, default=100
    ),
    engine: Literal["codec", "zlib", "crcmod"] = option(
        "--engine",
        "Implementation of CRC-32; zlib and crcmod are independent, crcmod is slow. For Kafka's "
        "batches both are crcmod.",
        default="codec",
    ),
) -> int:
    """Check every byte of segment files, and that the files of a log have no gap or overlap.

    Segments of a stopped Kafka broker are checked with the indexes, snapshots, aborted transactions
    and leader epochs beside them; gaps of a compacted log are no problem.
    One row for each problem. Exit status 8 means damage, 3 a missing file, 6 that some of the
    files could not be read.

    $ pylogctl log verify data/orders_0
    $ pylogctl log verify /var/lib/kafka/orders-0
    $ pylogctl log verify data --jobs 4 --output jsonl | jq -r .file | sort -u
    """
    started_s = env.clock.monotonic_s()
    with _segment_paths(env, files) as paths:
        total = total_bytes(paths)
        job_count = jobs or (os.cpu_count() or 1 if total >= PARALLEL_FROM_BYTES else 1)
        with progress(env, "verify", total) as meter:
            summary = verify_paths(
                paths,
                jobs=job_count,
                deep=deep,
                max_problems=max_errors,
                engine=engine,
                progress=meter.advance,
            )
    return document.report_verification(env, summary, env.clock.monotonic_s() - started_s)


@app.command(shared.OUTPUT + shared.PROGRESS, exits=READS)
def stat(env: Environment, files: Files) -> None:
    """Measure segment files: sizes, codecs and compression.

    $ pylogctl log stat data/orders_0
    $ pylogctl log stat data --columns file,sizes
    $ pylogctl log stat /var/lib/kafka/orders-0 --columns last_offset,last_time
    """

    def rows_of(path: Path) -> Iterator[inspect.SegmentStat]:
        try:
            yield inspect.segment_stat(path)
        except LogCorruptError as error:
            env.error(str(error))
            yield document.damaged_archive(path)

    rows = []
    with _segment_paths(env, files) as paths, progress(env, "stat", total_bytes(paths)) as meter:
        for row in of_each(env, paths, rows_of):
            rows.append(row)
            meter.advance(row.bytes or 0)
    render(env, document.STAT, rows)
    damaged = [one.file for one in rows if one.fault]
    if damaged:
        raise CliError(
            ExitStatus.CORRUPT,
            f"{counted(len(damaged), 'damaged file')}; figures end at the damage",
            f"try: pylogctl log verify {damaged[0]}",
        )


@app.command(
    shared.OUTPUT + shared.CHANGE,
    exits=(ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.DECLINED),
)
def recover(
    env: Environment,
    files: FilesOnDisk,
    execute: shared.ExecuteOption = False,
    no_backup: bool = safety.flag("--no-backup", "Do not keep the cut bytes in a side file."),
    confirm: str | None = shared.confirm_option("With --yes: the file's name, or `all`."),
) -> None:
    """Cut segment files after their last valid message.

    Shows the plan and changes nothing without --execute. The broker does the same by itself when
    it starts after a crash. Beside a segment of Kafka, damaged indexes are written anew, snapshots
    and leader epochs behind the new end are removed, and the clean-shutdown marker, so that Kafka
    recovers its logs at the next start.

    $ pylogctl log recover data/orders_0
    $ pylogctl log recover /var/lib/kafka
    $ pylogctl log recover data/orders_0 --execute --yes --confirm 00000000000000000000.pylog
    """
    if archived := [path for path in files if is_archive(path)]:
        raise UsageError(f"'{archived[0]}' is an archive, which is never cut; unpack it first")
    paths = segment_files(env, files, archives=False)
    plans = [plan for plan in map(plan_recovery, paths) if plan.is_needed]
    if not execute or env.settings.dry_run or not plans:
        render(env, document.RECOVER, plans)
        if any(plan.fault not in (None, "partial") for plan in plans):
            env.note("good messages behind the damage are cut, too; `log repair` keeps them")
        if plans:
            env.note("nothing changed; add --execute")
        return
    is_one = len(plans) == 1 and confirm != "all"
    confirm_name(env, "log recover", Path(plans[0].file).name if is_one else "all", confirm)
    done: list[RecoveryPlan] = []
    try:
        for plan in plans:
            done.append(recover_file(Path(plan.file), backup=not no_backup, clock=env.clock))
    finally:
        if done:  # also those before a failure
            render(env, document.RECOVER, done)


@app.command(
    shared.OUTPUT + shared.CHANGE,
    exits=(ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT),
)
def repair(
    env: Environment,
    file: Path = argument("FILE", "Segment file or archive of one."),
    to: Path = option("--to FILE", "The copy; it must not exist.", default=...),
) -> None:
    """Write a copy of a segment file without its damaged spans.

    Offsets are positions, so messages behind such a span have smaller ones in the copy: send it to
    a topic with `log replay`, or give it to Spark; do not put it into a broker's log. Batches of
    Kafka keep their offsets: the copy can have the segment's place and name, once its .index and
    .timeindex are removed, which Kafka makes anew.

    $ pylogctl log repair data/orders_0/00000000000000000000.pylog --to repaired.pylog
    """
    done = rewrite.plan_repair(file, to) if env.settings.dry_run else rewrite.repair(file, to)
    render(env, document.REPAIR, done.left_out)
    kept = f"{counted(done.message_count, 'message')}, {format_size(done.size_bytes)}"
    action = "would be kept; this was a dry run" if env.settings.dry_run else f"written to '{to}'"
    env.note(f"{kept} {action}")


@app.command(
    shared.OUTPUT,
    exits=(ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT),
    changes=True,
)
def split(
    env: Environment,
    file: Path = argument("FILE", "Segment file or archive of one."),
    at: int = option(
        "--at POS", "Position in the file at which a message starts.", default=..., min=1
    ),
    to: Path = option("--to DIR", "Where the two segments go.", default=...),
) -> None:
    """Write the messages of a segment file before a position, and those behind it, as two.

    $ pylogctl log split data/orders_0/00000000000000000000.pylog --at 4096 --to parts
    """
    render(
        env, document.SEGMENTS, [document.segment_row(path) for path in rewrite.split(file, at, to)]
    )


@app.command(shared.OUTPUT, exits=(*READS, ExitStatus.CONFLICT), changes=True)
def merge(
    env: Environment,
    files: FilesOnDisk,
    to: Path = option("--to DIR", "Where the segment goes.", default=...),
) -> None:
    """Write segment files of one log that follow one another, also archived ones, as one.

    $ pylogctl log merge archive/orders_0-0 --to whole
    """
    render(
        env, document.SEGMENTS, [document.segment_row(rewrite.merge(segment_files(env, files), to))]
    )


@app.command(
    shared.SUMMARY + shared.CONNECTION + shared.CONFIRM + shared.PROGRESS + shared.DRY_RUN,
    exits=READS,
)
def replay(
    env: Environment,
    files: Files,
    topic: str = option("-t, --topic TOPIC", "Topic to write to.", default=...),
    partition: str | None = selection.option(
        "-p, --partition P",
        "Write to this one: 0, or 2-0 (broker-partition). Default: one for the run.",
    ),
    offset: str | None = shared.offset_option("Part of each file to send. Default: all."),
    rate: shared.RateOption = None,
) -> int:
    """Send the messages of segment files and archives to a topic.

    In order, to one partition, byte for byte; compressed sets as they are stored. Status 0 means
    that consumers can read all of it. Ends at a damaged message with status 8.

    Of Kafka's records the values are sent, uncompressed. Left out are records without a value,
    control records and aborted transactions. Keys, headers and timestamps have no place in 0.7's
    format: standard error tells how many.

    $ pylogctl log replay archive/orders_0-0 -t orders-again
    $ pylogctl log replay /var/lib/kafka/orders-0 -t orders-again
    $ pylogctl log replay data/orders_0 -t orders-again -p 0 -o 4096
    """
    from pylogctl.log.replay import replay as replay_files

    with _segment_paths(env, files) as paths:
        return replay_files(env, paths, topic, partition, offset, rate)


@app.command(
    shared.OUTPUT + shared.PROGRESS + shared.CONNECTION,
    exits=(ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.UNSUPPORTED),
    changes=True,
)
def move(
    env: Environment,
    partition: str = argument("TOPIC[PARTITION]", "The partition; quote it for the shell."),
    to: str = option(
        "--to DIR", "A data directory of the broker, a path on its machine.", default=...
    ),
    on_broker: int | None = option(
        "--on-broker ID", "Whose log. Default: the partition's home, or its leader.", min=0
    ),
) -> None:
    """Move a log to another data directory of a broker that runs.

    The partition is read and written meanwhile; at the end its appends wait for a moment. A broker
    that is killed has one whole log afterwards, in one directory or the other.

    $ pylogctl log move 'orders[0-1]' --to /disk2/pylog
    $ pylogctl log move 'orders[0-1]' --to /disk2/pylog --on-broker 3 --output json
    """
    from pylogctl.log.move import move as move_log

    move_log(env, partition, to, on_broker)


@app.command(
    shared.OUTPUT + shared.PROGRESS + shared.CONNECTION, exits=(*READS, ExitStatus.UNSUPPORTED)
)
def compare(
    env: Environment,
    topics: list[str] | None = argument(
        "[TOPIC...]", "Topics. Default: all with replicas.", default=None
    ),
    partition: shared.PartitionsOption = None,
    path: list[Path] | None = option(
        "--path DIR|FILE",
        "Compare files instead (repeatable): data directories of brokers, directories of logs, or "
        "segments.",
    ),
) -> None:
    """Compare the replicas of partitions byte by byte, up to what is committed; not Kafka's files.

    Brokers compute digests of ranges of their logs, so nothing else crosses the network. Names the
    first byte that differs, its segment and the brokers. Exit status 8 means that copies differ, 6
    that some could not be read.

    $ pylogctl log compare orders
    $ pylogctl log compare --path /disk1/pylog --path /backup/broker-2 orders
    $ pylogctl log compare --path one/orders_0 --path other/orders_0
    """
    from pylogctl.log.compare import compare_paths, compare_replicas

    if path:
        if len(path) < 2:
            raise UsageError("--path is needed twice or more, for the copies to compare")
        compare_paths(env, path, topics or [], partition)
    else:
        compare_replicas(env, topics or [], partition)

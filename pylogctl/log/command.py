"""`pylogctl log`: dump, verify, measure and recover segment files, without a broker."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.cli.confirmation import confirm_name
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import (
    CONFIRM,
    DRY_RUN,
    OUTPUT,
    PAGER,
    PROGRESS,
    ExecuteOption,
    MaxMessagesOption,
    MessageFormatOption,
    accepts,
    confirm_option,
    offset_option,
)
from pylogctl.cli.progress import progress
from pylogctl.cli.render import paged, render
from pylogctl.cli.tree import Command, new_app
from pylogctl.format.message_format import PAYLOAD_TEXTS, PayloadOption
from pylogctl.log.document import (
    DUMP,
    RECOVER,
    STAT,
    plan_record,
    report_verification,
    stat_record,
    with_file_column,
)

if TYPE_CHECKING:
    from pylogctl.log.dump import Dumped

app = new_app("Dump, verify and recover segment files.")

PARALLEL_FROM_BYTES = 64 << 20
READS = (ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.CORRUPT)

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE|DIR...", help="Segment files, directories of them, or - for stdin."
    ),
]
FilesOnDisk = Annotated[
    list[Path], typer.Argument(metavar="FILE|DIR...", help="Segment files, directories of them.")
]
Shallow = Annotated[
    bool,
    typer.Option(
        "--shallow",
        help="Show compressed entries as one, not what is inside.",
        rich_help_panel="Selection",
    ),
]
NoPayload = Annotated[
    bool, typer.Option("--no-payload", help="Leave payloads out.", rich_help_panel="Output")
]
Deep = Annotated[
    bool,
    typer.Option("--deep/--shallow", help="Unfold compressed entries too (--deep, the default)."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        rich_help_panel="Limits",
        help="Processes. Default: one for each processor, one for little data.",
    ),
]
MaxErrors = Annotated[
    int,
    typer.Option(
        "--max-errors",
        metavar="N",
        min=1,
        help="Stop in a file after N problems.",
        rich_help_panel="Limits",
    ),
]
EngineChoice = Annotated[
    Literal["codec", "zlib", "crcmod"],
    typer.Option(
        "--engine",
        help="Implementation of CRC-32; zlib and crcmod are independent, crcmod is slow.",
    ),
]
NoBackup = Annotated[
    bool,
    typer.Option(
        "--no-backup",
        help="Do not keep the cut bytes in a side file.",
        rich_help_panel="Safety",
    ),
]


@app.command("dump", cls=Command)
@accepts(
    *OUTPUT,
    *PAGER,
    exits=(*READS, ExitStatus.UNSUPPORTED),
    examples=(
        "pylogctl log dump data/orders_0 -n 10",
        "pylogctl log dump segment.kafka --output jsonl",
        "pylogctl log dump data/orders_0 -o -5 -F '%o %s\\n'",
    ),
)
def dump(
    env: Environment,
    files: Files,
    offset: Annotated[str | None, offset_option("Part to show. Default: all.")] = None,
    max_messages: MaxMessagesOption = None,
    shallow: Shallow = False,
    no_payload: NoPayload = False,
    payload: PayloadOption = "utf8",
    message_format: MessageFormatOption = None,
) -> None:
    """Show the messages of segment files.

    Ends with exit status 8 when a message or the end of a file is damaged.
    """
    from pylogctl.log.dump import record_of

    show = None if no_payload else PAYLOAD_TEXTS[payload]
    invalid = _InvalidCount()
    with _segment_paths(env, files) as paths, paged(env) as out:
        found = islice(invalid.watch(_dumped_messages(env, paths, offset, shallow)), max_messages)
        if message_format is not None:
            _write_formatted(out, message_format, found)
        else:
            document = with_file_column(DUMP) if len(paths) > 1 else DUMP
            render(out, document, (record_of(path, dumped, show) for path, dumped in found))
        out.flush()
    if invalid.count:
        raise CliError(ExitStatus.CORRUPT, f"{invalid.count} damaged messages were shown")


def _dumped_messages(
    env: Environment, paths: list[Path], offset: str | None, shallow: bool
) -> Iterator[tuple[Path, Dumped]]:
    from pylogctl.cli.offsets import NO_RANGE, parse_offset_spec
    from pylogctl.log.dump import dump_file, partition_of

    texts = [] if offset is None else [offset]
    spec = parse_offset_spec(texts, now_ms=env.clock.time_ms())
    for path in paths:
        offsets = spec.range_for(partition_of(path)) if texts else NO_RANGE
        for dumped in dump_file(path, offsets, shallow=shallow):
            yield path, dumped


class _InvalidCount:
    """Counts the corrupt messages of an iterator."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self, found: Iterator[tuple[Path, Dumped]]) -> Iterator[tuple[Path, Dumped]]:
        for path, dumped in found:
            self.count += not dumped.is_valid
            yield path, dumped


def _write_formatted(env: Environment, text: str, found: Iterator[tuple[Path, Dumped]]) -> None:
    from pylogctl.format.message_format import Received, compile_format
    from pylogctl.log.dump import facts_of

    write_message = compile_format(text)
    for number, (path, dumped) in enumerate(found, start=1):
        facts = facts_of(path, dumped)
        env.write(write_message(Received(facts, number, env.clock.time_ms(), group="")))


@contextmanager
def _segment_paths(env: Environment, given: list[Path]) -> Iterator[list[Path]]:
    """Yield the segment files of paths; standard input is copied to a temporary file."""
    from broker.log.segment import expand_paths

    if Path("-") not in given:
        yield expand_paths(given)
        return
    if env.streams.stdin is None:
        raise UsageError("standard input is closed")
    with tempfile.NamedTemporaryFile(prefix="pylogctl-", suffix=".segment") as copy:
        while chunk := env.streams.stdin.read(1 << 20):
            copy.write(chunk)
        copy.flush()
        yield expand_paths([Path(copy.name) if path == Path("-") else path for path in given])


@app.command("verify", cls=Command)
@accepts(
    *OUTPUT,
    *PROGRESS,
    exits=READS,
    examples=(
        "pylogctl log verify data/orders_0",
        "pylogctl log verify data --jobs 4 --output jsonl | jq -r .file | sort -u",
    ),
)
def verify(
    env: Environment,
    files: Files,
    deep: Deep = True,
    jobs: Jobs = None,
    max_errors: MaxErrors = 100,
    engine: EngineChoice = "codec",
) -> None:
    """Check every byte of segment files, and that the files of a log have no gap or overlap.

    One row for each problem. Exit status 8 means damage, 3 a missing file, 6 that some of the
    files could not be read.
    """
    from broker.log.verify import verify_paths

    started_s = env.clock.monotonic_s()
    with _segment_paths(env, files) as paths:
        total = sum(path.stat().st_size for path in paths if path.is_file())
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
    raise typer.Exit(report_verification(env, summary, env.clock.monotonic_s() - started_s))


@app.command("stat", cls=Command)
@accepts(
    *OUTPUT,
    *PROGRESS,
    exits=READS,
    examples=("pylogctl log stat data/orders_0", "pylogctl log stat data --columns file,sizes"),
)
def stat(env: Environment, files: Files) -> None:
    """Measure segment files: sizes, codecs and compression."""
    from broker.log.inspect import segment_stat

    with _segment_paths(env, files) as paths:
        total = sum(path.stat().st_size for path in paths if path.is_file())
        stats = []
        with progress(env, "stat", total) as meter:
            for path in paths:
                stats.append(segment_stat(path))
                meter.advance(stats[-1].size_bytes)
    render(env, STAT, [stat_record(one) for one in stats])
    damaged = [str(one.path) for one in stats if one.fault]
    if damaged:
        raise CliError(
            ExitStatus.CORRUPT,
            f"{len(damaged)} files are damaged; their figures end there",
            hints=[f"try: pylogctl log verify {damaged[0]}"],
        )


@app.command("recover", cls=Command)
@accepts(
    *OUTPUT,
    *CONFIRM,
    *DRY_RUN,
    exits=(ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.DECLINED),
    examples=(
        "pylogctl log recover data/orders_0",
        "pylogctl log recover data/orders_0 --execute --yes --confirm 00000000000000000000.pylog",
    ),
)
def recover(
    env: Environment,
    files: FilesOnDisk,
    execute: ExecuteOption = False,
    no_backup: NoBackup = False,
    confirm: Annotated[
        str | None, confirm_option("With --yes: the file's name, or `all` for several files.")
    ] = None,
) -> None:
    """Cut segment files after their last valid message.

    Shows the plan and changes nothing without --execute. The broker does the same by itself when
    it starts after a crash.
    """
    from broker.log.inspect import plan_recovery
    from broker.log.inspect import recover as recover_file
    from broker.log.segment import expand_paths

    plans = [plan for plan in map(plan_recovery, expand_paths(files)) if plan.cut_bytes]
    if not execute or env.settings.dry_run or not plans:
        render(env, RECOVER, [plan_record(plan, done=False) for plan in plans])
        if plans:
            env.note("nothing changed; add --execute")
        return
    name = plans[0].path.name if len(plans) == 1 else "all"
    confirm_name(env, "log recover", name, confirm)
    done = [recover_file(plan.path, backup=not no_backup, clock=env.clock) for plan in plans]
    render(env, RECOVER, [plan_record(plan, done=True) for plan in done])

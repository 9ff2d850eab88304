"""`pylogctl archive`: list and restore the segments that policy archive keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from broker.log.offline import archives
from broker.log.offline.segments import total_bytes
from broker.units import counted
from pylogctl.cli import options as shared
from pylogctl.cli.columns import Document
from pylogctl.cli.declarations import argument, option
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render

app = shared.App()

LIST = Document("archive.list/1", archives.ArchivedSegment, empty="no archived segments")
RESTORE = Document("archive.restore/1", archives.RestoredSegment, empty="")

Files = Annotated[
    list[Path],
    argument("FILE|DIR...", "Archived segments (.gz), or directories of them.", default=...),
]


@app.command(shared.OUTPUT + shared.PAGER, exits=(ExitStatus.NOT_FOUND,), name="list")
def list_(env: Environment, files: Files) -> None:
    """List archived segments, with their offsets, sizes and times.

    $ pylogctl archive list /archive
    $ pylogctl archive list /archive/orders_0-0 --output csv
    """
    render(env, LIST, archives.list_archive(files))


@app.command(
    shared.OUTPUT + shared.PROGRESS + shared.DRY_RUN,
    exits=(ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.CORRUPT),
    changes=True,
)
def restore(
    env: Environment,
    files: Files,
    to: Path = option(
        "--to DIR",
        "Data directory of a stopped broker, or one beside those of brokers.",
        default=...,
    ),
) -> None:
    """Put archived segments into logs again, at the same offsets.

    Each is verified before. Newest first, so that a log never has a gap: if it is interrupted, the
    same command does the rest. A broker that starts with the directory applies its retention.

    $ pylogctl archive restore /archive/orders_0-0 --to data
    $ pylogctl archive restore /archive --to /tmp/old --dry-run
    """
    found = archives.list_archive(files)
    if not found:
        raise CliError(ExitStatus.NOT_FOUND, "no archived segments there")
    dry_run = env.settings.dry_run
    with progress(env, "restore", total_bytes(Path(one.file) for one in found)) as meter:
        done = archives.restore(found, to, is_dry_run=dry_run, progress=meter.advance)
    render(env, RESTORE, done)
    what = f"{counted(len(done), 'segment')} {'would be restored' if dry_run else 'restored'}"
    there = len(found) - len(done)
    env.note(f"{what}; {there} there already" if there else what)

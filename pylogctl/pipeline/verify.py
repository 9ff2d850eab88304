"""`pylogctl pipeline verify`: segment files checked by all of Spark's machines."""

from __future__ import annotations

from typing import Annotated

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.options import OUTPUT, PROGRESS, accepts
from pylogctl.cli.progress import progress
from pylogctl.cli.units import parse_size
from pylogctl.log.command import Deep, EngineChoice, FilesOnDisk, MaxErrors
from pylogctl.log.document import report_verification
from pylogctl.pipeline.spark import (
    DEFAULT_SPARK,
    SPARK,
    SparkChoice,
    check_spark,
    in_parts,
    open_spark,
)

PieceSize = Annotated[
    str,
    typer.Option(
        "--piece-size",
        metavar="SIZE",
        help="Large files are cut into such parts.",
        rich_help_panel="Limits",
    ),
]


@accepts(
    *OUTPUT,
    *PROGRESS,
    exits=(
        ExitStatus.FAILED,
        ExitStatus.NOT_FOUND,
        ExitStatus.PARTIAL,
        ExitStatus.CORRUPT,
        ExitStatus.CONFIG,
    ),
    examples=(
        "pylogctl pipeline verify /data/kafka --master spark://host:7077",
        "pylogctl pipeline verify archive/*/*.pylog --output jsonl",
    ),
)
def verify(
    env: Environment,
    files: FilesOnDisk,
    deep: Deep = True,
    max_errors: MaxErrors = 100,
    engine: EngineChoice = "codec",
    piece_size: PieceSize = "64MiB",
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Check every byte of segment files, on many machines at once.

    The rows and exit statuses are those of `log verify`. All machines must see the files under the
    same names.
    """
    check_spark(env)
    piece_bytes = parse_size(piece_size)
    if piece_bytes < 1:
        raise UsageError("--piece-size is at least 1")
    from broker.log.segment import expand_paths
    from broker.spark.verify import verify_on_spark

    paths = expand_paths(files)
    total = sum(path.stat().st_size for path in paths if path.is_file())
    with open_spark(env, spark) as session, progress(env, "verify", total) as meter:
        started_s = env.clock.monotonic_s()
        summary = verify_on_spark(
            session,
            paths,
            deep=deep,
            max_problems=max_errors,
            engine=engine,
            piece_bytes=piece_bytes,
            on_progress=in_parts(meter, total),
        )
        elapsed_s = env.clock.monotonic_s() - started_s
    raise typer.Exit(report_verification(env, summary, elapsed_s))

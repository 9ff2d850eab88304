"""Runs the tasks of loads and compactions: on processes of this machine, or on Spark.

Both write the same files. Processes need neither Java nor PySpark, and start at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker.errors import ConfigError
from broker.spark.local import LocalProcesses, core_count
from broker.spark.runtime.requirements import check_package
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.pipeline.options import MASTER_VARIABLE, EngineChoice, SparkChoice
from pylogctl.pipeline.spark import check_spark, open_spark

if TYPE_CHECKING:
    from broker.spark.jobs import TaskEngine

_PARALLEL_FROM_BYTES = 64 << 20  # fewer bytes take less time than the start of processes


def checked_engine(
    env: Environment, choice: EngineChoice, *, needs_spark: bool = False
) -> SparkChoice | None:
    """Return the Spark that tasks run on, None if they run on processes of this machine."""
    if not choice.local:
        try:
            check_spark(env)
        except ConfigError as error:
            raise CliError(
                ExitStatus.CONFIG,
                str(error),
                hints=[] if needs_spark else ["--local needs only PyArrow, no PySpark and no Java"],
            ) from error
        return choice
    if needs_spark:
        raise UsageError("--into-table is written by Spark; it cannot be used with --local")
    if choice.spark_conf or choice.master not in (None, env.environ.get(MASTER_VARIABLE)):
        raise UsageError(
            "--master and --spark-conf are for Spark; they cannot be used with --local"
        )
    check_package("pyarrow", "PyArrow")
    return None


@contextmanager
def open_engine(
    env: Environment, spark: SparkChoice | None, size_bytes: int
) -> Iterator[TaskEngine]:
    """Open the engine of the tasks, until the block ends; `size_bytes` are those all tasks read."""
    if spark is not None:
        with open_spark(env, spark) as session:
            yield session
        return
    with LocalProcesses(core_count() if size_bytes >= _PARALLEL_FROM_BYTES else 1) as processes:
        yield processes

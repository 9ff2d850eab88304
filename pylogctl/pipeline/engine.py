"""What runs the tasks of loads and compactions: processes of this machine, or Spark.

Both write the same files. Processes need neither Java nor PySpark, and start at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from broker.spark.local import LocalProcesses, core_count
from broker.spark.session import check_package
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.pipeline.options import DEFAULT_SPARK, MASTER_VARIABLE, SparkChoice
from pylogctl.pipeline.spark import check_spark, open_spark

if TYPE_CHECKING:
    from broker.spark.jobs import TaskEngine

_PARALLEL_FROM_BYTES = 64 << 20  # less is done before processes have started


def checked_engine(
    env: Environment, wanted: Literal["local", "spark"] | None, spark: SparkChoice
) -> SparkChoice | None:
    """Return the Spark that tasks run on, None if they run on processes of this machine.

    Args:
        env: its variables may name a Spark master.
        wanted: the engine named by the user; None chooses Spark if the user has options for it.
        spark: these options.

    Raises:
        UsageError: there are options of Spark, and the engine is `local`.
        ConfigError: a package or Java is missing.
    """
    named = spark
    if wanted == "local" and spark.master == env.environ.get(MASTER_VARIABLE):
        named = replace(spark, master=None)  # the variable is for all commands
    if wanted == "local" and named != DEFAULT_SPARK:
        raise UsageError("--engine local takes no options of Spark, such as --master")
    if wanted == "spark" or named != DEFAULT_SPARK:
        check_spark(env)
        return spark
    check_package("pyarrow", "PyArrow")
    return None


@contextmanager
def open_engine(
    env: Environment, spark: SparkChoice | None, size_bytes: int
) -> Iterator[TaskEngine]:
    """Open what runs the tasks, until the block ends.

    Args:
        env: prints a note if the start takes long.
        spark: the Spark to run them on; None for processes of this machine.
        size_bytes: bytes to read by all tasks.

    Raises:
        UsageError, ConfigError, BrokerError: as for `open_spark`.
    """
    if spark is not None:
        with open_spark(env, spark) as session:
            yield session
        return
    with LocalProcesses(core_count() if size_bytes >= _PARALLEL_FROM_BYTES else 1) as processes:
        yield processes

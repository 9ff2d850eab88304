"""Spark sessions for commands: settings from options, failures as one-line errors.

PySpark is imported when a session is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from broker.errors import ConfigError, SparkFailedError
from broker.spark.local import LocalProcesses, core_count
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.progress import LINE_EVERY_S, Progress, announced_wait, progress
from pylogctl.pipeline.options import SparkChoice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from broker.spark.jobs import TaskEngine
    from broker.spark.tables import TableTarget


@contextmanager
def open_spark(
    env: Environment,
    choice: SparkChoice,
    conf: Mapping[str, str] | None = None,
    target: TableTarget | None = None,
) -> Iterator[SparkSession]:
    """Open a Spark session; errors and `-v` name its log file, which is kept if Spark fails.

    Errors of Spark in the block are translated, see `jobs.cause_of`. `conf` has settings of the
    command, which the user's override. The session can write the table `target`, if there is one.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from broker.spark.jobs import cause_of
    from broker.spark.session import DEFAULT_MASTER, SessionSettings, default_log_path, open_session
    from broker.spark.tables import session_conf

    log_path = default_log_path()
    env.trace(1, f"Spark's log until the end: {log_path}")
    of_target = {} if target is None else session_conf(target.table_format)
    conf = {**(conf or {}), **of_target, **parse_conf(choice.spark_conf or ())}
    settings = SessionSettings(choice.master or DEFAULT_MASTER, conf=conf, log_path=log_path)
    with ExitStack() as stack:
        removal = stack.enter_context(ExitStack())  # once the session has ended
        removal.callback(log_path.unlink, missing_ok=True)
        try:
            with announced_wait(
                env,
                "Spark to start: its Java process loads the jars",
                after_s=LINE_EVERY_S,
                every_s=LINE_EVERY_S,
            ):
                spark = stack.enter_context(open_session(settings))
        except ConfigError:
            removal.pop_all()  # the error names the file
            raise
        try:
            if spark.sparkContext.uiWebUrl:
                env.note(f"Spark's UI until the end: {spark.sparkContext.uiWebUrl}")
            if target is not None:
                _check_target(spark, target)
            yield spark
        except SparkFailedError:
            removal.pop_all()
            raise
        except (PySparkException, Py4JError) as error:
            cause = cause_of(error)
            if isinstance(cause, SparkFailedError):
                removal.pop_all()
                cause = SparkFailedError(f"{cause}; Spark's log is {log_path}")
            raise cause from error


def _check_target(spark: SparkSession, target: TableTarget) -> None:
    from broker.spark.tables import check_table

    try:
        check_table(spark, target)
    except ConfigError as error:
        raise UsageError(str(error)) from error


@contextmanager
def query_progress(env: Environment, spark: SparkSession) -> Iterator[None]:
    """Display how many tasks of the block's jobs are done."""
    from broker.spark.jobs import TaskCounts, watched_query

    with progress(env, "query", None, unit="tasks") as meter:
        shown = 0

        def show(counts: TaskCounts) -> None:
            nonlocal shown
            if not counts.known:  # the query is being planned
                return
            meter.expect(counts.known)
            meter.advance(counts.done - shown)
            shown = counts.done

        with watched_query(spark, show):
            yield


def in_parts(meter: Progress, total: int) -> Callable[[float], None]:
    """Return a function that takes a fraction, 0 to 1, and advances a meter of `total` to it."""
    shown = 0

    def advance(part: float) -> None:
        nonlocal shown
        done = max(shown, int(total * part))
        meter.advance(done - shown)
        shown = done

    return advance


def parse_conf(texts: Sequence[str]) -> dict[str, str]:
    """Return the settings of `--spark-conf`."""
    conf = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--spark-conf '{text}' is not KEY=VALUE")
        conf[key.strip()] = value.strip()
    return conf


_PARALLEL_FROM_BYTES = 64 << 20  # fewer bytes take less time than the start of processes


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

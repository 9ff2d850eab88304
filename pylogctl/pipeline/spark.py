"""Spark sessions for commands: settings from options, failures as one-line errors.

PySpark is imported when a session is opened.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.progress import Progress, announced_wait
from pylogctl.pipeline.options import SparkChoice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_spark(env: Environment) -> None:
    """Validate that Spark can be started, before anything else is done.

    Raises:
        ConfigError: PySpark, PyArrow or Java is missing; the text explains how to install it.
    """
    from broker.spark.session import check_requirements

    java = check_requirements()
    env.trace(1, f"java {java.version} at {java.executable} ({java.source})")


@contextmanager
def open_spark(
    env: Environment, choice: SparkChoice, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Open a Spark session; errors name the log file, which is kept if Spark fails.

    Args:
        env: prints a note if the start takes long.
        choice: options of the user.
        conf: settings of the command; those of the user take precedence.

    Raises:
        UsageError: a setting is malformed.
        ConfigError: Spark does not start.
        BrokerError: the block failed (see `jobs.cause_of`).
    """
    from broker.errors import ConfigError, SparkFailedError
    from broker.spark.session import DEFAULT_MASTER, SessionSettings, open_session

    log_path = choice.log_file or Path(tempfile.gettempdir(), f"pylogctl-spark-{os.getpid()}.log")
    settings = SessionSettings(
        master=choice.master or DEFAULT_MASTER,
        driver_memory=choice.driver_memory or "1g",
        conf={**(conf or {}), **parse_conf(choice.spark_conf or ())},
        log_path=log_path,
    )
    with ExitStack() as stack:
        removal = stack.enter_context(ExitStack())  # once the session has ended
        if choice.log_file is None:
            removal.callback(log_path.unlink, missing_ok=True)
        try:
            with announced_wait(env, "Spark to start"):
                spark = stack.enter_context(open_session(settings))
        except ConfigError:
            removal.pop_all()  # the error names the file
            raise
        try:
            with _in_one_line(log_path):
                yield spark
        except SparkFailedError:
            removal.pop_all()
            raise


@contextmanager
def _in_one_line(log_path: Path) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from broker.errors import SparkFailedError
    from broker.spark.jobs import cause_of

    try:
        yield
    except (PySparkException, Py4JError) as error:
        cause = cause_of(error)
        if isinstance(cause, SparkFailedError):
            cause = SparkFailedError(f"{cause}; Spark's log is {log_path}")
        raise cause from error


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
    """Return the settings of `--spark-conf`.

    Raises:
        UsageError: one is not KEY=VALUE.
    """
    conf = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--spark-conf '{text}' is not KEY=VALUE")
        conf[key.strip()] = value.strip()
    return conf

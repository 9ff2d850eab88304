"""Spark for commands: a session made of the options, and its failures in one line.

Imports PySpark when a session is asked for, not before.

The options of commands that run on Spark: where, with which settings, and where it may talk.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.options import OptionGroup, shared_option
from pylogctl.cli.progress import Progress, announced_wait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """What the options say; None or empty for what is not given."""

    master: str | None = None
    driver_memory: str | None = None
    spark_conf: list[str] | None = None
    log_file: Path | None = None

    @property
    def is_local(self) -> bool:
        """Return whether all runs on this machine."""
        return self.master is None or self.master.startswith("local")

    def with_conf(self, *texts: str) -> SparkChoice:
        """Return the same with settings of a command's own, which those of the user go before."""
        return replace(self, spark_conf=[*texts, *(self.spark_conf or ())])


DEFAULT_SPARK = SparkChoice()
SPARK = OptionGroup(
    (
        shared_option(
            "master",
            str | None,
            None,
            "--master",
            metavar="URL",
            panel="Connection",
            envvar="PYLOGCTL_MASTER",
            help="Where Spark runs: local[CORES,ATTEMPTS], or a cluster's address. Default: all "
            "cores of this machine.",
        ),
        shared_option(
            "driver_memory",
            str | None,
            None,
            "--driver-memory",
            metavar="SIZE",
            panel="Limits",
            help="Heap of Spark's driver, such as 2g; on one machine that is all there is. "
            "Default: 1g.",
        ),
        shared_option(
            "spark_conf",
            list[str] | None,
            None,
            "--spark-conf",
            metavar="KEY=VALUE",
            panel="Connection",
            help="Any setting of Spark (repeatable).",
        ),
        shared_option(
            "log_file",
            Path | None,
            None,
            "--log-file",
            metavar="FILE",
            panel="Output",
            help="Where Spark's own words go. Default: a temporary file, kept if Spark fails.",
        ),
    ),
    SparkChoice,
)


def check_spark(env: Environment) -> None:
    """Check that Spark can be started, before anything else is done.

    Raises:
        ConfigError: PySpark, PyArrow or Java is missing; the text says how to install it.
    """
    from broker.spark.requirements import check_requirements

    java = check_requirements()
    env.trace(1, f"java {java.version} at {java.executable} ({java.source})")


@contextmanager
def open_spark(env: Environment, choice: SparkChoice) -> Iterator[SparkSession]:
    """Give a Spark session; what fails in it is told in one line, the rest is in a log file.

    Args:
        env: told when the start takes long.
        choice: what the options say.

    Raises:
        UsageError: a setting is malformed.
        ConfigError: Spark does not start.
        BrokerError: what failed in the block, as an error of ours where one is the cause.
    """
    from broker.errors import ConfigError
    from broker.spark.failures import SparkFailedError
    from broker.spark.session import DEFAULT_MASTER, SessionSettings, open_session

    conf = parse_conf(choice.spark_conf or ())
    log_path = choice.log_file or Path(tempfile.gettempdir(), f"pylogctl-spark-{os.getpid()}.log")
    settings = SessionSettings(
        master=choice.master or DEFAULT_MASTER,
        driver_memory=choice.driver_memory or "1g",
        conf=conf,
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
            with _told_in_one_line(log_path):
                yield spark
        except SparkFailedError:
            removal.pop_all()
            raise


@contextmanager
def _told_in_one_line(log_path: Path) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from broker.spark.failures import SparkFailedError, cause_of

    try:
        yield
    except (PySparkException, Py4JError) as error:
        cause = cause_of(error)
        if isinstance(cause, SparkFailedError):
            cause = SparkFailedError(f"{cause}; Spark's own words are in {log_path}")
        raise cause from error


def in_parts(meter: Progress, total: int) -> Callable[[float], None]:
    """Return what shows on a meter which part of a total is done.

    Args:
        meter: counts up to the total.
        total: how much there is to do.
    """
    told = 0

    def advance(part: float) -> None:
        nonlocal told
        done = max(told, int(total * part))
        meter.advance(done - told)
        told = done

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

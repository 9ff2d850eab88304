"""The options of commands that run on Spark: where, with which settings, and where it may talk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pylogctl.options import OptionGroup, shared_option


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

"""What a pipeline command reads, planned before Spark is started: topics, ranges, what is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from broker.errors import InvalidMessageError
from broker.spark.frames import frozen, plan_messages
from broker.spark.options import Crc
from broker.spark.plans import ReadPlan
from broker.spark.report import read_omissions
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.pipeline.input import bound_options, source_options
from pylogctl.pipeline.spark import SparkChoice


class Reading(NamedTuple):
    """Options of the data source, and what they meant when they were looked at."""

    options: dict[str, str]
    plan: ReadPlan

    @property
    def topics(self) -> list[str]:
        """Return the topics there are, by name."""
        return sorted({one.partition.topic for one in self.plan.ranges})

    @property
    def leaves_out(self) -> bool:
        """Return whether messages may be left out."""
        skips = self.options.get("crc") == Crc.SKIP.value
        return skips or self.options.get("failOnDataLoss") == "false"

    def of_batch(self, topic: str | None = None) -> dict[str, str]:
        """Return options that read exactly what was planned.

        Args:
            topic: of this topic only.
        """
        ranges = [one for one in self.plan.ranges if topic in (None, one.partition.topic)]
        return frozen(self.options, replace(self.plan, ranges=tuple(ranges)))

    def of_stream(self) -> dict[str, str]:
        """Return options of a stream that starts where the batch does."""
        return {"startingOffsets": "earliest", **self.options}


def plan_reading(
    env: Environment,
    topics: Sequence[str],
    paths: Sequence[Path] = (),
    *,
    start: str | None = None,
    until: str | None = None,
    allow_data_loss: bool = False,
    skips_corrupt: bool = False,
) -> Reading:
    """Return what is to be read; what is lost of it is told.

    Args:
        env: says where brokers or registry are.
        topics: must exist.
        paths: segment files instead of brokers.
        start: where to start, in the offset grammar; None for the start.
        until: where to end, likewise; None for the end.
        allow_data_loss: whether messages that are gone are no error.
        skips_corrupt: whether damaged ones are left out.

    Raises:
        UsageError: an option is malformed, or not possible here.
        BrokerError: a topic does not exist, messages are gone, or a broker does not answer.
    """
    named = source_options(env, topics, (), paths, allow_data_loss=allow_data_loss)
    if skips_corrupt:
        named["crc"] = Crc.SKIP.value
    options = bound_options(env, named, start, until)
    plan = plan_messages(options)
    for omission in plan.omissions:
        env.warn(omission.message)
    return Reading(options, plan)


@contextmanager
def reporting(
    env: Environment, readings: Sequence[Reading], spark: SparkChoice
) -> Iterator[list[Reading]]:
    """Give readings whose tasks report what they leave out, which is told at the end of the block.

    Args:
        env: told.
        readings: planned ones.
        spark: where tasks run; what those of a cluster report stays in their logs.

    Raises:
        CliError: a message is damaged, and is not to be left out.
    """
    with tempfile.TemporaryDirectory(prefix="pylogctl-omitted-") as directory:
        report = {"reportPath": directory} if spark.is_local else {}
        if not spark.is_local and any(one.leaves_out for one in readings):
            env.warn("what is left out is told in the logs of Spark's executors only")
        try:
            yield [one._replace(options=one.options | report) for one in readings]
        except InvalidMessageError as error:
            raise corrupt_error(error) from error
        finally:  # a stream ends by a signal
            for omission in read_omissions(Path(directory)):
                size_bytes = omission.end - omission.start
                what = f"{omission.cause.value}, {size_bytes} bytes from {omission.start}"
                env.warn(f"{omission.message} ({what})")


def corrupt_error(error: InvalidMessageError) -> CliError:
    """Return the error of a damaged message as users of `--corrupt` are to see it."""
    return CliError(
        ExitStatus.CORRUPT,
        str(error).partition("; crc=")[0],
        hints=["--corrupt skip leaves it out"],
        code="INVALID_MESSAGE",
    )

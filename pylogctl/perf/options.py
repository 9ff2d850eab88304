"""The options of `pylogctl perf`."""

from __future__ import annotations

from pathlib import Path

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import Choice, flag, inputs, limits, option, outputs

_DEFAULT_DURATION_S = 10.0


class MeasureChoice(Choice):
    """How long to measure, and where the figures go."""

    messages: int | None = limits.option(
        "--messages N", "Stop after so many. Without it and --duration: after 10s.", min=1
    )
    duration: float | None = limits.option("--duration DUR", "Stop after so long.")
    interval: float = outputs.option("--interval DUR", "Time from row to row.", default="1s")

    @property
    def duration_s(self) -> float | None:
        """The maximum duration; the default if neither limit is given, None for no limit."""
        if self.duration is not None:
            return self.duration
        return _DEFAULT_DURATION_S if self.messages is None else None


class ThroughputChoice(MeasureChoice):
    """A measurement of throughput."""

    threads: int = option("--threads N", "Threads that work at the same time.", min=1, default=1)
    compat07: bool = outputs.flag(
        "--compat07", "CSV with the columns and number formats of Kafka 0.7's tools."
    )


class ProduceChoice(ThroughputChoice):
    """The messages to send, and how fast."""

    size: str | None = inputs.option(
        "--size N[..M]", "Bytes of payload, or a range to choose from evenly. Default: 100."
    )
    payload_file: Path | None = inputs.option(
        "--payload-file FILE", "Send the lines of a file over and over, the first 64 MiB of it."
    )
    batch: int = inputs.option("--batch N", "Messages in a batch.", min=1, default=200)
    codec: shared.CodecOption = None
    rate: shared.RateOption = None
    warmup: int = limits.option(
        "--warmup N", "Messages to send before the clock starts.", min=0, default=0
    )


class MeasuredRead(ThroughputChoice):
    """The offsets to read, and how."""

    partition: shared.PartitionsOption = None
    offset: list[str] | None = shared.offset_option("Offsets to read, START[:END]. Default: start.")
    simple: bool = flag(
        "--simple",
        "Read one partition (default: 0), one fetch request at a time, as Kafka 0.7's simple "
        "consumer.",
    )


class PacedChoice(MeasureChoice):
    """The messages to send at even intervals."""

    rate: str = limits.option(
        "--rate R", "Send so much, even if the broker is slower: 10000/s, 5MiB/s.", default="1000/s"
    )
    size: str | None = inputs.option(
        "--size N[..M]",
        "Bytes of payload, at least 16, or a range to choose from evenly. Default: 100.",
    )
    codec: shared.CodecOption = None
    warmup: int | None = limits.option(
        "--warmup N", "Messages to send before any is counted. Default: those of one second.", min=0
    )

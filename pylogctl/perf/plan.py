"""The options of `pylogctl perf` as values, validated before any connection is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from broker.client.cluster import Connect
from broker.consumer.config import ConsumerConfig
from broker.producer.config import ProducerConfig
from broker.units import parse_rate, parse_size
from pylogctl.cli.client_settings import client_settings
from pylogctl.cli.connections import connector
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.properties import Use
from pylogctl.perf.e2e import E2ePlan
from pylogctl.perf.open_loop import STAMP
from pylogctl.perf.options import PacedChoice, RunChoice
from pylogctl.perf.produce import Batch, SizeRange, make_batches, read_batches

_DEFAULT_DURATION_S = 10.0
_DEFAULT_IDLE_TIMEOUT_S = 5.0
_DEFAULT_SIZE = "100"


def validate_output(env: Environment, choice: RunChoice, *, compat07: bool) -> None:
    """Validate before a long run how its result is to be written."""
    if compat07:
        if env.settings.output not in (None, "csv"):
            raise UsageError(f"--compat07 writes csv, not {env.settings.output}")
        if env.settings.columns or env.settings.sort:
            raise UsageError("--compat07 has columns of its own; --columns and --sort do not apply")
    if not choice.interval:
        raise UsageError("--interval must be above zero")


def parse_sizes(text: str | None) -> SizeRange:
    """Parse `--size`, such as `100` or `1KiB..2KiB`; None for the default."""
    smallest, dots, largest = (text or _DEFAULT_SIZE).partition("..")
    sizes = SizeRange(parse_size(smallest), parse_size(largest if dots else smallest))
    if sizes.largest < sizes.smallest:
        raise UsageError(f"not a size: '{text}' runs backwards", hints=["valid: 100, 100..200"])
    return sizes


def batches_of(size: str | None, payload_file: Path | None, batch_count: int) -> Sequence[Batch]:
    """Return the batches of `--size` or `--payload-file`; `batch_count` is at least 1."""
    if payload_file is None:
        return make_batches(parse_sizes(size), batch_count)
    if size is not None:
        raise UsageError("--size and --payload-file cannot go together")
    batches = read_batches(payload_file, batch_count)
    if not batches:
        raise UsageError(f"payload file '{payload_file}' is empty")
    return batches


def duration_s_of(choice: RunChoice) -> float | None:
    """Return the maximum duration; the default if neither limit is given, None for no limit."""
    if choice.duration is not None:
        return choice.duration
    return _DEFAULT_DURATION_S if choice.messages is None else None


def idle_timeout_s_of(config: ConsumerConfig, *, has_duration: bool) -> float | None:
    """Return how long to wait for a message; None for no limit."""
    if config.consumer_timeout_ms >= 0:
        return config.consumer_timeout_ms / 1000
    return None if has_duration else _DEFAULT_IDLE_TIMEOUT_S


def producer_config(env: Environment, use: Use, codec: str | None) -> ProducerConfig:
    """Return the producer's settings: `-X` properties, overridden by `--codec`."""
    return client_settings(env, use, ProducerConfig, {"compression.codec": codec})


def connect_with(env: Environment, config: ProducerConfig | ConsumerConfig) -> Connect:
    """Return a function that connects with the settings' timeouts, or `--timeout`, and buffers."""
    return connector(
        env,
        timeout_s=config.socket_timeout_ms / 1000,
        connect_timeout_s=config.connect_timeout_ms / 1000,
        send_bytes=config.socket_send_bytes if isinstance(config, ProducerConfig) else 0,
        receive_bytes=config.socket_receive_bytes if isinstance(config, ConsumerConfig) else 0,
    )


def e2e_plan(env: Environment, config: ProducerConfig, topic: str, choice: PacedChoice) -> E2ePlan:
    """Return the plan of an end-to-end measurement.

    A rate of bytes is of payloads of average size.
    """
    rate, sizes = parse_rate(choice.rate), parse_sizes(choice.size)
    duration_s = duration_s_of(choice)
    if sizes.smallest < STAMP.size:
        raise UsageError(
            f"--size must be at least {STAMP.size}: a payload starts with a time",
            hints=["valid: 100, 100..200"],
        )
    per_s = rate.per_second * (2 / sum(sizes) if rate.in_bytes else 1)
    limits = [choice.messages, None if duration_s is None else int(per_s * duration_s)]
    count = min(limit for limit in limits if limit is not None)
    if not count:
        raise UsageError(f"no message is due within {duration_s:g}s at {per_s:g} a second")
    return E2ePlan(
        topic=topic,
        rate=per_s,
        message_count=count,
        warmup_count=math.ceil(per_s) if choice.warmup is None else choice.warmup,
        sizes=sizes,
        idle_timeout_s=_DEFAULT_IDLE_TIMEOUT_S,
        timeout_s=env.timeout_s(config.socket_timeout_ms / 1000),
        connect_timeout_s=env.timeout_s(config.connect_timeout_ms / 1000),
    )

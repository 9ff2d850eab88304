"""The options of `pylogctl perf` as values, validated before any connection is made."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Sequence
from pathlib import Path

from broker.client.cluster import Connect
from broker.config import ConsumerConfig, ProducerConfig
from broker.properties import BaseConfig
from broker.units import Rate, parse_duration_s, parse_size
from pylogctl.cli.connections import connector
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.properties import PERF_CONSUME, Use, client_settings
from pylogctl.perf.e2e import E2ePlan
from pylogctl.perf.open_loop import STAMP
from pylogctl.perf.produce import Batch, SizeRange, make_batches, read_batches

_DEFAULT_DURATION_S = 10.0
_DEFAULT_IDLE_TIMEOUT_S = 5.0
_DEFAULT_SIZE = "100"


def validate_output(env: Environment, *, compat07: bool, save: Path | None) -> None:
    """Validate before a long run that its result can be written."""
    if compat07:
        if env.settings.output not in (None, "csv"):
            raise UsageError(f"--compat07 writes csv, not {env.settings.output}")
        if env.settings.columns or env.settings.sort:
            raise UsageError("--compat07 has columns of its own; --columns and --sort do not apply")
    if save is not None and not save.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(save.parent))


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


def duration_s_of(message_count: int | None, given_s: float | None) -> float | None:
    """Return the maximum duration; the default if neither limit is given, None for no limit."""
    if given_s is not None:
        return given_s
    return _DEFAULT_DURATION_S if message_count is None else None


def idle_timeout_s_of(given_s: float | None, *, has_duration: bool) -> float | None:
    """Return how long to wait for a message; None for no limit."""
    if given_s is not None:
        return given_s
    return None if has_duration else _DEFAULT_IDLE_TIMEOUT_S


def interval_s_of(text: str) -> float:
    """Parse `--interval`, the time from row to row."""
    seconds = parse_duration_s(text)
    if not seconds:
        raise UsageError(f"--interval must be above zero: '{text}'")
    return seconds


def producer_config(
    env: Environment, use: Use, *, codec: str | None, acks: str | None
) -> ProducerConfig:
    """Return the producer's settings: `-X` properties, overridden by options."""
    options = {"compression.codec": codec, "request.required.acks": acks}
    return client_settings(env, use, ProducerConfig, options)


def consumer_config(env: Environment, *, fetch_bytes: int | None) -> ConsumerConfig:
    """Return the consumer's settings: `-X` properties, overridden by options."""
    size = None if fetch_bytes is None else str(fetch_bytes)
    return client_settings(env, PERF_CONSUME, ConsumerConfig, {"fetch.size": size})


def property_texts(config: BaseConfig) -> dict[str, str]:
    """Return all properties of settings as text, by their names."""
    return {prop.name: config.value_text(prop) for prop in config.PROPERTIES}


def connect_with(env: Environment, config: ProducerConfig | ConsumerConfig) -> Connect:
    """Return a function that connects with the settings' timeouts, or `--timeout`, and buffers."""
    return connector(
        env,
        timeout_s=config.socket_timeout_ms / 1000,
        connect_timeout_s=config.connect_timeout_ms / 1000,
        send_bytes=config.socket_send_bytes if isinstance(config, ProducerConfig) else 0,
        receive_bytes=config.socket_receive_bytes if isinstance(config, ConsumerConfig) else 0,
    )


def e2e_plan(
    env: Environment,
    config: ProducerConfig,
    topic: str,
    *,
    rate: Rate,
    sizes: SizeRange,
    message_count: int | None,
    duration_s: float | None,
    warmup_count: int | None,
    idle_timeout_s: float | None,
) -> E2ePlan:
    """Return the plan of an end-to-end measurement.

    Args:
        rate: of messages, or of bytes: then of payloads of average size.
        message_count: messages to measure at most, None for no limit.
        duration_s: duration at most, None for no limit.
        warmup_count: messages to send before; None for those of one second.
        idle_timeout_s: how long to wait for missing messages; None for the default.
    """
    if sizes.smallest < STAMP.size:
        raise UsageError(
            f"--size must be at least {STAMP.size}: a payload starts with a time",
            hints=["valid: 100, 100..200"],
        )
    per_s = rate.per_second * (2 / sum(sizes) if rate.in_bytes else 1)
    limits = [message_count, None if duration_s is None else int(per_s * duration_s)]
    count = min(limit for limit in limits if limit is not None)
    if not count:
        raise UsageError(f"no message is due within {duration_s:g}s at {per_s:g} a second")
    return E2ePlan(
        topic=topic,
        rate=per_s,
        message_count=count,
        warmup_count=math.ceil(per_s) if warmup_count is None else warmup_count,
        sizes=sizes,
        idle_timeout_s=_DEFAULT_IDLE_TIMEOUT_S if idle_timeout_s is None else idle_timeout_s,
        timeout_s=env.timeout_s(config.socket_timeout_ms / 1000),
        connect_timeout_s=env.timeout_s(config.connect_timeout_ms / 1000),
    )

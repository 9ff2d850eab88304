"""The options of `pylogctl perf` turned into what is sent, read and written.

Opens no connection; a mistake in any option is found before one is made.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Sequence
from pathlib import Path

from broker.client.cluster import Connect
from broker.config import ConsumerConfig, ProducerConfig, Settings
from pylogctl.cli.connections import connector
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.properties import PERF_CONSUME, Use, client_settings
from pylogctl.cli.units import Rate, parse_duration_s, parse_size
from pylogctl.perf.e2e import E2ePlan
from pylogctl.perf.open_loop import STAMP
from pylogctl.perf.produce import Batch, SizeRange, make_batches, read_batches

DEFAULT_DURATION_S = 10.0
DEFAULT_IDLE_TIMEOUT_S = 5.0
_DEFAULT_SIZE = "100"


def check_output(env: Environment, *, compat07: bool, save: Path | None) -> None:
    """Check before a long run that its result can be written.

    Raises:
        UsageError: `--compat07` goes with another format or other columns.
        OSError: there is no directory for the file to save to.
    """
    if compat07:
        if env.settings.output not in (None, "csv"):
            raise UsageError(f"--compat07 writes csv, not {env.settings.output}")
        if env.settings.columns or env.settings.sort:
            raise UsageError("--compat07 has columns of its own; --columns and --sort do not apply")
    if save is not None and not save.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(save.parent))


def parse_sizes(text: str | None) -> SizeRange:
    """Return the sizes of payloads.

    Args:
        text: `100`, `1KiB..2KiB`; None for the default.

    Raises:
        UsageError: it is no size and no range of them.
    """
    smallest, dots, largest = (text or _DEFAULT_SIZE).partition("..")
    sizes = SizeRange(parse_size(smallest), parse_size(largest if dots else smallest))
    if sizes.largest < sizes.smallest:
        raise UsageError(f"not a size: '{text}' runs backwards", hints=["valid: 100, 100..200"])
    return sizes


def batches_of(size: str | None, payload_file: Path | None, batch_count: int) -> Sequence[Batch]:
    """Return the batches to send.

    Args:
        size: value of `--size`, if given.
        payload_file: value of `--payload-file`, if given.
        batch_count: messages in a batch, at least 1.

    Raises:
        UsageError: both are given, or the file is empty.
        OSError: the file cannot be read.
    """
    if payload_file is None:
        return make_batches(parse_sizes(size), batch_count)
    if size is not None:
        raise UsageError("--size and --payload-file cannot go together")
    batches = read_batches(payload_file, batch_count)
    if not batches:
        raise UsageError(f"payload file '{payload_file}' is empty")
    return batches


def duration_s_of(message_count: int | None, duration: str | None) -> float | None:
    """Return how long to go on, None for no limit: without any limit it is the default."""
    if duration is not None:
        return parse_duration_s(duration)
    return DEFAULT_DURATION_S if message_count is None else None


def idle_timeout_s_of(idle_timeout: str | None, *, has_duration: bool) -> float | None:
    """Return how long to wait for messages, None for no limit."""
    if idle_timeout is not None:
        return parse_duration_s(idle_timeout)
    return None if has_duration else DEFAULT_IDLE_TIMEOUT_S


def interval_s_of(text: str) -> float:
    """Return the time from row to row.

    Raises:
        UsageError: it is no duration, or zero.
    """
    seconds = parse_duration_s(text)
    if not seconds:
        raise UsageError(f"--interval must be above zero: '{text}'")
    return seconds


def producer_config(
    env: Environment, use: Use, *, codec: str | None, acks: str | None
) -> ProducerConfig:
    """Return the producer's settings: `-X` properties, and the options on top.

    Raises:
        UsageError: a property is unknown or malformed.
        typer.Exit: `-X dump` asked for the settings alone.
    """
    options = {"compression.codec": codec, "request.required.acks": acks}
    return client_settings(env, use, ProducerConfig, options)


def consumer_config(env: Environment, *, fetch_size: str | None) -> ConsumerConfig:
    """Return the consumer's settings: `-X` properties, and the options on top.

    Raises:
        UsageError: a property or the size is unknown or malformed.
        typer.Exit: `-X dump` asked for the settings alone.
    """
    size = None if fetch_size is None else str(parse_size(fetch_size))
    return client_settings(env, PERF_CONSUME, ConsumerConfig, {"fetch.size": size})


def property_texts(config: Settings) -> dict[str, str]:
    """Return all properties of settings as text, by their names."""
    return {prop.name: config.value_text(prop) for prop in config.PROPERTIES}


def connect_with(env: Environment, config: ProducerConfig | ConsumerConfig) -> Connect:
    """Return what makes connections with the limits and buffers of the settings.

    Args:
        env: `--timeout` goes before the timeouts of the settings.
        config: of producer or consumer.
    """
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
    """Return what to send how fast, for how long.

    Args:
        env: `--timeout` goes before the timeouts of the settings.
        config: the producer's settings.
        topic: where to.
        rate: of messages, or of bytes of payload: then that of payloads of average size.
        sizes: of the payloads.
        message_count: how many to measure at most, None for no limit.
        duration_s: how long to measure at most, None for no limit.
        warmup_count: how many to send before; None for those of a second.
        idle_timeout_s: how long to wait for messages that do not come; None for the default.

    Raises:
        UsageError: a payload has no room for what is measured with, or there is nothing to send.
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
        idle_timeout_s=DEFAULT_IDLE_TIMEOUT_S if idle_timeout_s is None else idle_timeout_s,
        timeout_s=env.timeout_s(config.socket_timeout_ms / 1000),
        connect_timeout_s=env.timeout_s(config.connect_timeout_ms / 1000),
    )

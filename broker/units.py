"""Durations, sizes, rates, times and ports: parsing, formatting, and pacing to a rate.

A malformed text is an ArgumentError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from broker.clock import Clock
from broker.errors import ArgumentError

_DURATION_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# expressions are compiled where they are used: commands import this at each start
_DURATION_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_NUMBER = r"\d+(?:\.\d+)?"
_SIZE = r"(\d+(?:\.\d+)?)\s?([A-Za-z]*)"
_SIZE_UNITS = {
    "": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip


class Rate(NamedTuple):
    """A limit per second: of messages, or of bytes."""

    per_second: float
    in_bytes: bool

    @property
    def burst(self) -> int:
        """Return how many messages, or bytes, to send at a time so that the flow stays even."""
        return max(1, int(self.per_second / _BURSTS_PER_SECOND))


class ListenAddress(NamedTuple):
    """An address that a server of this process listens on."""

    host: str
    port: int  # 0 for any free one


def parse_listen_address(text: str) -> ListenAddress:
    """Parse `PORT` of this machine alone, `HOST:PORT`, or `[IPv6]:PORT`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not re.fullmatch(r"\d{1,5}", port) or int(port) > 65535 or text.startswith(":"):
        raise ArgumentError(
            f"not a port or an address: '{text}'",
            hints=["valid: 9308 (for this machine alone), 0.0.0.0:9308, 0 for any free port"],
        )
    return ListenAddress(host, int(port))


def parse_duration_ms(text: str) -> int:
    """Parse `250ms`, `10s`, `5m`, `2h`, `7d`, several in a row (`1h30m`), or bare seconds."""
    if re.fullmatch(_NUMBER, text):
        return round(float(text) * 1000)
    parts = re.findall(_DURATION_PART, text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ArgumentError(
            f"not a duration: '{text}'",
            hints=["valid: 250ms, 10s, 1h30m (a bare number is seconds)"],
        )
    return round(sum(float(number) * _DURATION_UNITS_MS[unit] for number, unit in parts))


def parse_duration_s(text: str) -> float:
    """Return a duration in seconds; see `parse_duration_ms`."""
    return parse_duration_ms(text) / 1000


def parse_size(text: str) -> int:
    """Return the bytes of `512`, `64KiB` (1024), `2kB` (1000), and so on to `TiB` and `TB`."""
    match = re.fullmatch(_SIZE, text)
    factor = _SIZE_UNITS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise ArgumentError(
            f"not a size: '{text}'", hints=["valid: 512, 64KiB, 2GB (a bare number is bytes)"]
        )
    return round(float(match[1]) * factor)


def parse_rate(text: str) -> Rate:
    """Parse `1000/s`, `5MiB/s`, or a bare number of messages per second; zero is refused."""
    amount = text.removesuffix("/s")
    hints = ["valid: 1000/s, 5MiB/s, 250 (a bare number is messages per second)"]
    if re.fullmatch(_NUMBER, amount):
        rate = Rate(float(amount), in_bytes=False)
    elif amount != text and re.fullmatch(_SIZE, amount):
        rate = Rate(float(parse_size(amount)), in_bytes=True)
    else:
        raise ArgumentError(f"not a rate: '{text}'", hints=hints)
    if not rate.per_second:
        raise ArgumentError(f"a rate must be above zero: '{text}'", hints=hints)
    return rate


def format_size(size: float) -> str:
    """Return a size for people, such as `1.2 GiB`; whole bytes below 1 KiB."""
    if abs(size) < 1024:
        return f"{size:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if abs(size) < 1023.95 or unit == "TiB":
            break
    return f"{size:.1f} {unit}"


def format_duration(seconds: float) -> str:
    """Return a duration for people: `0.021s`, `12.3s`, `5m07s`, `2h05m`, `3d04h`."""
    if seconds < 10:
        return f"{seconds:.3f}s"
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minutes:02d}m"
    return f"{hours // 24}d{hours % 24:02d}h"


def count_text(count: int) -> str:
    """Return a number of messages, for example `1 message` or `3 messages`."""
    return f"{count} message{'s' * (count != 1)}"


def format_count(count: float) -> str:
    """Return a number for people with a decimal prefix, such as `47.1k`."""
    if abs(count) < 1000:
        return f"{count:.0f}"
    for unit in ("k", "M", "G"):
        count /= 1000
        if abs(count) < 999.95 or unit == "G":
            break
    return f"{count:.1f}{unit}"


def format_rate(per_second: float) -> str:
    """Return a number per second for people, such as `3.2 k/s`; one digit more below ten."""
    if abs(per_second) < 10:
        return f"{per_second:.1f}/s"
    text = format_count(per_second)
    return f"{text}/s" if text[-1].isdigit() else f"{text[:-1]} {text[-1]}/s"


def counted(number: int, noun: str) -> str:
    """Return a number with a noun in the singular or plural."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


END_MS = 253_402_300_800_000
"""The year 10000, which `format_time` cannot tell."""


def format_time(time_ms: int) -> str:
    """Return milliseconds since 1970 as RFC 3339 in UTC with milliseconds."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


_BURSTS_PER_SECOND = 20


class Pacer:
    """Delays a sender so that it keeps to a rate of messages, or of bytes of payload.

    `wait` takes a number of seconds; it may return early when the command stops.
    """

    def __init__(self, rate: Rate, clock: Clock, wait: Callable[[float], object]) -> None:
        self.rate = rate
        self._clock = clock
        self._wait = wait
        self._next_s = clock.monotonic_s()

    def wait_for(self, message_count: int, payload_bytes: int) -> None:
        """Wait until this amount may be sent."""
        now_s = self._clock.monotonic_s()
        if self._next_s > now_s:
            self._wait(self._next_s - now_s)
        amount = payload_bytes if self.rate.in_bytes else message_count
        self._next_s = max(self._next_s, now_s) + amount / self.rate.per_second

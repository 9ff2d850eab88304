"""Placeholders in messages, for synthetic data: `{i} {now} {uuid} {rand:16}`.

Anything else in braces stays as it is, so JSON needs no escapes.
"""

from __future__ import annotations

import random
import re
import string
import uuid

from broker.clock import Clock
from pylogctl.cli.units import format_time

_TOKEN = re.compile(rb"\{(?:(i|now|uuid)|rand:(\d{1,9}))\}")
_LETTERS = (string.ascii_letters + string.digits).encode()


def expand(text: bytes, number: int, clock: Clock) -> bytes:
    """Return a message with its placeholders replaced.

    Args:
        text: `{i}` stands for the number, `{now}` for the time in UTC, `{uuid}` for a random
            UUID, `{rand:N}` for N random letters and digits, N below 10^9.
        number: which message it is.
        clock: tells the time.
    """

    def value(match: re.Match[bytes]) -> bytes:
        name, length = match.groups()
        if name == b"i":
            return b"%d" % number
        if name == b"now":
            return format_time(clock.time_ms()).encode()
        if name == b"uuid":
            return str(uuid.uuid4()).encode()
        return bytes(random.choices(_LETTERS, k=int(length)))

    return _TOKEN.sub(value, text)

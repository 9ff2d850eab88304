"""What the known nodes of the registry say, for people.

Pure: path and value in, text out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from broker.errors import CoordinationError
from broker.zk.values import (
    FilterKind,
    FilterSubscription,
    decode_broker,
    decode_number,
    decode_owner,
    decode_subscription,
)
from pylogctl.format.escapes import escape


def _broker(path: str, value: bytes) -> str:
    info = decode_broker(int(path.rpartition("/")[2]), value)
    return f"{info.address} (creator {info.creator})"


def _partition_count(path: str, value: bytes) -> str:
    count = decode_number(value, path)
    return f"{count} partition{'' if count == 1 else 's'}"


def _offset(path: str, value: bytes) -> str:
    return f"offset {decode_number(value, path)}"


def _owner(path: str, value: bytes) -> str:
    return f"owned by {decode_owner(value)}"


def _subscription(path: str, value: bytes) -> str:
    subscription = decode_subscription(value)
    if isinstance(subscription, FilterSubscription):
        verb = "all but" if subscription.kind is FilterKind.BLACKLIST else "topics"
        return f"{verb} /{subscription.regex}/, {subscription.stream_count} streams"
    counts = subscription.stream_counts.items()
    return ", ".join(f"{topic}: {count} streams" for topic, count in counts)


_KNOWN: tuple[tuple[re.Pattern[str], Callable[[str, bytes], str]], ...] = (
    (re.compile(r"/brokers/ids/\d+"), _broker),
    (re.compile(r"/brokers/topics/[^/]+/\d+"), _partition_count),
    (re.compile(r"/consumers/[^/]+/offsets/[^/]+/\d+-\d+"), _offset),
    (re.compile(r"/consumers/[^/]+/owners/[^/]+/\d+-\d+"), _owner),
    (re.compile(r"/consumers/[^/]+/ids/[^/]+"), _subscription),
)


def describe_value(path: str, value: bytes, *, raw: bool = False) -> str:
    """Return a node's value as text: decoded where the node is known, else with escapes.

    Args:
        path: below the chroot.
        value: what the node holds.
        raw: never decode.
    """
    for pattern, decode in _KNOWN:
        if not raw and value and pattern.fullmatch(path):
            try:
                return decode(path, value)
            except (CoordinationError, ValueError):
                break
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return escape(value)
    return text if text.isprintable() else escape(value)

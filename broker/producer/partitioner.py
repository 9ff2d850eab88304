"""Which partition a message goes to.

A partitioner picks an index into the list of a topic's partitions, sorted by home and index as
0.7's producers sort them, not a partition id.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

Partitioner = Callable[[bytes | None, int], int]
"""Takes the key, if there is one, and the number of partitions; returns a place in 0..n-1."""


def java_string_hash(text: str) -> int:
    """Return what `String.hashCode` gives in Java: 31*h + unit over UTF-16 units, 32 bits signed.

    0.7's default partitioner places keys by it.
    """
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def hash_partitioner(key: bytes | None, count: int) -> int:
    """Place a key by its hash as 0.7 does, a message without a key at random.

    Args:
        key: bytes; as text they hash like 0.7's string keys, other bytes as Latin-1.
        count: how many partitions there are, at least 1.

    Returns:
        A place in 0..count-1. 0.7 takes the absolute value of the hash and fails on the one hash
        that has none (KAFKA-1469); we take that one as 0.
    """
    if key is None:
        return int(random.random() * count)  # half the time of `randrange`
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = key.decode("latin-1")
    value = java_string_hash(text)
    return 0 if value == -(1 << 31) else abs(value) % count


def random_partitioner(key: bytes | None, count: int) -> int:
    """Place every message at random; keys mean nothing."""
    return int(random.random() * count)


def round_robin_partitioner() -> Partitioner:
    """Return a partitioner that goes round all partitions in turn."""
    turn = itertools.count()

    def place(key: bytes | None, count: int) -> int:
        return next(turn) % count

    return place


def sticky_partitioner() -> Partitioner:
    """Return a partitioner that picks one place at random and stays there.

    One pipe into a topic keeps its order that way. Should there be fewer partitions later, the
    place moves to one there is.
    """
    chosen = random.random()

    def place(key: bytes | None, count: int) -> int:
        return int(chosen * count)

    return place


PARTITIONERS: dict[str, Callable[[], Partitioner]] = {
    "sticky": sticky_partitioner,
    "random": lambda: random_partitioner,
    "round-robin": round_robin_partitioner,
    "hash": lambda: hash_partitioner,
}
"""How to make each partitioner that can be named in an option."""

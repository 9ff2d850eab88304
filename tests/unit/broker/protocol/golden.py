"""The golden vectors of Kafka 0.7, by name.

They were written from the format by a script of their own and checked against a log of a real
0.7 broker, the constants in the tests of other clients, and the JDK's gzip and snappy classes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Vector(NamedTuple):
    """One vector; what does not apply to it is empty."""

    name: str
    data: bytes
    length: int
    next_offsets: list[int]
    inner: bytes
    payloads: list[bytes]


def _load() -> dict[str, Vector]:
    text = Path(__file__).with_name("kafka07_vectors.json").read_text(encoding="utf-8")
    return {
        item["name"]: Vector(
            item["name"],
            bytes.fromhex(item["hex"]),
            item["length"],
            item.get("next_offsets", []),
            bytes.fromhex(item.get("inner_hex", "")),
            [payload.encode() for payload in item.get("payloads", [])],
        )
        for item in json.loads(text)
    }


VECTORS = _load()

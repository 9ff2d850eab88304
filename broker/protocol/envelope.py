"""The envelope: when, where and as which message a producer made a payload, in front of it.

    | bytes | field    | meaning                                                              |
    | 4     | magic    | `f8 50 4c 45`: no UTF-8 text starts with the first byte              |
    | 1     | version  | 1; bytes with another one are a payload without an envelope          |
    | 1     | host     | length of the host's name in bytes                                   |
    | 8     | time     | microseconds since 1970, before the year 10000                       |
    | 4     | producer | a random number of the producer, another one after each restart      |
    | 8     | sequence | number of the message among those of this producer to the topic      |
    | ..    | host     | name of the producer's machine, in UTF-8                             |
    | 4     | crc      | CRC-32 of all bytes before it                                        |

Numbers are big-endian and without sign; the payload follows. Magic, version and CRC tell an
envelope from a payload that only resembles one: of random bytes one in 2**72 passes.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zlib import crc32  # of few bytes; the engines of the codec import this module

MAGIC = b"\xf8PLE"
VERSION = 1
MAX_HOST_BYTES = 255
_HEAD = struct.Struct(">4sBBQIQ")
_CRC_BYTES = 4
END_US = 253_402_300_800_000_000  # of the year 9999
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Envelope(NamedTuple):
    """What a producer says of a message, in front of the payload.

    Attributes:
        time_us: when it was made, in microseconds since 1970.
        host: name of the producer's machine.
        producer: a random number that the producer chose at its start.
        sequence: the number of the message among those of this producer to the topic, from 0.
    """

    time_us: int
    host: str
    producer: int
    sequence: int

    @property
    def time(self) -> datetime:
        """Return when the message was made."""
        return EPOCH + timedelta(microseconds=self.time_us)

    @property
    def headers(self) -> tuple[tuple[str, bytes], ...]:
        """Return host, producer (eight hexadecimal digits) and sequence as headers."""
        return (
            ("host", self.host.encode()),
            ("producer", b"%08x" % self.producer),
            ("sequence", b"%d" % self.sequence),
        )

    def wrap(self, payload: bytes) -> bytes:
        """Return the payload with this envelope in front; the host's name is cut if it is long."""
        host = _cut(self.host.encode())
        size = len(host)
        numbers = self.time_us, self.producer, self.sequence
        head = _HEAD.pack(MAGIC, VERSION, size, *numbers) + host
        return b"%b%b%b" % (head, crc32(head).to_bytes(_CRC_BYTES, "big"), payload)


def _cut(host: bytes) -> bytes:
    if len(host) > MAX_HOST_BYTES:  # between two characters
        host = host[:MAX_HOST_BYTES].decode("utf-8", "ignore").encode()
    return host


def open_envelope(stored: bytes) -> tuple[Envelope | None, bytes]:
    """Return the envelope of a message and its payload; None and all of it if it has none."""
    if not stored.startswith(MAGIC) or len(stored) < _HEAD.size + _CRC_BYTES:
        return None, stored
    _, version, size, time_us, producer, sequence = _HEAD.unpack_from(stored)
    end = _HEAD.size + size
    crc = int.from_bytes(stored[end : end + _CRC_BYTES], "big")
    if version != VERSION or time_us >= END_US or crc32(stored[:end]) != crc:
        return None, stored
    try:
        host = stored[_HEAD.size : end].decode()
    except UnicodeDecodeError:
        return None, stored
    return Envelope(time_us, host, producer, sequence), stored[end + _CRC_BYTES :]

"""Receipts: a line for each acknowledged message, by which a later run skips confirmed messages.

`{"seq":7,"topic":"t","partition":"0-0","offset":330,"size":5,"crc":"3610a686"}`: `seq` is the
number of the message in the input, from 1; size and CRC are of its payload, without an envelope.
"""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import BinaryIO

from broker.protocol.checksum import crc32
from broker.protocol.envelope import open_envelope
from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.produce.sender import Confirmed

_LINE = '{"seq":%d,"topic":"%s","partition":"%s","offset":%d,"size":%d,"crc":"%08x"}\n'


def write_receipt(stream: BinaryIO, confirmed: Confirmed) -> None:
    """Write and flush the lines of a batch; refuse one of a broker that returns no offsets."""
    batch = confirmed.batch
    if confirmed.base_offset < 0:
        raise CliError(
            ExitStatus.UNSUPPORTED,
            f"broker {batch.partition.home} does not tell offsets, so there is no receipt",
        )
    topic, name = batch.partition.topic, batch.partition.name
    lines = [
        _LINE % (number, topic, name, offset, *_size_and_crc(payload))
        for number, (offset, payload) in zip(batch.numbers, confirmed.messages(), strict=True)
    ]
    stream.write("".join(lines).encode())
    stream.flush()


def _size_and_crc(stored: bytes) -> tuple[int, int]:
    _, payload = open_envelope(stored)  # another run has other envelopes
    return len(payload), crc32(payload)


class EarlierReceipt:
    """The messages that an earlier run had confirmed."""

    def __init__(self) -> None:
        self._is_known = bytearray()
        self._crcs = array("I")
        self.hit_count = 0  # messages of this run that were found confirmed
        self.valid_bytes = 0  # size of the complete lines in the file

    @classmethod
    def load(cls, path: Path, topic: str) -> EarlierReceipt:
        """Read a receipt of a run for `topic`; an incomplete last line is ignored."""
        receipt = cls()
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.endswith(b"\n"):
                    receipt._add_line(line, f"'{path}' line {number}", topic)
        return receipt

    def _add_line(self, line: bytes, where: str, topic: str) -> None:
        try:
            fields = json.loads(line)
            number, found_topic, crc = fields["seq"], fields["topic"], int(fields["crc"], 16)
            is_valid = isinstance(number, int) and number > 0
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{where} is no line of a receipt") from error
        if not is_valid:
            raise UsageError(f"{where} is no line of a receipt")
        if found_topic != topic:
            raise UsageError(f"{where} is a receipt for topic '{found_topic}', not '{topic}'")
        missing = number - len(self._is_known)
        if missing > 0:
            self._is_known.extend(bytes(missing))
            self._crcs.extend(array("I", bytes(missing * self._crcs.itemsize)))
        self._is_known[number - 1] = 1
        self._crcs[number - 1] = crc
        self.valid_bytes += len(line)

    def is_confirmed(self, number: int, payload: bytes) -> bool:
        """Return whether the message with a number, from 1, was confirmed; refuse a changed one."""
        if number > len(self._is_known) or not self._is_known[number - 1]:
            return False
        if self._crcs[number - 1] != _size_and_crc(payload)[1]:
            raise CliError(
                ExitStatus.CORRUPT,
                f"message {number} is not the one the receipt confirms",
                "--resume needs the same input and options as the run it goes on with",
                code="INPUT_CHANGED",
            )
        self.hit_count += 1
        return True

"""Receipts: a line for each acknowledged message, and what such lines say to a later run.

`{"seq":7,"topic":"t","partition":"0-0","offset":330,"size":5,"crc":"3610a686"}`: `seq` is the
number of the message in the input, from 1.
"""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import BinaryIO

from broker.protocol.checksum import crc32
from broker.protocol.message_set import iter_messages
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.produce.sender import Confirmed

_LINE = '{"seq":%d,"topic":"%s","partition":"%s","offset":%d,"size":%d,"crc":"%08x"}\n'


class ReceiptWriter:
    """Writes a line for each message of each acknowledged batch.

    Args:
        stream: where to; owned by the caller.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, confirmed: Confirmed) -> None:
        """Write the lines of a batch, and let them reach the file.

        Raises:
            CliError: the broker tells no offsets.
        """
        batch = confirmed.batch
        if confirmed.base_offset < 0:
            raise CliError(
                ExitStatus.UNSUPPORTED,
                f"broker {batch.partition.home} does not tell offsets, so there is no receipt",
            )
        topic, name = batch.partition.topic, batch.partition.name
        messages = iter_messages(confirmed.message_set, confirmed.base_offset)
        lines = [
            _LINE % (number, topic, name, one.offset, len(one.payload), one.crc)
            for number, one in zip(batch.numbers, messages, strict=True)
        ]
        self._stream.write("".join(lines).encode())
        self._stream.flush()


class Receipt:
    """What an earlier run has had confirmed."""

    def __init__(self) -> None:
        self._is_known = bytearray()
        self._crcs = array("I")
        self.hit_count = 0
        """Messages of this run that were found confirmed."""
        self.valid_bytes = 0
        """How much of the file is whole lines."""

    @classmethod
    def load(cls, path: Path, topic: str) -> Receipt:
        """Read a receipt; a last line that was cut off does not count.

        Args:
            path: the file.
            topic: the topic of this run.

        Raises:
            OSError: it cannot be read.
            UsageError: it is no receipt, or one of another topic.
        """
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
        """Say whether a message was confirmed.

        Args:
            number: its number in the input, from 1.
            payload: its bytes.

        Raises:
            CliError: the message with that number was another one.
        """
        if number > len(self._is_known) or not self._is_known[number - 1]:
            return False
        if self._crcs[number - 1] != crc32(payload):
            raise CliError(
                ExitStatus.CORRUPT,
                f"message {number} is not the one the receipt confirms",
                hints=["--resume needs the same input and options as the run it goes on with"],
                code="INPUT_CHANGED",
            )
        self.hit_count += 1
        return True

"""A producer that costs next to nothing: requests made beforehand, sent by a program in C.

What is left is the broker's work, and the network's.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from broker.protocol import codec
from broker.protocol.extension_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
    encode_extension_parts,
)
from broker.protocol.requests import RequestHeader
from broker.topic import TopicPartition

_HEADER = RequestHeader(PublishRequest.VERSION, 1, "bench")
_TIMEOUT_MS = 30_000
_TIMEOUT_S = 300
_SOURCE = Path(__file__).with_name("replay.c")


def publish_frames(
    partition: TopicPartition, payloads: Sequence[bytes], batch: int, acks: Acks = Acks.WRITTEN
) -> list[bytes]:
    """Return requests that publish all payloads once, all with one correlation id."""
    sets = [codec.encode(payloads[at : at + batch]) for at in range(0, len(payloads), batch)]
    return [
        b"".join(
            encode_extension_parts(
                PublishRequest(acks, _TIMEOUT_MS, (PartitionSet(partition, one),)), _HEADER
            )
        )
        for one in sets
    ]


class Replay:
    """The program in C, built where the files of a run are.

    Args:
        directory: for the program, and what it sends.

    Raises:
        FileNotFoundError: there is no C compiler.
    """

    def __init__(self, directory: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            raise FileNotFoundError("no C compiler: cc is not on the path")
        self._program = directory / "replay"
        self._frames = directory / "frames"
        subprocess.run([compiler, "-O2", "-Wall", "-o", self._program, _SOURCE], check=True)

    def prepare(self, frames: Iterable[bytes]) -> None:
        """Set what is sent from now on."""
        self._frames.write_bytes(b"".join(frames))

    def run(self, port: int, count: int, window: int = 0) -> None:
        """Send requests over and over, so many in all, and wait until the broker has read them.

        That none was refused is for the caller to find out, by the end of the log.

        Args:
            port: of a broker on this machine.
            count: how many to send.
            window: how many may be unanswered, at least 2; 0 if they get no answers.
        """
        command: list[str | Path] = [self._program, str(port), self._frames]
        command += [str(count), str(window)]
        subprocess.run(command, check=True, timeout=_TIMEOUT_S)

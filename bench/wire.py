"""A producer with almost no cost of its own: a C program sends requests encoded beforehand.

The figures are those of the broker and the network.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from broker.protocol import codec
from broker.protocol.client_connection import encode_extension_parts
from broker.protocol.client_requests import Acks, PartitionSet, PublishRequest
from broker.protocol.requests import RequestHeader
from broker.topic import TopicPartition

_HEADER = RequestHeader(PublishRequest.VERSION, 1, "bench")
_TIMEOUT_MS = 30_000
_TIMEOUT_S = 300
_SOURCE = Path(__file__).with_name("replay.c")


def publish_frames(
    partition: TopicPartition, payloads: Sequence[bytes], batch: int, acks: Acks = Acks.WRITTEN
) -> list[bytes]:
    """Return requests that publish all payloads once, all with the same correlation id."""
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
    """The C program, built in the directory of a run.

    Args:
        directory: for the program and its requests.

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
        """Set the requests to send."""
        self._frames.write_bytes(b"".join(frames))

    def run(self, port: int, count: int, window: int = 0) -> None:
        """Send the requests repeatedly, `count` in all, and wait until the broker has read them.

        The caller validates by the end of the log that none was rejected.

        Args:
            port: of a broker on this machine.
            count: number of requests to send.
            window: maximum number in flight, at least 2; 0 if requests have no response.
        """
        command: list[str | Path] = [self._program, str(port), self._frames]
        command += [str(count), str(window)]
        subprocess.run(command, check=True, timeout=_TIMEOUT_S)

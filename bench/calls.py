"""Python calls on the broker's hot paths: `python -m bench.calls [--paths]`.

Counts the Python functions entered between the system call that reads a request from its socket
and the one that writes the message set to its log, or sends the messages read. Unlike a time, the
count is the same on every machine and under any load.
"""

from __future__ import annotations

import argparse
import socket
import tempfile
import threading
from pathlib import Path
from types import FrameType

from broker.config import BrokerConfig
from broker.protocol.client_connection import encode_extension_parts
from broker.protocol.client_requests import (
    Acks,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.requests import FetchRequest, ProduceRequest, RequestHeader, encode_request
from broker.server.broker import Broker
from broker.topic import TopicPartition

_PARTITION = TopicPartition("events", -1, 0)
_SET = encode([b"a small message"])
_WARM_UP = 3


class CallCounter:
    """Collects the functions entered in a thread between two C functions, by the second's name.

    Args:
        start: the C function that a path starts with.
        ends: those that one ends with.
    """

    def __init__(self, start: str, ends: frozenset[str]) -> None:
        self.paths: dict[str, list[str]] = {}
        """The last path that ended in each of `ends`."""
        self._start = start
        self._ends = ends
        self._path = threading.local()

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        """Take one event; for `threading.setprofile`."""
        path: list[str] | None = getattr(self._path, "names", None)
        if event == "call" and path is not None:
            code = frame.f_code
            path.append(f"{Path(code.co_filename).name}:{code.co_qualname}")
        elif event == "c_call":
            name = getattr(argument, "__name__", "")
            if name == self._start:
                self._path.names = []
            elif name in self._ends and path is not None:
                self.paths[name] = path
                self._path.names = None


def _extension_frame(request: ExtensionRequest) -> bytes:
    header = RequestHeader(request.VERSION, 1, "calls")
    return b"".join(encode_extension_parts(request, header))


def broker_paths() -> dict[str, list[str]]:
    """Return the functions entered for each kind of request, from the socket to the file."""
    counter = CallCounter("recv_into", frozenset({"pwrite", "sendfile"}))
    publish = PublishRequest(Acks.WRITTEN, 1000, (PartitionSet(_PARTITION, _SET),))
    read = ReadRequest(0, 1, 1 << 20, (PartitionPosition(_PARTITION, 0, 1 << 20),))
    cases = {
        "publish of one small set": (_extension_frame(publish), "pwrite"),
        "produce of one small set": (encode_request(ProduceRequest("events", 0, _SET)), "pwrite"),
        "read of one partition": (_extension_frame(read), "sendfile"),
        "fetch of one partition": (encode_request(FetchRequest("events", 0, 0, 99)), "sendfile"),
    }
    paths = {}
    with tempfile.TemporaryDirectory() as directory:
        config = BrokerConfig(data_dirs=(Path(directory) / "data",), port=0, num_threads=1)
        broker = Broker(config)
        threading.setprofile(counter.profile)
        broker.start()
        threading.setprofile(None)
        try:
            with socket.create_connection(("127.0.0.1", broker.port)) as client:
                client.sendall(_extension_frame(CreateTopicRequest("events")))
                client.recv(1 << 20)
            for name, (frame, end) in cases.items():
                paths[name] = _last_path(
                    counter, broker.port, frame, end, is_answered=not name.startswith("produce")
                )
        finally:
            broker.stop()
    return paths


def _last_path(
    counter: CallCounter, port: int, frame: bytes, end: str, *, is_answered: bool
) -> list[str]:
    """Send a request some times and return the path of the last one, when caches are filled."""
    flush = PublishRequest(Acks.COMMITTED, 1000, (PartitionSet(_PARTITION, b""),))
    with socket.create_connection(("127.0.0.1", port)) as client:
        for _ in range(_WARM_UP):
            client.sendall(frame)
            if is_answered:
                client.recv(1 << 20)
            client.sendall(_extension_frame(flush))
            client.recv(1 << 20)
    return counter.paths[end]


def main() -> None:
    """Print how many calls each path takes, and with `--paths` which."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", action="store_true", help="print every call")
    is_verbose = parser.parse_args().paths
    for name, path in broker_paths().items():
        print(f"{len(path):4} calls: {name}")
        if is_verbose:
            print("".join(f"       {one}\n" for one in path), end="")


if __name__ == "__main__":
    main()

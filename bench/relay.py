"""A program that only passes messages on: no broker can have a lower latency.

Sender, relay and reader are separate processes that share the cores, as with `pylogctl perf e2e`.
With a file, the relay writes messages to it and syncs it before it passes them on.

    python -m bench.relay relay [FILE]
    python -m bench.relay read PORT
    python -m bench.relay send PORT RATE SECONDS
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

_MESSAGE_BYTES = 200
_STAMP = struct.Struct(">q")
_RECEIVE_BYTES = 1 << 20
_WARM_UP_SHARE = 1 / 6
_TIMEOUT_S = 120.0


def relayed_ms(rate: int, seconds: float, path: Path | None) -> list[float]:
    """Return the latencies in milliseconds of messages that a relay passed on, sorted.

    Args:
        rate: messages a second.
        seconds: duration of sending.
        path: file to write messages to and sync before they are passed on, if any.
    """
    relay = _start("relay", *([str(path)] if path else []))
    assert relay.stdout is not None
    port = relay.stdout.readline().strip()
    reader, sender = _start("read", port), _start("send", port, str(rate), str(seconds))
    try:
        output, _ = reader.communicate(timeout=_TIMEOUT_S)
        found: list[float] = json.loads(output)
        return found
    finally:
        for one in (sender, reader, relay):
            one.kill()
            one.communicate()


def _start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.relay", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _relay(path: str | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        peers = dict(_greeted(listener) for _ in range(2))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if path else None
    while content := peers[b"s"].recv(_RECEIVE_BYTES):
        if fd is not None:
            os.write(fd, content)
            os.fdatasync(fd)
        peers[b"r"].sendall(content)


def _greeted(listener: socket.socket) -> tuple[bytes, socket.socket]:
    peer, _ = listener.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer.recv(1), peer


def _connect(port: str, role: bytes) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", int(port)))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sendall(role)
    return peer


def _read(port: str) -> None:
    latencies_ms: list[float] = []
    rest = b""
    with _connect(port, b"r") as relay:
        while content := relay.recv(_RECEIVE_BYTES):
            now_ns = time.monotonic_ns()
            content = rest + content
            end = len(content) - len(content) % _MESSAGE_BYTES
            for at in range(0, end, _MESSAGE_BYTES):
                latencies_ms.append((now_ns - _STAMP.unpack_from(content, at)[0]) / 1e6)
            rest = content[end:]
    print(json.dumps(sorted(latencies_ms[int(len(latencies_ms) * _WARM_UP_SHARE) :])))


def _send(port: str, rate: int, seconds: float) -> None:
    interval_ns, filler = 10**9 // rate, bytes(_MESSAGE_BYTES - _STAMP.size)
    count, sent = int(rate * seconds), 0
    with _connect(port, b"s") as relay:
        first_ns = time.monotonic_ns()
        while sent < count:
            now_ns = time.monotonic_ns()
            due = min(count, (now_ns - first_ns) // interval_ns + 1)
            if due == sent:
                time.sleep(max(0.0, (first_ns + sent * interval_ns - now_ns) / 1e9))
                continue
            stamps = (_STAMP.pack(first_ns + one * interval_ns) for one in range(sent, due))
            relay.sendall(b"".join(stamp + filler for stamp in stamps))
            sent = due


def main(role: str, *arguments: str) -> None:
    """Run one of the three programs."""
    match role, arguments:
        case "relay", ():
            _relay(None)
        case "relay", (path,):
            _relay(path)
        case "read", (port,):
            _read(port)
        case "send", (port, rate, seconds):
            _send(port, int(rate), float(seconds))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Values for shell completion that live in a cluster: `pylogctl __complete KIND PREFIX`.

Runs at every press of TAB, so it imports next to nothing, answers from a cache, gives up after a
quarter of a second, and never fails or says anything: no answer is an answer.
"""

from __future__ import annotations

import os
import socket
import struct
import time
import zlib
from collections.abc import Callable
from typing import NamedTuple

FRESH_S = 30.0
STALE_S = 3600.0
DEADLINE_S = 0.25

_DEFAULT_ZOOKEEPER = "localhost:2181"
_CONNECT = struct.Struct(">iqiqi16s?")
_TIMEOUT_MS = 4000
_GET_DATA, _GET_CHILDREN = 4, 8


class Value(NamedTuple):
    """One value to offer."""

    text: str
    description: str = ""


def complete(args: list[str]) -> None:
    """Print the values of a kind that start with a prefix, one a line with its description.

    Args:
        args: kind, prefix, and the `--zookeeper` option of the line being typed if it has one.
    """
    if len(args) < 2:
        return
    kind, prefix = args[0], args[1]
    address = _zookeeper_of(args[2:])
    parent = prefix.rpartition("/")[0] or "/" if kind == "zk-path" else ""
    try:
        values = _cached(f"{kind} {address} {parent}", lambda: _look_up(kind, address, parent))
    except (OSError, ValueError, struct.error):
        return
    lines = [f"{v.text}\t{v.description}" for v in values if v.text.startswith(prefix)]
    if lines:
        os.write(1, ("\n".join(lines) + "\n").encode("utf-8", "replace"))


def _zookeeper_of(words: list[str]) -> str:
    address = os.environ.get("PYLOGCTL_ZOOKEEPER") or _DEFAULT_ZOOKEEPER
    for position, word in enumerate(words):
        if word in ("-Z", "--zookeeper") and position + 1 < len(words):
            address = words[position + 1]
    return address


def _cached(key: str, look_up: Callable[[], list[Value]]) -> list[Value]:
    """Return fresh values from the cache, else look them up, else stale ones.

    Raises:
        OSError: nothing is cached and the look-up failed.
    """
    path = _cache_file(key)
    try:
        age_s = time.time() - os.stat(path).st_mtime  # noqa: PTH116 - pathlib costs 5 ms
    except OSError:
        age_s = STALE_S
    if age_s < FRESH_S:
        return _read_cache(path)
    try:
        values = look_up()
    except (OSError, ValueError, struct.error):
        if age_s >= STALE_S:
            raise
        return _read_cache(path)
    _write_cache(path, values)
    return values


def _cache_file(key: str) -> str:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        base = f"{os.environ.get('HOME', '')}/.cache"
    return f"{base}/pylogctl/complete-{zlib.crc32(key.encode()):08x}"


def _read_cache(path: str) -> list[Value]:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
        return [Value(*line.rstrip("\n").split("\t")) for line in file]


def _write_cache(path: str, values: list[Value]) -> None:
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(path.rpartition("/")[0], exist_ok=True)  # noqa: PTH103 - as above
        with open(temporary, "w", encoding="utf-8") as file:  # noqa: PTH123 - as above
            file.writelines(f"{value.text}\t{value.description}\n" for value in values)
        os.replace(temporary, path)  # noqa: PTH105 - as above
    except OSError:
        return


def _look_up(kind: str, address: str, parent: str) -> list[Value]:
    with _Registry(address) as registry:
        if kind == "topic":
            return [Value(name) for name in registry.children("/brokers/topics")]
        if kind == "group":
            return [Value(name) for name in registry.children("/consumers")]
        if kind == "broker":
            ids = registry.children("/brokers/ids")
            return [Value(name, registry.value(f"/brokers/ids/{name}")) for name in ids]
        if kind == "zk-path":
            return [Value(f"{parent.rstrip('/')}/{name}") for name in registry.children(parent)]
    return []


class _Registry:
    """The two read requests of ZooKeeper that completion needs, over one socket.

    kazoo does this and much more, but takes longer to import than the deadline leaves.
    """

    def __init__(self, address: str) -> None:
        servers, slash, chroot = address.partition("/")
        host, _, port = servers.split(",")[0].rpartition(":")
        self._chroot = (slash + chroot).rstrip("/")
        self._deadline_s = time.monotonic() + DEADLINE_S
        self._xid = 0
        self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout=DEADLINE_S)

    def __enter__(self) -> _Registry:
        try:
            self._send(_CONNECT.pack(0, 0, _TIMEOUT_MS, 0, 16, b"", False))
            self._receive()
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def children(self, path: str) -> list[str]:
        """Return the names of a node's children."""
        body = self._request(_GET_CHILDREN, path)
        (count,) = struct.unpack_from(">i", body)
        names = []
        position = 4
        for _ in range(count):
            name, position = _read_buffer(body, position)
            names.append(name)
        return sorted(names)

    def value(self, path: str) -> str:
        """Return a node's value as text."""
        return _read_buffer(self._request(_GET_DATA, path), 0)[0]

    def _request(self, kind: int, path: str) -> bytes:
        self._xid += 1
        full = (self._chroot + path if path != "/" else self._chroot or "/").encode()
        self._send(struct.pack(">iii", self._xid, kind, len(full)) + full + b"\0")
        answer = self._receive()
        _, _, error = struct.unpack_from(">iqi", answer)
        if error:
            raise ValueError(f"ZooKeeper error {error}")
        return answer[16:]

    def _send(self, body: bytes) -> None:
        self._socket.settimeout(self._remaining_s())
        self._socket.sendall(struct.pack(">i", len(body)) + body)

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            self._socket.settimeout(self._remaining_s())
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise OSError("connection closed")
            data += chunk
        return data

    def _remaining_s(self) -> float:
        remaining_s = self._deadline_s - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        return remaining_s


def _read_buffer(body: bytes, position: int) -> tuple[str, int]:
    """Return a length-prefixed text and the position behind it; a length of -1 is empty."""
    (length,) = struct.unpack_from(">i", body, position)
    position += 4
    end = position + max(length, 0)
    return body[position:end].decode("utf-8", "replace"), end

"""Reads nodes of ZooKeeper over one socket, for shell completion.

kazoo takes 100 ms to import, more than completion may take in all; this uses two of ZooKeeper's
requests and neither watches nor retries. Imports nothing of `broker` for the same reason. Source:
ZooKeeper 3.4 `zookeeper.jute`: ConnectRequest, GetDataRequest, GetChildrenRequest.
"""

from __future__ import annotations

import socket
import struct
import time

_CONNECT = struct.Struct(">iqiqi16s?")
_SESSION_TIMEOUT_MS = 4000
_GET_DATA, _GET_CHILDREN = 4, 8
_REPLY_HEADER = struct.Struct(">iqi")


class NodeReader:
    """A session with the first server of a connect string; every request shares one deadline.

    Its methods raise OSError for a connection that fails or the deadline, ValueError or
    struct.error for an error or a malformed response of the server.
    """

    def __init__(self, connect: str, *, deadline_s: float) -> None:
        servers, slash, chroot = connect.partition("/")
        host, _, port = servers.split(",")[0].rpartition(":")
        self._chroot = (slash + chroot).rstrip("/")
        self._deadline_s = time.monotonic() + deadline_s
        self._xid = 0
        self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout=deadline_s)

    def __enter__(self) -> NodeReader:
        try:
            self._send(_CONNECT.pack(0, 0, _SESSION_TIMEOUT_MS, 0, 16, b"", False))
            self._receive()
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted."""
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
        response = self._receive()
        _, _, error = _REPLY_HEADER.unpack_from(response)
        if error:
            raise ValueError(f"ZooKeeper error {error}")
        return response[_REPLY_HEADER.size :]

    def _send(self, body: bytes) -> None:
        self._socket.settimeout(self._remaining_s())
        self._socket.sendall(struct.pack(">i", len(body)) + body)

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            self._socket.settimeout(self._remaining_s())
            part = self._socket.recv(size - len(received))
            if not part:
                raise OSError("connection closed")
            received += part
        return received

    def _remaining_s(self) -> float:
        remaining_s = self._deadline_s - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        return remaining_s


def _read_buffer(body: bytes, position: int) -> tuple[str, int]:
    """Return a length-prefixed text and the position after it; a length of -1 is empty."""
    (length,) = struct.unpack_from(">i", body, position)
    position += 4
    end = position + max(length, 0)
    return body[position:end].decode("utf-8", "replace"), end

"""A network between brokers that can be cut and delayed, connection by connection.

Each broker advertises the port of a door of this network instead of its own. A door knows who
connects by the process that has the socket: a child of this one that runs a `BrokerProcess` is a
broker, everything else is a client. ZooKeeper gets a door for each broker as well.
"""

from __future__ import annotations

import re
import select
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

CLIENT = -1
"""The id of everything that is no broker."""
ZOOKEEPER = -2
_CHUNK_BYTES = 1 << 16


class _Link(NamedTuple):
    """The way from one side to another; ids of brokers, `CLIENT` or `ZOOKEEPER`."""

    source: int
    target: int


class Network:
    """Doors to brokers and to ZooKeeper, and what lies between."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cut: set[_Link] = set()
        self._delays_s: dict[_Link, float] = {}
        self._doors: dict[_Link, _Door] = {}

    def door_to_broker(self, broker_id: int) -> int:
        """Return the port that leads to a broker, whose own port is told by `open_door`."""
        return self._door(_Link(CLIENT, broker_id)).port

    def open_door(self, broker_id: int, port: int) -> None:
        """Have the door to a broker lead to its port."""
        self._door(_Link(CLIENT, broker_id)).target_port = port

    def door_to_zookeeper(self, broker_id: int, port: int) -> int:
        """Return the port by which a broker reaches ZooKeeper."""
        door = self._door(_Link(broker_id, ZOOKEEPER))
        door.target_port = port
        return door.port

    def _door(self, link: _Link) -> _Door:
        with self._lock:
            if link not in self._doors:
                self._doors[link] = _Door(self, link)
            return self._doors[link]

    def cut(self, one: int, other: int) -> None:
        """Let nothing pass between two sides, in either direction; connections stay open."""
        with self._lock:
            self._cut |= {_Link(one, other), _Link(other, one)}

    def cut_one_way(self, source: int, target: int) -> None:
        """Let nothing pass from one side to another."""
        with self._lock:
            self._cut.add(_Link(source, target))

    def delay(self, source: int, target: int, seconds: float) -> None:
        """Hold all that passes from one side to another for so long."""
        with self._lock:
            self._delays_s[_Link(source, target)] = seconds

    def heal(self) -> None:
        """Let everything pass at once again; connections that were cut are closed."""
        with self._lock:
            cut, self._cut = self._cut, set()
            self._delays_s.clear()
            doors = list(self._doors.values())
        for door in doors:
            door.hang_up(cut)

    def is_cut(self, source: int, target: int) -> bool:
        """Return whether nothing passes from one side to another."""
        with self._lock:
            return _Link(source, target) in self._cut

    def delay_s(self, source: int, target: int) -> float:
        """Return how long what passes is held."""
        with self._lock:
            return self._delays_s.get(_Link(source, target), 0.0)

    def connection_count(self, source: int, target: int) -> int:
        """Return how many connections a side has to a broker."""
        return self._door(_Link(CLIENT, target)).connection_count(source)

    def close(self) -> None:
        """Close all doors."""
        with self._lock:
            doors = list(self._doors.values())
        for door in doors:
            door.close()


class _Door:
    """A port that leads to another one; `link.source` is `CLIENT` where each connection says it."""

    def __init__(self, network: Network, link: _Link) -> None:
        self._network = network
        self._link = link
        self.target_port = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._pairs: dict[tuple[socket.socket, socket.socket], int] = {}
        threading.Thread(target=self._accept, name=f"door-{link}", daemon=True).start()

    def close(self) -> None:
        """Take no more connections, and end all."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._end(lambda _source: True)

    def connection_count(self, source: int) -> int:
        """Return how many connections of a side pass."""
        with self._lock:
            return sum(one == source for one in self._pairs.values())

    def hang_up(self, links: set[_Link]) -> None:
        """End the connections of links that were cut: bytes of theirs may be missing."""
        target = self._link.target
        self._end(lambda source: not links.isdisjoint({(source, target), (target, source)}))

    def _end(self, is_meant: object) -> None:
        assert callable(is_meant)
        with self._lock:
            ended = [pair for pair, source in self._pairs.items() if is_meant(source)]
        for pair in ended:
            for one in pair:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        source = self._link.source
        try:
            if source == CLIENT and self._link.target != ZOOKEEPER:
                source = _source_of(client)
            server = socket.create_connection(("127.0.0.1", self.target_port), 60)
        except OSError:
            client.close()
            return
        for one in (client, server):
            one.settimeout(None)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (client, server)
        with self._lock:
            self._pairs[pair] = source
        target = self._link.target
        back = threading.Thread(
            target=self._pass_on, args=(server, client, target, source), daemon=True
        )
        back.start()
        self._pass_on(client, server, source, target)
        back.join()
        with self._lock:
            del self._pairs[pair]
        client.close()
        server.close()

    def _pass_on(
        self, source: socket.socket, target: socket.socket, source_id: int, target_id: int
    ) -> None:
        """Pass bytes on until one side ends; what comes while the link is cut is lost with it."""
        try:
            while data := source.recv(_CHUNK_BYTES):
                if delay_s := self._network.delay_s(source_id, target_id):
                    time.sleep(delay_s)
                while self._network.is_cut(source_id, target_id):
                    if select.select([], [], [source], 0.02)[2]:
                        return
                    if _has_ended(source) or _has_ended(target):
                        return
                target.sendall(data)
        except OSError:
            pass
        finally:
            for one in (source, target):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


def _has_ended(one: socket.socket) -> bool:
    """Return whether the other side, or `hang_up`, has ended a connection."""
    try:
        one.setblocking(True)
        return one.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _source_of(client: socket.socket) -> int:
    """Return who connects, which TLS would not tell."""
    name = f"0100007F:{client.getpeername()[1]:04X}"
    give_up_s = time.monotonic() + 1
    while time.monotonic() < give_up_s:
        lines = map(str.split, Path("/proc/net/tcp").read_text().splitlines())
        inode = next((fields[9] for fields in lines if fields[1] == name), "")
        for pid in ("self", *_children()):
            with suppress(OSError):  # it has ended
                if _has_socket(pid, inode):
                    words = Path(f"/proc/{pid}/cmdline").read_text()
                    found = re.search(r"/broker-(\d+)/broker\.properties", words)
                    return int(found[1]) if found else CLIENT
        time.sleep(0.01)  # these tables can lack a socket or a child while others come and go
    return CLIENT


def _children() -> list[str]:
    """Return the ids of the processes that threads of this one have started."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # the thread has ended
            found += (task / "children").read_text().split()
    return found


def _has_socket(pid: str, inode: str) -> bool:
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it has been closed
            if str(one.readlink()) == f"socket:[{inode}]":
                return True
    return False

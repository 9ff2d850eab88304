"""Ports at which a server can come back.

A port that the system picked is free for anybody once its server is down: for a test that runs
meanwhile, and for the clients of the server itself, whose attempts to connect can be given it as
their own port.
"""

from __future__ import annotations

import itertools
import os
import random
import socket

# Below the ports that Linux picks by itself; each process of tests has some of its own.
_FIRST, _COUNT, _PROCESS_COUNT = 12_000, 20_000, 8
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_SHARE = _COUNT // _PROCESS_COUNT
_START = random.Random(os.getpid()).randrange(_SHARE)
_ports = itertools.cycle(
    _FIRST + _WORKER % _PROCESS_COUNT * _SHARE + (_START + number) % _SHARE
    for number in range(_SHARE)
)


def port_of_its_own() -> int:
    """Return a free port of 127.0.0.1 that nobody else takes while its server is down."""
    for port in _ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("the ports go round")

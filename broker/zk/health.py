"""What a ZooKeeper server says of itself: by four-letter words, or by its admin server."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from typing import NamedTuple

from broker.errors import BrokerUnreachableError
from broker.security.client_security import TlsFiles

ADMIN_PORT = 8080
_WORDS = ("ruok", "srvr", "mntr")
_REFUSED = "is not executed because it is not in the whitelist"


class ServerHealth(NamedTuple):
    """How a server is; `answered_by` names what responded, `facts` are ZooKeeper's of `mntr`.

    `problem` says why it does not serve, None if it does.
    """

    answered_by: tuple[str, ...]
    facts: Mapping[str, str]
    problem: str | None


def server_health(
    host: str,
    port: int,
    *,
    admin_port: int = ADMIN_PORT,
    timeout_s: float = 5.0,
    tls: TlsFiles | None = None,
) -> ServerHealth:
    """Ask a server by each four-letter word, and its admin server where it allows no `mntr`."""
    answered: list[str] = []
    facts: dict[str, str] = {}
    problem: str | None = "it allows no four-letter word, and has no admin server there"
    for word in _WORDS:
        try:
            text = four_letter_word(host, port, word, timeout_s, tls=tls)
        except OSError as error:
            return ServerHealth((), {}, (error.strerror or str(error)).lower())
        except BrokerUnreachableError as error:  # of TLS
            return ServerHealth((), {}, str(error))
        if not text or _REFUSED in text:
            continue
        if word == "ruok" and text.strip() != "imok":
            return ServerHealth((), {}, "what listens there is no ZooKeeper")
        answered.append(word)
        problem = text.strip() if "not currently serving" in text else None
        facts |= _facts_of(text)
    if "mntr" not in answered and (found := _ask_admin(host, admin_port, timeout_s)) is not None:
        answered.append(f"admin server at port {admin_port}")
        facts |= {name: str(value) for name, value in found.items()}
        problem = None if found.get("error") is None else str(found["error"])
    return ServerHealth(tuple(answered), facts, problem)


def four_letter_word(
    host: str, port: int, word: str, timeout_s: float, *, tls: TlsFiles | None = None
) -> str:
    """Return a server's response to a four-letter word; OSError if there is none."""
    with socket.create_connection((host, port), timeout=timeout_s) as plain, ExitStack() as opened:
        connection = plain
        if tls is not None:
            from broker.zk.tls import secured_connection  # late: it loads kazoo

            connection = opened.enter_context(secured_connection(tls, host, plain, port))
        connection.sendall(word.encode())
        with connection.makefile("rb") as response:
            return response.read().decode(errors="replace")


def _facts_of(text: str) -> dict[str, str]:
    """Return the facts of `mntr` (`zk_name<TAB>value`) and of `srvr` (`Name: value`)."""
    facts = {}
    for line in text.splitlines():
        name, tab, value = line.partition("\t")
        if not tab:
            name, _, value = line.partition(": ")
            if name not in _NAMES_IN_SRVR:
                continue
            name = _NAMES_IN_SRVR[name]
        facts[name.removeprefix("zk_")] = value.strip()
    return facts


_NAMES_IN_SRVR = {
    "Zookeeper version": "version",
    "Mode": "server_state",
    "Connections": "num_alive_connections",
    "Outstanding": "outstanding_requests",
    "Node count": "znode_count",
}


def _ask_admin(host: str, port: int, timeout_s: float) -> Mapping[str, object] | None:
    """Return the response to `mntr` of a server's admin server, None if there is none."""
    import http.client  # late: it takes longer to load than all else here

    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", "/commands/monitor")
        found = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):  # others may listen there
        return None
    finally:
        connection.close()
    return found if isinstance(found, dict) else None

"""Names of topics, groups, brokers and nodes for completion: `pylogctl __complete KIND PREFIX`.

Runs at every press of TAB, so it imports next to nothing, prefers a cache, gives up after a quarter
of a second, and neither fails nor writes to standard error: then it offers no values.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pylogctl.cli.context import Contexts

FRESH_S = 30.0
STALE_S = 3600.0
DEADLINE_S = 0.25

_DEFAULT_ZOOKEEPER = "localhost:2181"


class Value(NamedTuple):
    """One value to offer."""

    text: str
    description: str = ""


def complete(args: list[str]) -> None:
    """Print the values of a kind that start with a prefix, one a line with its description.

    `args` are kind, prefix, and the words of a `--zookeeper` option in the line being typed.
    """
    if len(args) < 2:
        return
    kind, prefix = args[0], args[1]
    if kind == "context":
        found = _contexts()
        _print([Value(name) for name in found.by_name] if found else [], prefix)
        return
    address = _zookeeper_of(args[2:])
    parent = prefix.rpartition("/")[0] or "/" if kind == "zk-path" else ""
    try:
        values = _cached(f"{kind} {address} {parent}", lambda: _read_nodes(kind, address, parent))
    except (OSError, ValueError, struct.error):
        return
    _print(values, prefix)


def _print(values: list[Value], prefix: str) -> None:
    lines = [f"{v.text}\t{v.description}" for v in values if v.text.startswith(prefix)]
    if lines:
        os.write(1, ("\n".join(lines) + "\n").encode("utf-8", "replace"))


def _zookeeper_of(words: list[str]) -> str:
    address = os.environ.get("PYLOGCTL_ZOOKEEPER")
    for word, value in pairwise(words):
        if word in ("-Z", "--zookeeper"):
            address = value
    return address or _zookeeper_of_context(words) or _DEFAULT_ZOOKEEPER


def _zookeeper_of_context(words: list[str]) -> str | None:
    contexts = _contexts()
    if contexts is None:
        return None
    from pylogctl.cli.context import current_name

    name = current_name(os.environ, contexts)
    for word, value in pairwise(words):
        if word in ("-c", "--context"):
            name = value
    found = contexts.by_name.get(name or "")
    return None if found is None else found.zookeeper


def _contexts() -> Contexts | None:
    """Return the contexts of the configuration files; None if there are no files, or bad ones."""
    from pylogctl.cli.context import config_files, read_contexts
    from pylogctl.cli.errors import CliError

    try:
        return read_contexts(os.environ) if config_files(os.environ) else None
    except CliError:
        return None


def _cached(key: str, read: Callable[[], list[Value]]) -> list[Value]:
    """Return fresh values from the cache, else those of ZooKeeper, else stale ones of the cache."""
    path = cache_file(key)
    try:
        age_s = time.time() - os.stat(path).st_mtime  # noqa: PTH116 - pathlib costs 5 ms
    except OSError:
        age_s = STALE_S
    if age_s < FRESH_S:
        return _read_cache(path)
    try:
        values = read()
    except (OSError, ValueError, struct.error):
        if age_s >= STALE_S:
            raise
        return _read_cache(path)
    _write_cache(path, values)
    return values


def cache_file(key: str) -> str:
    """Return the path of the cached values of a kind, an address and a parent node."""
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


def _read_nodes(kind: str, address: str, parent: str) -> list[Value]:
    from broker.zk.node_reader import NodeReader  # late: not for values from the cache

    with NodeReader(address, deadline_s=DEADLINE_S) as nodes:
        if kind == "topic":
            return [Value(name) for name in nodes.children("/brokers/topics")]
        if kind == "group":
            return [Value(name) for name in nodes.children("/consumers")]
        if kind == "broker":
            ids = nodes.children("/brokers/ids")
            return [Value(name, nodes.value(f"/brokers/ids/{name}")) for name in ids]
        if kind == "zk-path":
            return [Value(f"{parent.rstrip('/')}/{name}") for name in nodes.children(parent)]
    return []

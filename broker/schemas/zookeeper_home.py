"""The documents of the registry of schemas as nodes of ZooKeeper, each below `/schemas`.

Each change is one transaction that sets `/schemas`, whose version says whether another came first.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from broker import errors
from broker.schemas.store import DIGESTS, IDS, ROOT, SUBJECTS, ChangedMeanwhileError, Document
from broker.zk import paths
from broker.zk.nodes import MAX_REQUEST_BYTES, CreateNode, SetNode

if TYPE_CHECKING:
    from broker.zk.session import Session

_MAX_BYTES = MAX_REQUEST_BYTES - (8 << 10)
_PLAIN_BYTES = 8 << 10  # more are compressed, as the embedded ZooKeeper takes 256 kB at a time


class ZooKeeperHome:
    """Keeps each document in a node; `session` raises if there is none at present."""

    def __init__(self, session: Callable[[], Session]) -> None:
        self._session = session

    def read(self, key: str) -> Document | None:
        """See `Home.read`."""
        return self._read(key)[0]

    def _read(self, key: str) -> tuple[Document | None, int | None]:
        path = _path_of(key)
        with _available():
            session = self._session()
            found = session.get_many([path])
            if not found:  # another server may have it already
                session.sync()
                found = session.get_many([path])
            if not found:
                return None, None
            value, stat = found[path]
        return _unpack(path, value), stat.version

    def read_all(self, kind: str) -> dict[str, Document]:
        """See `Home.read_all`."""
        parent = _path_of(kind.rstrip("/"))
        with _available():
            session = self._session()
            session.sync()
            names = sorted(session.children_if_any(parent), key=unquote)
            found = session.get_many(f"{parent}/{name}" for name in names)
        read = {path: _unpack(path, value) for path, (value, _) in found.items()}
        return {unquote(path[len(parent) + 1 :]): one for path, one in read.items() if one}

    def begin(self) -> tuple[Document | None, object]:
        """See `Home.begin`."""
        return self._read(ROOT)

    def commit(self, documents: Mapping[str, Document], state: object) -> None:
        """See `Home.commit`."""
        with _available():
            session = self._session()
            changes: list[CreateNode | SetNode] = []
            kinds = {one.rstrip("/") for one in (SUBJECTS, IDS, DIGESTS)}
            order = [ROOT, *sorted(kinds), *sorted(one for one in documents if one != ROOT)]
            for key in order:
                path, value = _path_of(key), _pack(documents.get(key))
                if key == ROOT and isinstance(state, int):
                    changes.append(SetNode(path, value, state))
                elif key != ROOT and session.exists(path) is not None:
                    if key not in kinds:
                        changes.append(SetNode(path, value, -1))
                else:
                    changes.append(CreateNode(path, value))
            size = sum(len(one.path) + len(one.value) for one in changes)
            if size > _MAX_BYTES:  # ZooKeeper would close the session
                raise errors.InvalidSchemaError(
                    f"the schema and its subject take {size} bytes of ZooKeeper at once; the limit "
                    f"is {_MAX_BYTES}"
                )
            try:
                session.transact(changes)
            except errors.RegistryConflictError as error:
                raise ChangedMeanwhileError from error


def _path_of(key: str) -> str:
    kind, slash, name = key.partition("/")
    return f"{paths.SCHEMAS}{'/' if kind else ''}{kind}{slash}{_quoted(name)}"


def _quoted(name: str) -> str:
    made = quote(name, safe="")
    return {".": "%2E", "..": "%2E%2E"}.get(made, made)


def _pack(document: Document | None) -> bytes:
    if document is None:
        return b""
    value = json.dumps(document, ensure_ascii=False).encode()
    return zlib.compress(value) if len(value) > _PLAIN_BYTES else value


def _unpack(path: str, value: bytes) -> Document | None:
    if not value:
        return None
    try:
        text = value if value.startswith(b"{") else zlib.decompress(value)
        found: Any = json.loads(text)
    except (ValueError, zlib.error) as error:
        raise errors.SchemasUnavailableError(
            f"node {path} is damaged: {error}; import a copy of it"
        ) from error
    if not isinstance(found, dict):
        raise errors.SchemasUnavailableError(f"node {path} has no object; import a copy of it")
    return found


@contextmanager
def _available() -> Iterator[None]:
    """Translate errors of the session into the one that clients know, which a retry may help."""
    try:
        yield
    except errors.RegistryConflictError:
        raise
    except errors.CoordinationError as error:
        raise errors.SchemasUnavailableError(
            f"ZooKeeper, which has the schemas: {error}"
        ) from error

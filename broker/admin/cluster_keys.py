"""The key with which brokers prove that they are of a cluster: its replacement while they run.

The new key is first accepted by all brokers, then chosen by them; the old one ends an hour later,
when all connections have proved themselves with the new one. Each step is one versioned write, so
that a rotation that was broken off is continued by the next one.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from broker import deadlines, errors
from broker.admin.brokers import request_status
from broker.client.side import Side
from broker.protocol.extension_requests import StatusParts
from broker.security.cluster_keys import LIFETIME_MS, ClusterKeys
from broker.zk import paths
from broker.zk.registry import Registry

_POLL_S = 0.2
_CONTINUE = "run it again to continue"


class KeyInfo(NamedTuple):
    """One key of a cluster, and which brokers accept it."""

    id: str
    is_chosen: bool
    made_ms: int
    until_ms: int  # 0: no limit
    brokers: tuple[int, ...]


class _Stored(NamedTuple):
    keys: ClusterKeys
    version: int


def list_keys(registry: Registry, side: Side) -> list[KeyInfo]:
    """Return the keys in ZooKeeper, the one that brokers choose first."""
    keys = _read(registry).keys
    accepted = _accepted(side, must_all_tell=False)
    return [
        KeyInfo(
            one.id.hex(),
            number == 0,
            one.made_ms,
            one.until_ms,
            tuple(id for id, known in sorted(accepted.items()) if one.id.hex() in known),
        )
        for number, one in enumerate(keys.keys)
    ]


def rotate(registry: Registry, side: Side, *, at_once: bool) -> str:
    """Replace the key of a cluster, or continue to; return the id of the new one.

    Args:
        registry: of the cluster.
        side: its brokers, and how long all of them may take to accept the new key; `PartialError`
            names those that do not.
        at_once: do not wait for brokers, and end the old key now, as it leaked.
    """
    stored = _read(registry)
    now_ms = time.time_ns() // 1_000_000
    keys = stored.keys
    newest = max(keys.keys, key=lambda one: one.made_ms)
    if newest == keys.keys[0]:  # no rotation was broken off
        keys = keys.with_next(now_ms)
        newest = keys.keys[-1]
        if not at_once:
            _accepted(side)  # a broker that does not tell is known before any change
            stored = _write(registry, keys, stored.version)
    new_id = newest.id.hex()
    if not at_once:
        _await_accepted(side, new_id)
        stored = _read(registry)
        keys = stored.keys
    _write(registry, keys.with_next_first(now_ms, 0 if at_once else LIFETIME_MS), stored.version)
    return new_id


def _await_accepted(side: Side, key_id: str) -> None:
    def missing() -> list[int]:
        return [id for id, known in sorted(_accepted(side).items()) if key_id not in known]

    try:
        left = deadlines.remaining(missing, side.give_up_s, _POLL_S)
    except errors.BrokerError as error:
        error.hints += (_CONTINUE,)
        raise
    if left:
        raise errors.PartialError(
            f"key {key_id} is not accepted by broker {', '.join(map(str, left))} yet: the "
            "old key is still the one that brokers choose",
            hints=[_CONTINUE],
        )


def _accepted(side: Side, *, must_all_tell: bool = True) -> dict[int, list[str]]:
    """Return the ids of the keys that each live broker accepts; none of one that is silent."""
    found: dict[int, list[str]] = {}
    refusals = []
    for one in side.brokers():
        _, document, error = request_status(side.connect, one, StatusParts(0))
        if error is not None and not error.is_retriable:
            refusals.append(error)  # who asks may not know, or cannot log in
        found[one.id] = (document or {}).get("security", {}).get("key_ids", [])
    if refusals and (must_all_tell or len(refusals) == len(found)):
        raise refusals[0]
    return found


def _read(registry: Registry) -> _Stored:
    try:
        content, stat = registry.session.get(paths.CLUSTER_KEYS)
    except errors.RegistryNodeNotFoundError as error:
        raise errors.RegistryNodeNotFoundError(
            "the cluster has no key: its brokers are of a release that makes none"
        ) from error
    keys = ClusterKeys.decode(content, f"node {paths.CLUSTER_KEYS} of ZooKeeper")
    return _Stored(keys, stat.version)


def _write(registry: Registry, keys: ClusterKeys, version: int) -> _Stored:
    try:
        registry.session.set(paths.CLUSTER_KEYS, keys.encode(), version=version)
    except errors.RegistryConflictError as error:
        raise errors.RegistryConflictError(
            "another command changes the keys of the cluster", hints=["run it again"]
        ) from error
    return _read(registry)

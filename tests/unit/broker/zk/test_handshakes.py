from __future__ import annotations

from importlib.metadata import version

from kazoo.client import KazooClient

from broker.zk.handshakes import KazooHandler, KazooHandshakes


def test_private_parts_of_kazoo_when_version_is_within_bounds_then_are_those_handshakes_use() -> (
    None
):
    client = KazooClient()
    connection = client._connection
    connect, invoke = connection._connect, connection._invoke

    handshakes = KazooHandshakes(client, "zk1:2181", 6.0, KazooHandler())

    assert version("kazoo").startswith("2.11.")  # as `pyproject.toml` says
    assert callable(connect)
    assert callable(invoke)
    assert connection._connect == handshakes._shake_hands
    assert connection._invoke == handshakes._ask_with_patience
    assert connection._socket is None  # until there is a connection

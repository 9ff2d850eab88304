"""A program with the classes of Kafka 0.7: see `test_typing.py`."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import broker


def serve(directory: Path) -> int:
    """Run a broker, and read from it."""
    with broker.Broker(broker.BrokerConfig(data_dirs=(directory,), port=0)) as server:
        assert_type(server.port, int)
        with broker.SimpleConsumer("localhost", server.port) as consumer:
            for offset, _, payload in consumer.fetch("orders", 0, 0, 1000):
                assert_type(offset, int)
                assert_type(payload, bytes)
    return server.port


def mistake() -> None:
    """Make the mistakes that checkers find."""
    broker.Brokr  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # noqa: B018
    broker.BrokerConfig(port="0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

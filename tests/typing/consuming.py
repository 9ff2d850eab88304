"""A program that reads: see `test_typing.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, assert_type

import pylogctl
from pylogctl import windows


def read(client: pylogctl.Client) -> Iterator[str]:
    """Read in each way there is."""
    with client.read("orders", start={"0-0": 4096, "0-1": "@-10m"}, stop=None, idle=5) as reader:
        assert_type(reader, pylogctl.Reader)
        for message in reader:
            assert_type(message, pylogctl.Message)
            assert_type(message.value, bytes)
            assert_type(message.next_offset, int)
            assert_type(message.partition, pylogctl.TopicPartition)
            assert_type(message.key, bytes | None)
            assert_type(message.timestamp, datetime | None)
            assert_type(message.json(), Any)
            yield message.text()
    again = client.read("orders", start=reader.positions, filter="error|fatal", limit=10)
    again.seek("0-0", "latest")
    since = datetime(2026, 11, 20, tzinfo=UTC)
    for batch in client.read_batches(re.compile("orders.*"), start=since, partition=[0, "1-0"]):
        assert_type(batch, pylogctl.Batch)
        assert_type(batch.values(), list[bytes])
        assert_type(batch.data, memoryview)
        assert_type(batch.messages(), list[pylogctl.Message])


def count(client: pylogctl.Client) -> None:
    """Sort messages into windows."""
    minutes = windows.tumbling(60, key=lambda message: message.partition, lateness=1.5)
    assert_type(minutes, windows.Windows)
    for closed in minutes.add_all(client.read("orders")):
        assert_type(closed.start, datetime)
        assert_type(closed.messages, list[pylogctl.Message])
    windows.sessions(60, time=lambda message: message.value)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]


def join(client: pylogctl.Client) -> None:
    """Be a member of a group."""
    with client.group("billing", ["orders", "payments"], commit="manual") as group:
        assert_type(group, pylogctl.Group)
        assert_type(group.assigned, frozenset[pylogctl.TopicPartition])
        for message in group:
            assert_type(message.value, bytes)
            group.commit()
    for message in client.group("billing", re.compile("orders.*"), start="earliest", filter=b"x"):
        print(message.offset)


def mistake(client: pylogctl.Client) -> None:
    """Make the mistakes that checkers find."""
    client.read("orders", start=1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.read("orders", limt=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.group("g", "orders", commit="never")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    for message in client.read("orders"):
        message.value.upper() + "text"  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnusedExpression]
        message.offset = 5  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]

"""A program that manages replicas and settings: see `test_typing.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

import pylogctl


def move(client: pylogctl.Client) -> None:
    """Move a topic to two brokers, and give leaderships back."""
    moving = client.reassign("orders", [1, 2], throttle=50_000_000)
    assert_type(moving, pylogctl.Reassignment)
    assert_type(moving.moves, tuple[pylogctl.Move, ...])
    for one in moving.progress():
        assert_type(one.left_bytes, int | None)
        assert_type(one.missing, tuple[int, ...])
    moving.wait(timeout=None)
    for under_way in client.reassignments(timeout=5):
        client.cancel_reassignment(under_way.topic)
    try:
        for partition, before, leader in client.elect():
            print(partition.name, before, leader)
    except pylogctl.Partial as error:
        assert_type(error.failed, dict[str, pylogctl.Error])


def configure(client: pylogctl.Client) -> None:
    """Keep messages for a day."""
    texts = {"retention.ms": "86400000"}
    client.set_settings(texts, topic="orders", plan=True)
    for change in client.set_settings({"retention.ms": 86_400_000}, topic="orders"):
        assert_type(change, pylogctl.SettingChange)
    found = client.settings(broker=0)["max.connections"]
    assert_type(found, pylogctl.Setting)
    assert_type(found.value, bool | int | float | str)
    assert_type(found.elsewhere, Mapping[int, bool | int | float | str])
    client.unset_settings(None, topic="orders")


def mistake(client: pylogctl.Client) -> None:
    """Make the mistakes that checkers find."""
    client.reassign("orders", ["1"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    client.elect("orders", True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.set_settings({"retention.ms": None}, topic="orders")  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    client.settings(topic="orders")["flush.ms"].value = 1  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]

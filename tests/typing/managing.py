"""A program that manages topics, replicas and settings: see `test_typing.py`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import assert_type

import pylogctl


def make(client: pylogctl.Client) -> None:
    """Make a topic, look at it, and delete it."""
    settings = {"min.insync.replicas": 2, "flush.before.read": True}
    made = client.create_topic("orders", partitions=3, replicas=3, settings=settings, exist_ok=True)
    assert_type(made, pylogctl.TopicInfo)
    assert_type(client.alter_topic("orders", partitions=6).size_bytes, int | None)
    for one in client.describe("orders", timeout=5):
        assert_type(one, pylogctl.PartitionInfo)
        assert_type(one.last_append, datetime | None)
        assert_type(one.lags, Mapping[int, int | None])
    at = client.offsets("orders", {"0-0": "-1"}, partition=["0-0", 1])
    assert_type(at, dict[pylogctl.TopicPartition, int])
    assert_type(client.count("orders", start=at), int)
    assert_type(client.sample("orders", 3, at_random=True), list[pylogctl.Message])
    assert_type(client.delete_topic("orders", missing_ok=True), pylogctl.Deletion)


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
    client.create_topic("orders", 3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.create_topic("orders", brokers=["1"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    client.reassign("orders", ["1"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    client.elect("orders", True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.set_settings({"retention.ms": None}, topic="orders")  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    client.settings(topic="orders")["flush.ms"].value = 1  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ConfigError, CoordinationError
from broker.topic import TopicPartition
from broker.zk import paths

PARTITION = TopicPartition("events", 2, 0)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (paths.broker(3), "/brokers/ids/3"),
        (paths.topic("events"), "/brokers/topics/events"),
        (paths.topic_broker("events", 3), "/brokers/topics/events/3"),
        (paths.group("g"), "/consumers/g"),
        (paths.consumer_ids("g"), "/consumers/g/ids"),
        (paths.consumer("g", "g_h-1-ab"), "/consumers/g/ids/g_h-1-ab"),
        (paths.owners("g", "events"), "/consumers/g/owners/events"),
        (paths.owner("g", PARTITION), "/consumers/g/owners/events/2-0"),
        (paths.offsets("g", "events"), "/consumers/g/offsets/events"),
        (paths.offset("g", PARTITION), "/consumers/g/offsets/events/2-0"),
    ],
)
def test_path_when_built_then_is_the_one_of_kafka_07(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("localhost:2181", (("localhost", 2181),), ""),
        ("localhost", (("localhost", 2181),), ""),
        ("a:1,b:2", (("a", 1), ("b", 2)), ""),
        (" a:1, b:2 ", (("a", 1), ("b", 2)), ""),
        ("a:1,b:2/kafka/dev", (("a", 1), ("b", 2)), "/kafka/dev"),
        ("a:1/", (("a", 1),), ""),
        ("a:1/x/", (("a", 1),), "/x"),
        ("[::1]:2181/x", (("::1", 2181),), "/x"),
        ("[fe80::1]", (("fe80::1", 2181),), ""),
    ],
)
def test_connect_string_when_well_formed_then_is_parsed(
    text: str, hosts: tuple[tuple[str, int], ...], chroot: str
) -> None:
    assert paths.parse_connect_string(text) == (hosts, chroot)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/x",
        ":2181",
        "a:",
        "a:x",
        "a:0",
        "a:65536",
        "a:1,,b:2",
        "a:1//x",
        "a:1/x//y",
        "[::1",
        "[::1]2",
    ],
)
def test_connect_string_when_malformed_then_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match="invalid ZooKeeper address"):
        paths.parse_connect_string(text)


NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True)
HOSTS = st.one_of(NAMES, st.ip_addresses().map(str))


@given(
    hosts=st.lists(st.tuples(HOSTS, st.integers(1, 65535)), min_size=1, max_size=4),
    steps=st.lists(st.from_regex(r"[a-z0-9_]{1,6}", fullmatch=True), max_size=3),
)
def test_connect_string_when_written_and_parsed_then_is_the_same(
    hosts: list[tuple[str, int]], steps: list[str]
) -> None:
    written = paths.ConnectString(tuple(hosts), "".join(f"/{step}" for step in steps))

    assert paths.parse_connect_string(str(written)) == written


def test_servers_when_chroot_given_then_leave_it_out() -> None:
    assert paths.parse_connect_string("a:1,[::1]:2/x").servers == "a:1,[::1]:2"


@pytest.mark.parametrize(
    ("chroot", "path", "expected"),
    [("", "/", "/"), ("", "/a", "/a"), ("/c", "/", "/c"), ("/c/d", "/a/b", "/c/d/a/b")],
)
def test_resolve_when_path_valid_then_chroot_stands_in_front(
    chroot: str, path: str, expected: str
) -> None:
    assert paths.resolve(chroot, path) == expected


@pytest.mark.parametrize("path", ["", "a", "a/b", "//", "/a/", "/a//b", "/a/./b", "/a/.."])
def test_resolve_when_path_invalid_then_coordination_error(path: str) -> None:
    with pytest.raises(CoordinationError, match="invalid path"):
        paths.resolve("", path)

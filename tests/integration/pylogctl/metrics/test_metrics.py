"""`pylogctl metrics` against a real broker, registry and members."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker import Broker
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.group.group_fixtures import END, TOPIC, Join, await_owners, store
from tests.integration.pylogctl.group.group_fixtures import broker as broker
from tests.integration.pylogctl.group.group_fixtures import join as join
from tests.integration.pylogctl.topic.test_topic import fill
from tests.support.command_line import Invoke, Spawn, first_note
from tests.support.waiting import wait_until
from tests.support.zookeeper_proxy import ZooKeeperProxy

pytestmark = pytest.mark.zookeeper

Samples = Mapping[tuple[str, ...], float]


class Served:
    """A process of `metrics serve`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        noted = re.search(r"metrics at (\S+)", first_note(process))
        assert noted is not None
        self._address = noted[1]

    def samples(self) -> Samples:
        """Return what a scrape shows, by the names of series and the values of their labels."""
        return samples_of(self.text())

    def text(self) -> str:
        with urllib.request.urlopen(self._address, timeout=60) as answer:
            return str(answer.read(), "utf-8")

    def end(self) -> str:
        """End it, and return what it wrote to standard error."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return errors.decode()


def samples_of(text: str) -> Samples:
    return {
        (sample.name.removeprefix("pylogctl_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def serve(spawn: Spawn) -> Iterator[Callable[..., Served]]:
    def start(zookeeper: str, *args: str) -> Served:
        options = ("--port", "0", "--interval", "100ms", "--window", "1s", *args)
        return Served(spawn("metrics", "serve", "-Z", zookeeper, *options))

    yield start


def test_serve_when_a_group_stops_then_its_status_says_so_until_it_is_back(
    broker: Broker, zookeeper: str, session: Session, join: Join, serve: Callable[..., Served]
) -> None:
    member = join("g")
    await_owners(session, "g", 1)
    served = serve(zookeeper)

    def awaited(what: str, **series: float) -> Samples:
        found: Samples = {}

        def is_shown() -> bool:
            nonlocal found
            found = served.samples()
            return all(
                found.get((name, "g", *labels)) == value
                for text, value in series.items()
                for name, *labels in [text.split(":")]
            )

        wait_until(is_shown, what)
        return found

    fine = awaited("a group at the end", **{"group_status:OK": 1, f"group_lag_bytes:{TOPIC}": 0})
    assert fine["group_members", "g"] == 1
    assert fine["group_status", "g", "STOP"] == 0
    assert fine["group_oldest_unread_seconds", "g", TOPIC] == 0
    assert fine["group_partition_lag_bytes", "g", "0-1", TOPIC] == 0
    assert fine["group_commit_age_seconds", "g"] >= 0
    assert fine["group_observation_timestamp_seconds",] > 1e9
    assert fine["process_cpu_seconds_total",] > 0

    member.leave()
    fill(broker, TOPIC, [b"1"] * 10)
    stopped = awaited("the end of the group", **{"group_status:STOP": 1, "group_members": 0})
    assert stopped["group_status", "g", "OK"] == 0
    assert stopped["group_lag_bytes", "g", TOPIC] == END
    assert stopped["group_partition_lag_bytes", "g", "0-0", TOPIC] == END

    join("g")
    awaited("its return", **{"group_status:OK": 1, f"group_lag_bytes:{TOPIC}": 0})
    assert served.end() == ""


def test_serve_when_zookeeper_is_gone_then_groups_are_unknown_and_said_once(
    broker: Broker, zookeeper: str, session: Session, serve: Callable[..., Served]
) -> None:
    store(session, "g", {"0-0": 0})
    proxy = ZooKeeperProxy(zookeeper)
    served = serve(proxy.connect, "--timeout", "2s", "--no-partitions")
    wait_until(lambda: ("group_lag_bytes", "g", TOPIC) in served.samples(), "the first look")
    known = served.samples()
    assert known["group_lag_bytes", "g", TOPIC] == END
    assert not any(name == "group_partition_lag_bytes" for name, *_ in known)
    proxy.close()
    wait_until(
        lambda: served.samples()["group_observation_failures_total",] > 1, "two failed looks"
    )
    assert not any(labels for name, *labels in served.samples() if name.startswith("group_"))
    assert served.end().count("groups cannot be observed") == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--port", "65536"), "not a port or an address: '65536'"),
        (("--port", "a:b:c"), "not a port"),
        (("--interval", "0s"), "--interval must be above zero"),
        (("--interval", "1m", "--window", "90s"), "--window must be two intervals at least"),
    ],
)
def test_serve_when_an_option_makes_no_sense_then_it_is_named(
    invoke: Invoke, args: tuple[str, ...], message: str
) -> None:
    result = invoke("metrics", "serve", "-Z", "127.0.0.1:1", *args)
    assert result.status == ExitStatus.USAGE
    assert message in result.stderr

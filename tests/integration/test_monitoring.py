"""The files of `monitoring/`: programs can read them, and a cluster shows what they name."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import pylogctl
from broker import Broker
from broker.client.counts import ProducerCounts
from broker.tools.mirror import RouteStatus
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from monitoring.dashboard import dashboard as written
from pylogctl.mirror.metrics import exposition
from tests.integration.pylogctl.metrics.test_metrics import Served
from tests.support.command_line import Invoke, Spawn
from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import invoke as invoke
from tests.support.command_line import spawn as spawn
from tests.support.monitoring import FOLDER, REPOSITORY, alerts, dashboard, queries, series_in

RUNBOOK = (REPOSITORY / "docs/operations/alerts.md").read_text(encoding="utf-8")


def promtool(*words: str, folder: Path = FOLDER) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool of Prometheus is not installed")
    result = subprocess.run(
        [program, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_scrape_file_and_rules_are_valid() -> None:
    promtool("check", "config", "prometheus.yml")


def test_alerts_fire_and_end_when_their_tests_say_so() -> None:
    promtool("test", "rules", "alerts.test.yml")


def test_alerts_are_each_tested_to_be_quiet_to_fire_and_to_end() -> None:
    tests = (FOLDER / "alerts.test.yml").read_text(encoding="utf-8").split("  - name: ")[1:]
    counts: dict[str, Counter[str]] = {}
    for test in tests:
        counted = counts.setdefault(test.split()[0], Counter())
        counted.update(re.findall(r"exp_samples: \[{value: (\d)}\]", test))
    assert list(counts) == [alert.name for alert in alerts()]
    del counts["Watchdog"]  # always fires
    assert [name for name, found in counts.items() if found["1"] < 1 or found["0"] < 2] == []


def test_alerts_have_each_a_paragraph_that_says_what_to_do() -> None:
    pages = [f"docs/operations/alerts.md#{name.lower()}" for name in _runbooks()]
    assert pages == [alert.runbook for alert in alerts()]
    for alert in alerts():
        if alert.severity != "none":
            assert _runbooks()[alert.name].startswith(alert.severity.capitalize())


def _runbooks() -> dict[str, str]:
    return {
        name: text.strip()
        for name, _, text in (one.partition("\n") for one in RUNBOOK.split("\n## ")[1:])
    }


@pytest.mark.parametrize(
    "words", sorted(set(re.findall(r"`pylogctl (\w[^`]*)`", RUNBOOK.replace("\n", " "))))
)
def test_commands_of_the_runbook_have_known_options(invoke: Invoke, words: str) -> None:
    result = invoke(*shlex.split(words), "--help")
    assert (result.status, result.stderr) == (0, "")


def test_dashboard_is_what_its_program_writes() -> None:
    assert dashboard() == written(), "make generated writes it anew"


def test_dashboard_panels_do_not_overlap_and_fill_eight_rows() -> None:
    panels = dashboard()["panels"]
    assert [one["title"] for one in panels if one["type"] == "row"] == [
        *("State", "Traffic", "Requests", "Replication"),
        *("Storage", "Clients", "Groups", "Process"),
    ]
    cells = Counter(
        (place["x"] + x, place["y"] + y)
        for place in (one["gridPos"] for one in panels)
        for x in range(place["w"])
        for y in range(place["h"])
    )
    assert max(cells.values()) == 1
    assert max(x for x, _ in cells) == 23


def test_dashboard_queries_are_valid(tmp_path: Path) -> None:
    rules = [{"record": f"r{number}", "expr": one} for number, one in enumerate(queries())]
    file = tmp_path / "queries.yml"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    promtool("check", "rules", str(file), folder=tmp_path)


UNSHOWN = {
    "what a chart shows from the other side, or its sum": """
        broker_push_seconds controller_oldest_push_seconds broker_processor_idle_seconds_total
        log_directory_offline broker_follower_lag_bytes broker_fetcher_requests_total
        broker_network_received_bytes_total broker_network_sent_bytes_total
        broker_connections_accepted_total log_messages_appended_total broker_failed_reads_total
        broker_failed_sets_total broker_truncated_bytes_total broker_partitions
        mirror_bytes_total mirror_messages_total mirror_offset_bytes mirror_end_offset_bytes
        mirror_errors_total group_partition_lag_bytes broker_worker_queued_requests""",
    "positions, for a look at one partition": """
        log_start_offset_bytes log_end_offset_bytes log_high_watermark_bytes""",
    "facts, to join with others": """
        broker_info broker_start_timestamp_seconds broker_state log_recovery_seconds
        broker_reassignment_limit_bytes_per_second mirror_last_error_timestamp_seconds""",
    "rare, for a search after something else was seen": """
        broker_at_min_isr_partitions broker_bad_frames_total broker_filtered_messages_total
        broker_fetch_sessions broker_fetch_sessions_evicted_total
        broker_quota_throttle_seconds_total controller_early_leader_changes_total
        controller_suspected_brokers
        broker_isr_update_failures_total controller_lost_offices_total log_retention_seconds
        log_compaction_seconds log_compaction_bytes_total log_compaction_idle_seconds
        mirror_corrupt_messages_total scrape_errors_total group_observation_failures_total""",
}
"""Metrics in no alert and no chart, by why."""


@pytest.fixture
def scraped(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    spawn: Spawn,
    tmp_path: Path,
) -> set[str]:
    """What two brokers with a replicated topic, a group and a mirror show after some use."""
    brokers = [
        start_broker(broker_id=number, zookeeper=zookeeper, data_dir=tmp_path / f"{number}")
        for number in range(2)
    ]
    with pylogctl.connect(zookeeper=zookeeper) as client:
        client.create_topic("t", partitions=1, replicas=2)
        client.send("t", b"message")
    session.create(f"{paths.offsets('g', 't')}/0-0", b"0")
    of_groups = Served(spawn("metrics", "serve", "-Z", zookeeper, "--port", "0")).text()
    partition = TopicPartition("t", 0, 0)
    route = RouteStatus(partition, partition, next_offset=0, error_ms=0)
    of_mirror = exposition([route], {partition: 1}, {partition: 1.0}, ProducerCounts())
    texts = [broker.exposition() for broker in brokers]
    return series_in("\n".join((*texts, of_groups, of_mirror)))


@pytest.mark.zookeeper
def test_metrics_when_named_in_files_then_a_cluster_shows_them_and_the_other_way_round(
    scraped: set[str],
) -> None:
    named = series_in(" ".join((*queries(), *(one.expression for one in alerts()))))
    assert named - scraped == set()
    unshown = {name.removeprefix("pylogctl_") for name in scraped - named}
    assert unshown == {name for names in UNSHOWN.values() for name in names.split()}

"""Writes `dashboard.json`, the dashboard for Grafana: `python -m monitoring.dashboard`.

`make generated` runs it. Rows follow the way that a fault is searched: state, traffic, requests,
replication, storage, clients, groups, process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")
_CLUSTER = 'cluster=~"$cluster"'
_BROKER = f'{_CLUSTER}, instance=~"$instance"'
_WIDTH = 24
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_BY_INSTANCE = "{{instance}}"


def _series(name: str, labels: str = _BROKER) -> str:
    return f"pylogctl_{name}{{{labels}}}"


def _rate(name: str, labels: str = _BROKER) -> str:
    return f"rate({_series(name, labels)}[$__rate_interval])"


def _by(labels: str, expression: str, aggregate: str = "sum") -> str:
    return f"{aggregate} by ({labels}) ({expression})"


def _quantile(share: float, name: str, by: str, labels: str = _BROKER) -> str:
    buckets = _by(f"{by}, le" if by else "le", _rate(f"{name}_bucket", labels))
    return f"histogram_quantile({share}, {buckets})"


def _mean(name: str, labels: str) -> str:
    return f"sum({_rate(f'{name}_sum', labels)}) / sum({_rate(f'{name}_count', labels)})"


def _panel(
    title: str,
    kind: str,
    targets: Sequence[tuple[str, str]],  # an expression, and what its series are called
    *,
    width: int = 8,
    unit: str = "short",
    options: dict[str, Any] | None = None,
    **defaults: Any,
) -> dict[str, Any]:
    return {
        "title": title,
        "type": kind,
        "datasource": _DATASOURCE,
        "gridPos": {"w": width, "h": 4 if kind == "stat" else 8},
        "fieldConfig": {"defaults": {"unit": unit, **defaults}, "overrides": []},
        "options": options or {},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _DATASOURCE,
                "expr": expression,
                "legendFormat": legend,
                **({"format": "heatmap"} if kind == "heatmap" else {}),
                **({"format": "table", "instant": True} if kind == "table" else {}),
            }
            for index, (expression, legend) in enumerate(targets)
        ],
    }


def _chart(
    title: str, *targets: tuple[str, str], unit: str = "short", width: int = 8, stacks: bool = False
) -> dict[str, Any]:
    custom = {"fillOpacity": 30, "stacking": {"mode": "normal"}} if stacks else {}
    tooltip = {"tooltip": {"mode": "multi", "sort": "desc"}}
    return _panel(
        title, "timeseries", targets, unit=unit, width=width, options=tooltip, custom=custom, min=0
    )


def _light(title: str, expression: str, red: float, *, falls: bool = False) -> dict[str, Any]:
    """Return a number that is red from `red` on; with `falls`, below it."""
    bad, good = ("green", "red") if falls else ("red", "green")
    steps = [{"color": good, "value": None}, {"color": bad, "value": red}]
    return _panel(
        title,
        "stat",
        [(expression, "")],
        width=3,
        options={"colorMode": "background", "graphMode": "none"},
        thresholds={"mode": "absolute", "steps": steps},
    )


def _state() -> Iterator[dict[str, Any]]:
    errors = 'status=~"STOP|STALL|REWIND"'
    free = _series("log_directory_free_bytes")
    yield _light("Brokers down", f'sum(up{{job="pylogctl-broker", {_CLUSTER}}} == bool 0)', 1)
    yield _light("Controllers", f"sum({_series('controller_active', _CLUSTER)})", 1, falls=True)
    yield _light("Offline", f"sum({_series('controller_offline_partitions', _CLUSTER)})", 1)
    for title, name in (
        ("Under-replicated", "broker_under_replicated_partitions"),
        ("Below min ISR", "broker_under_min_isr_partitions"),
    ):
        yield _light(title, f"sum({_series(name, _CLUSTER)})", 1)
    unclean = _series("controller_unclean_elections_total", _CLUSTER)
    yield _light("Unclean elections, 1 d", f"sum(increase({unclean}[1d]))", 1)
    stopped = _by("group", _series("group_status", f"{_CLUSTER}, {errors}"), "max")
    yield _light("Groups in error", f"sum({stopped}) or vector(0)", 1)
    days = f"min({free} / clamp_min(-deriv({free}[6h]), 1)) / 86400"
    yield _light("Days until a disk is full", days, 2, falls=True)


def _traffic() -> Iterator[dict[str, Any]]:
    for title, name, unit in (
        ("Messages in", "broker_messages_received_total", "short"),
        ("Bytes in", "broker_received_bytes_total", "Bps"),
        ("Bytes out", "broker_sent_bytes_total", "Bps"),
    ):
        yield _chart(title, (_by("instance", _rate(name)), _BY_INSTANCE), unit=unit)
    yield _chart(
        "Replication",
        (_rate("broker_replication_received_bytes_total"), "{{instance}} in"),
        (_rate("broker_replication_sent_bytes_total"), "{{instance}} out"),
        (_rate("broker_reassignment_received_bytes_total"), "{{instance}} moved in"),
        unit="Bps",
    )
    of_topic = f'{_BROKER}, topic=~"$topic"'
    for title, name in (
        ("Bytes in, ten largest topics", "broker_received_bytes_total"),
        ("Bytes out, ten largest topics", "broker_sent_bytes_total"),
    ):
        largest = f"topk(10, {_by('topic', _rate(name, of_topic))})"
        yield _chart(title, (largest, "{{topic}}"), unit="Bps")


def _requests() -> Iterator[dict[str, Any]]:
    total = "broker_request_seconds"
    yield _chart("Requests", (_by("request", _rate("broker_requests_total")), "{{request}}"))
    for request in ("produce", "fetch"):
        labels = f'{_BROKER}, request="{request}"'
        yield _chart(
            f"Time of a {request} request",
            *((_quantile(share, total, "", labels), f"{share:g}") for share in (0.5, 0.99, 0.999)),
            unit="s",
        )
    labels = f'{_BROKER}, request="produce"'
    yield _chart(
        "Parts of a produce request, mean",
        *(
            (_mean(f"broker_request_{part}_seconds", labels), part)
            for part in ("queue", "local", "remote", "send")
        ),
        unit="s",
        stacks=True,
    )
    yield _panel(
        "Times of produce requests",
        "heatmap",
        [(_by("le", _rate(f"{total}_bucket", labels)), "{{le}}")],
        options={"calculate": False, "yAxis": {"unit": "s"}},
    )
    yield _chart(
        "Network threads busy, of one",
        (_rate("broker_processor_busy_seconds_total"), "{{instance}} {{processor}}"),
        (_rate("broker_worker_busy_seconds_total"), "{{instance}} worker"),
        unit="percentunit",
    )


def _replication() -> Iterator[dict[str, Any]]:
    yield _chart(
        "In-sync replicas: leave and join",
        (_rate("broker_isr_shrinks_total"), "{{instance}} leave"),
        (_rate("broker_isr_expands_total"), "{{instance}} join"),
    )
    lag = (_series("broker_follower_lag_max_bytes"), _BY_INSTANCE)
    yield _chart("Largest lag of a follower", lag, unit="bytes")
    stalled = (_series("broker_stalled_max_seconds"), _BY_INSTANCE)
    yield _chart("Longest wait for a commit", stalled, unit="s")
    yield _chart(
        "Fetchers",
        (_series("broker_fetchers"), _BY_INSTANCE),
        (_series("broker_failed_fetchers"), "{{instance}} failed"),
    )
    yield _chart(
        "Elections, partitions with other leaders",
        (_rate("controller_leader_changes_total"), _BY_INSTANCE),
    )
    yield _chart(
        "Time of elections and pushes, p99",
        (_quantile(0.99, "controller_election_seconds", ""), "election"),
        (_quantile(0.99, "controller_push_seconds", ""), "push"),
        (f"max({_series('controller_oldest_event_seconds')})", "oldest event"),
        unit="s",
    )
    yield _chart("Partitions led", (_series("broker_leader_partitions"), _BY_INSTANCE))
    yield _chart(
        "The controller's work",
        (f"sum({_series('controller_event_queue_size')})", "events that wait"),
        (f"sum({_series('controller_imbalanced_partitions')})", "not led by the preferred replica"),
        (f"sum({_series('controller_topics_to_delete')})", "topics to delete"),
    )
    yield _chart(
        "Truncations and fenced requests",
        (_rate("broker_truncations_total"), "{{instance}} truncations"),
        (_rate("broker_fenced_requests_total"), "{{instance}} fenced {{kind}}"),
    )


def _storage() -> Iterator[dict[str, Any]]:
    free = _series("log_directory_free_bytes")
    yield _chart(
        "Free, and in four hours",
        (free, "{{instance}} {{directory}}"),
        (f"predict_linear({free}[6h], 14400)", "{{instance}} {{directory}} in 4 h"),
        unit="bytes",
    )
    flush = (_quantile(0.99, "log_flush_seconds", "instance"), _BY_INSTANCE)
    yield _chart("Time of a flush, p99", flush, unit="s")
    yield _chart("Unflushed", (_series("log_unflushed_bytes"), _BY_INSTANCE), unit="bytes")
    of_topic = f'{_BROKER}, topic=~"$topic"'
    size = f"topk(10, {_by('topic', _series('log_size_bytes', of_topic))})"
    yield _chart("Size, ten largest topics", (size, "{{topic}}"), unit="bytes")
    yield _chart("Segments", (_by("instance", _series("log_segments")), _BY_INSTANCE))
    deleted = (_rate("log_retention_deleted_bytes_total"), _BY_INSTANCE)
    compacted = (_rate("log_compaction_deleted_bytes_total"), "{{instance}} compaction")
    yield _chart("Deleted by retention", deleted, compacted, unit="Bps")
    yield _chart(
        "Logs to compact: the largest new part, and those that fail",
        (_series("log_compaction_max_dirty_ratio"), "{{instance}} new"),
        (_series("log_compaction_failed_partitions"), "{{instance}} failed"),
    )


def _clients() -> Iterator[dict[str, Any]]:
    yield _chart(
        "Connections",
        (_series("broker_connections"), _BY_INSTANCE),
        (_rate("broker_connections_refused_total"), "{{instance}} refused {{reason}}"),
    )
    yield _chart(
        "Connections that wait",
        (_series("broker_connections_held"), "{{instance}} held"),
        (_series("broker_connections_unsent"), "{{instance}} unsent"),
        (_series("broker_throttled_connections"), "{{instance}} throttled"),
        (_series("broker_connections_over_quota"), "{{instance}} over quota"),
    )
    yield _chart(
        "Memory of requests that arrive",
        (_series("broker_queued_bytes"), _BY_INSTANCE),
        (_series("broker_queued_bytes_limit"), "{{instance}} limit"),
        unit="bytes",
    )
    errors = (_by("request, code", _rate("broker_request_errors_total")), "{{request}} {{code}}")
    refused = (_by("reason", _rate("broker_refused_messages_total")), "message: {{reason}}")
    yield _chart("Errors, and messages refused", errors, refused)
    yield _chart(
        "Responses that wait", (_by("kind", _series("broker_waiting_responses")), "{{kind}}")
    )
    yield _chart(
        "Responses whose time was over",
        (_by("kind", _rate("broker_expired_responses_total")), "{{kind}}"),
    )


def _groups() -> Iterator[dict[str, Any]]:
    of_group = f'{_CLUSTER}, group=~"$group"'
    of_topic = f'{of_group}, topic=~"$topic"'
    status = _by("group, status", _series("group_status", of_group), "max") + " == 1"
    hidden = {"id": "organize", "options": {"excludeByName": {"Time": True, "Value": True}}}
    table = _panel("Status", "table", [(status, "")])
    yield table | {"transformations": [hidden]}
    lag = (_by("group", _series("group_lag_bytes", of_topic)), "{{group}}")
    yield _chart("Lag", lag, unit="bytes")
    oldest = (_series("group_oldest_unread_seconds", of_topic), "{{group}} {{topic}}")
    yield _chart("Age of the oldest unread message", oldest, unit="s")
    age = (_series("group_commit_age_seconds", of_group), "{{group}}")
    yield _chart("Time since the last commit", age, unit="s")
    yield _chart("Members", (_series("group_members", of_group), "{{group}}"))
    mirror = (_by("topic", _series("mirror_lag_bytes", _CLUSTER)), "{{topic}}")
    yield _chart("Lag of mirrors", mirror, unit="bytes")
    age = (_by("topic", _series("mirror_lag_seconds", _CLUSTER), "max"), "{{topic}}")
    yield _chart("Age of the oldest message not mirrored", age, unit="s")
    request = (_quantile(0.99, "mirror_request_seconds", "instance", _CLUSTER), _BY_INSTANCE)
    yield _chart("Time of a mirror's request to its target, p99", request, unit="s")


def _process() -> Iterator[dict[str, Any]]:
    def own(name: str) -> str:
        return f'{name}{{job=~"pylogctl-.*", {_BROKER}}}'

    cpu = f"rate({own('process_cpu_seconds_total')}[$__rate_interval])"
    yield _chart(
        "Processor, of the one an interpreter has", (cpu, _BY_INSTANCE), unit="percentunit"
    )
    memory = (own("process_resident_memory_bytes"), _BY_INSTANCE)
    yield _chart("Memory", memory, unit="bytes")
    yield _chart(
        "Garbage collections",
        (
            f"rate({own('python_gc_collections_total')}[$__rate_interval])",
            "{{instance}} {{generation}}",
        ),
    )
    files = f"{own('process_open_fds')} / {own('process_max_fds')}"
    yield _chart("Open files, of the limit", (files, _BY_INSTANCE), unit="percentunit")
    zookeeper = (_quantile(0.99, "zookeeper_request_seconds", "op"), "{{op}}")
    yield _chart("Time of a ZooKeeper request, p99", zookeeper, unit="s")
    session = (_series("zookeeper_connected"), _BY_INSTANCE)
    yield _chart("Connected to ZooKeeper", session)


_ROWS = (_state, _traffic, _requests, _replication, _storage, _clients, _groups, _process)


def _variable(name: str, series: str) -> dict[str, Any]:
    query = f"label_values({series}, {name})"
    return {
        "name": name,
        "type": "query",
        "datasource": _DATASOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    panels = []
    y = 0
    for row in _ROWS:
        title = row.__name__.strip("_").capitalize()
        panels.append(
            {"type": "row", "title": title, "gridPos": {"x": 0, "y": y, "w": _WIDTH, "h": 1}}
        )
        x, y = 0, y + 1
        height = 0
        for panel in row():
            place = panel["gridPos"]
            if x + place["w"] > _WIDTH:
                x, y = 0, y + height
            place |= {"x": x, "y": y}
            x, height = x + place["w"], place["h"]
            panels.append(panel)
        y += height
    return {
        "title": "pylogctl",
        "uid": "pylogctl",
        "tags": ["pylogctl"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                _variable("cluster", "pylogctl_broker_state"),
                _variable("instance", f"pylogctl_broker_state{{{_CLUSTER}}}"),
                _variable("topic", f"pylogctl_broker_received_bytes_total{{{_CLUSTER}}}"),
                _variable("group", f"pylogctl_group_status{{{_CLUSTER}}}"),
            ]
        },
        "panels": [panel | {"id": number} for number, panel in enumerate(panels, 1)],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(dashboard(), indent=1) + "\n", encoding="utf-8")

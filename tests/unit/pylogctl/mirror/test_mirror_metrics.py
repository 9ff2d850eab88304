"""The figures of a mirror as Prometheus reads them, and the server that gives them."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest

from broker.tools.mirror import RouteStatus
from broker.topic import TopicPartition
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.mirror.metrics import exposition, served_metrics

SOURCE = TopicPartition("t", 3, 0)
ROUTE = RouteStatus(SOURCE, TopicPartition("m.t", 7, 1), 10, 110, 60, 2, "away", 1_500, True)
LABELS = '{topic="t",partition="3-0",target_topic="m.t",target_partition="7-1"}'


def test_exposition_of_a_route_has_its_figures_with_their_kinds() -> None:
    lines = exposition([ROUTE], {SOURCE: 100}).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        f"pylogctl_mirror_messages_total{LABELS} 10",
        f"pylogctl_mirror_bytes_total{LABELS} 110",
        f"pylogctl_mirror_errors_total{LABELS} 2",
        f"pylogctl_mirror_corrupt_messages_total{LABELS} 0",
        f"pylogctl_mirror_failing{LABELS} 1",
        f"pylogctl_mirror_last_error_timestamp_seconds{LABELS} 1.5",
        f"pylogctl_mirror_offset_bytes{LABELS} 60",
        f"pylogctl_mirror_end_offset_bytes{LABELS} 100",
        f"pylogctl_mirror_lag_bytes{LABELS} 40",
    ]
    assert "# TYPE pylogctl_mirror_messages_total counter" in lines
    assert "# TYPE pylogctl_mirror_lag_bytes gauge" in lines


def test_exposition_leaves_out_what_is_not_known() -> None:
    text = exposition([RouteStatus(SOURCE)], {})
    assert 'pylogctl_mirror_messages_total{topic="t",partition="3-0"} 0' in text
    for name in ("offset_bytes", "end_offset_bytes", "lag_bytes", "last_error_timestamp_seconds"):
        assert f"pylogctl_mirror_{name}{{" not in text


def test_exposition_escapes_what_would_end_a_label() -> None:
    route = RouteStatus(TopicPartition('a"b\\c\n', 0, 0))
    assert 'topic="a\\"b\\\\c\\n"' in exposition([route], {})


def test_metrics_are_served_as_they_are_at_each_request() -> None:
    texts = iter(["first\n", "second\n"])
    with served_metrics(0, lambda: next(texts)) as address:
        assert address is not None
        for expected in (b"first\n", b"second\n"):
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                assert answer.read() == expected
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}/more", timeout=60)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=60)


def test_metrics_without_a_port_are_not_served() -> None:
    with served_metrics(None, lambda: "") as address:
        assert address is None


def test_metrics_on_a_port_that_is_taken_say_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        serving = served_metrics(port, lambda: "")
        with pytest.raises(CliError, match=f"cannot serve metrics on 127.0.0.1:{port}") as raised:
            serving.__enter__()
    assert raised.value.status is ExitStatus.CONFLICT
    assert raised.value.hints == ("--metrics 0 picks a free port",)

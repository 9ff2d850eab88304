"""Metrics of a running mirror in Prometheus' text format, and the HTTP server that serves them.

Source: Prometheus, "Exposition formats", text version 0.0.4.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from broker.client.list_offsets import OffsetLister
from broker.errors import BrokerError
from broker.metrics import Metric, counter, gauge
from broker.tools.mirror import RouteStatus
from broker.topic import TopicPartition
from pylogctl.cli.connections import Side
from pylogctl.cli.errors import CliError, ExitStatus

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HOST = "127.0.0.1"

Ends = Mapping[TopicPartition, int]  # latest offsets; unreachable brokers' are missing


class _Route(NamedTuple):
    status: RouteStatus
    ends: Ends


_METRICS: tuple[Metric[_Route], ...] = (
    counter("pylogctl_mirror_messages_total", lambda it: it.status.message_count,
        "Messages that the target has acknowledged."),
    counter("pylogctl_mirror_bytes_total", lambda it: it.status.size_bytes,
        "What they take in a log."),
    counter("pylogctl_mirror_errors_total", lambda it: it.status.error_count,
        "How often something went wrong."),
    counter("pylogctl_mirror_corrupt_messages_total", lambda it: it.status.corrupt_count,
        "Corrupt messages that were left out."),
    gauge("pylogctl_mirror_failing", lambda it: int(it.status.is_failing),
        "1 if nothing was acknowledged since something went wrong."),
    gauge("pylogctl_mirror_last_error_timestamp_seconds",
        lambda it: None if it.status.error_ms is None else it.status.error_ms / 1000,
        "When something went wrong last."),
    gauge("pylogctl_mirror_offset_bytes", lambda it: it.status.next_offset,
        "Offset of the source up to which this mirror has mirrored."),
    gauge("pylogctl_mirror_end_offset_bytes", lambda it: it.ends.get(it.status.source),
        "Offset of the source after its last message."),
    gauge("pylogctl_mirror_lag_bytes", lambda it: _lag_bytes(it.status, it.ends),
        "Bytes of the source that are not mirrored yet."),
)  # fmt: skip


def _lag_bytes(route: RouteStatus, ends: Ends) -> int | None:
    if route.next_offset is None or route.source not in ends:
        return None
    return max(0, ends[route.source] - route.next_offset)


def exposition(routes: Sequence[RouteStatus], ends: Ends) -> str:
    """Return the metrics of a mirror's routes in Prometheus' format; `ends` are of the sources."""
    lines = []
    for metric in _METRICS:
        lines += [f"# HELP {metric.name} {metric.meaning}", f"# TYPE {metric.name} {metric.kind}"]
        for route in routes:
            value = metric.read(_Route(route, ends))
            if value is not None:
                lines.append(f"{metric.name}{{{_labels(route)}}} {value}")
    return "".join(f"{line}\n" for line in lines)


def _labels(route: RouteStatus) -> str:
    labels = {"topic": route.source.topic, "partition": route.source.name}
    if route.target is not None:
        labels |= {"target_topic": route.target.topic, "target_partition": route.target.name}
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def source_ends(side: Side, routes: Sequence[RouteStatus]) -> Ends:
    """Return latest offsets of the sources."""
    ends = {}
    silent: set[int] = set()
    with OffsetLister(side.cluster, side.connect) as offsets:
        for route in routes:
            if route.source.home not in silent:
                try:
                    ends[route.source] = offsets.latest(route.source)
                except BrokerError:
                    silent.add(route.source.home)
    return ends


@contextmanager
def served_metrics(port: int | None, write: Callable[[], str]) -> Iterator[str | None]:
    """Serve metrics on this machine until the end of a block, and give the address.

    Args:
        port: 0 for any free one, None for no server, which gives None.
        write: returns the metrics; called by other threads.
    """
    if port is None:
        yield None
        return
    try:
        server = _make_server(port, write)
    except OSError as error:
        raise CliError(
            ExitStatus.CONFLICT,
            f"cannot serve metrics on {_HOST}:{port}: {(error.strerror or str(error)).lower()}",
            hints=["--metrics 0 picks a free port"],
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{_HOST}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _make_server(port: int, write: Callable[[], str]) -> ThreadingHTTPServer:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # late: seldom asked for

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path not in ("/", "/metrics"):
                self.send_error(404, "only /metrics is here")
                return
            body = write().encode()
            self.send_response(200)
            self.send_header("Content-Type", _CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log no requests."""

    return ThreadingHTTPServer((_HOST, port), Handler)

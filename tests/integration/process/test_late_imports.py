"""A broker's threads import nothing: by then the process may have no descriptor for a file."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import pytest

from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import ShutdownRequest
from broker.protocol.message_set import build_set
from broker.protocol.requests import FetchRequest
from tests.integration.broker.server.peer import extension_frame, publish_request
from tests.integration.process.conftest import ProcessFactory
from tests.integration.replication.conftest import StartCluster, start_cluster
from tests.support.command_line import Invoke, invoke
from tests.unit.broker.protocol.test_golden_messages import REQUESTS

__all__ = ["invoke", "start_cluster"]

ONE = encode([b"x" * 50])


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where brokers note what their threads import."""
    watch = Path(__file__).parents[2] / "support" / "import_watch"
    monkeypatch.setenv("PYTHONPATH", str(watch))
    monkeypatch.setenv("IMPORT_WATCH", str(tmp_path / "imports"))
    (tmp_path / "imports").touch()
    return tmp_path / "imports"


def assert_none(imports: Path) -> None:
    assert set(imports.read_text().splitlines()) == {"watched"}


@pytest.mark.parametrize("options", [(), ("--metrics-port", "0")], ids=["plain", "metrics"])
def test_threads_when_every_request_comes_then_none_imports_a_module(
    start_process: ProcessFactory, imports: Path, options: tuple[str, ...]
) -> None:
    process = start_process(*options)
    with process.peer() as peer:
        for codec in Codec:
            peer.send_extension(publish_request("events", build_set([b"a", b"b"], codec)))
            peer.receive()
        peer.produce("events", ONE)
        peer.read("events", 0)
        peer.read_filtered("events", 0, b"x+")
        peer.fetch("events", 0)
        peer.multifetch(FetchRequest("events", 0, 0, 1000))
        peer.offsets("events", -1)
        peer.status()
    for request in REQUESTS:
        if not isinstance(request, ShutdownRequest):
            with process.peer() as peer:  # it may be closed
                peer.send_bytes(extension_frame(request))
                assert peer.has_answer(60)
    for line in process.log.read_text().splitlines():
        if "metrics at" in line:
            with urlopen(line.split()[-1]) as page:
                assert page.read()
    with process.peer() as peer:
        peer.send_extension(ShutdownRequest(force=True))
    assert process.wait() == 0
    assert_none(imports)


@pytest.mark.zookeeper
@pytest.mark.closed_only
def test_threads_when_a_closed_cluster_works_then_none_imports_a_module(
    start_cluster: StartCluster, invoke: Invoke, imports: Path
) -> None:
    cluster = start_cluster(2)
    at = ("-Z", cluster.zookeeper)
    assert invoke("topic", "create", "orders", "--replication-factor", "2", *at).status == 0
    assert invoke("produce", "orders", "-z", "zstd", *at, stdin=b"x\n").status == 0
    words = ("consume", "orders", "--group", "g", "--from-beginning", "-n", "1", *at)
    assert invoke(*words).stdout == b"x\n"
    assert invoke("cluster", "health", *at).status == 0
    cluster.stop(1)
    cluster.stop(0)
    assert_none(imports)

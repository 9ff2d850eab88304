"""The commands of `pylogctl zk` that search, watch and examine, on a real server."""

from __future__ import annotations

import json
import signal
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread

import pytest

from broker.zk.health import server_health
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Spawn, first_note, without_waits

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def registry(session: Session) -> None:
    """What a broker and a member of Kafka 0.7 write, and nodes of ours."""
    for path, value in {
        "/brokers/topics/orders": b"",
        "/consumers/billing/offsets/orders/0-0": b"4096",
        "/replicated/topics/t/partitions/1-0/state": b'{"version":1,"leader":2,"leader_epoch":3,'
        b'"isr":[2,1],"controller_epoch":4}',
    }.items():
        session.create(path, value)
    for path, value in {
        "/brokers/ids/0": b"box-17-1763625600000:127.0.0.1:9092",
        "/brokers/topics/orders/0": b"2",
        "/consumers/billing/ids/billing_box-1": b'{ "orders": 2 }',
        "/consumers/billing/owners/orders/0-0": b"billing_box-1-0",
        "/controller": b'{"version": 1, "brokerid": 0}',
    }.items():
        session.create(path, value, ephemeral=True)


@pytest.mark.usefixtures("registry")
def test_known_nodes_have_their_fields_in_json(invoke: Invoke, zookeeper: str) -> None:
    text = invoke("zk", "tree", "--output", "jsonl", "-Z", zookeeper).text
    found = {one["path"]: one["decoded"] for one in map(json.loads, text.splitlines())}
    assert {path: fields for path, fields in found.items() if fields} == {
        "/brokers/ids/0": {
            "kind": "broker", "host": "127.0.0.1", "port": 9092, "creator": "box-17-1763625600000",
        },
        "/brokers/topics/orders/0": {"kind": "partition count", "partitions": 2},
        "/consumers/billing/ids/billing_box-1": {
            "kind": "member", "topics": {"orders": 2}, "is_kafka07": True,
        },
        "/consumers/billing/offsets/orders/0-0": {"kind": "offset", "offset": 4096},
        "/consumers/billing/owners/orders/0-0": {"kind": "owner", "owner": "billing_box-1-0"},
        "/controller": {"kind": "controller", "brokerid": 0},
        "/replicated/topics/t/partitions/1-0/state": {
            "kind": "partition state", "leader": 2, "leader_epoch": 3, "isr": [2, 1],
            "controller_epoch": 4,
        },
    }  # fmt: skip


@pytest.mark.usefixtures("registry")
def test_find_matches_paths_and_values(invoke: Invoke, zookeeper: str) -> None:
    def found(*words: str) -> list[str]:
        return invoke("zk", "find", *words, "--output", "name", "-Z", zookeeper).text.splitlines()

    assert found("/", r"orders/0-\d$") == [
        "/consumers/billing/offsets/orders/0-0",
        "/consumers/billing/owners/orders/0-0",
    ]
    assert found("/brokers", "box-17") == []
    assert found("/brokers", "box-17", "--data") == ["/brokers/ids/0"]


def test_find_of_no_regular_expression_is_a_usage_error(invoke: Invoke) -> None:
    result = invoke("zk", "find", "/", "(")
    assert result.status == ExitStatus.USAGE
    assert "'(' is no regular expression" in result.stderr


@pytest.mark.usefixtures("registry")
def test_sessions_tell_who_is_registered_by_which(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    with Session(zookeeper) as other:
        other.create("/brokers/ids/7", b"x:h:1", ephemeral=True)
        text = invoke("zk", "sessions", "--output", "jsonl", "-Z", zookeeper).text
        rows = {one["session"]: one for one in map(json.loads, text.splitlines())}
        assert session.session_id and other.session_id
        mine = rows.pop(f"0x{session.session_id:x}")
        assert (mine["nodes"], mine["brokers"]) == (5, ["0"])
        assert mine["members"] == ["billing/billing_box-1"]
        (others,) = rows.values()
        assert (others["session"], others["brokers"]) == (f"0x{other.session_id:x}", ["7"])


def test_health_says_which_words_were_answered(invoke: Invoke, zookeeper: str) -> None:
    (row,) = json.loads(invoke("zk", "health", "--output", "json", "-Z", zookeeper).text)["data"]
    assert (row["state"], row["mode"]) == ("ok", "standalone")
    assert row["answered_by"] == ["ruok", "srvr"]
    assert row["nodes"] > 0


def test_health_of_servers_that_are_away_is_unreachable(invoke: Invoke, zookeeper: str) -> None:
    result = invoke("zk", "health", "-Z", "127.0.0.1:1")
    assert result.status == ExitStatus.UNREACHABLE
    assert "127.0.0.1:1: connection refused" in result.stderr
    partly = invoke("zk", "health", "-Z", f"127.0.0.1:1,{zookeeper}")
    assert partly.status == ExitStatus.PARTIAL


class _AdminServer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        page = {"command": "monitor", "error": None, "server_state": "leader", "znode_count": 5}
        self.wfile.write(json.dumps(page).encode() if self.path == "/commands/monitor" else b"?")

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


class _WithoutWords(BaseRequestHandler):
    def handle(self) -> None:
        word = self.request.recv(4)
        self.request.sendall(word + b" is not executed because it is not in the whitelist.\n")


def test_health_asks_the_admin_server_where_no_word_is_allowed() -> None:
    with (
        HTTPServer(("127.0.0.1", 0), _AdminServer) as admin,
        TCPServer(("127.0.0.1", 0), _WithoutWords) as words,
    ):
        for server in (admin, words):
            Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        found = server_health(*words.server_address, admin_port=admin.server_port)
        nothing = server_health(*words.server_address, admin_port=1)
        admin.shutdown()
        words.shutdown()
    assert found.answered_by == (f"admin server at port {admin.server_port}",)
    assert (found.problem, found.facts["server_state"]) == (None, "leader")
    assert (nothing.answered_by, nothing.facts) == ((), {})
    assert nothing.problem


def test_watch_writes_a_line_for_each_change_until_it_is_interrupted(
    spawn: Spawn, zookeeper: str, session: Session
) -> None:
    session.create("/w/old", b"1")
    with spawn("zk", "watch", "-R", "/w", "--output", "jsonl", "-Z", zookeeper) as process:
        assert process.stdout is not None
        assert first_note(process) == "watching 2 nodes\n"

        def event() -> tuple[str, str, str | None]:
            assert process.stdout is not None
            found = json.loads(process.stdout.readline())
            return found["event"], found["path"], found["value"]

        session.create("/w/new/below", b"2")
        assert event() == ("created", "/w/new", "")
        assert event() == ("created", "/w/new/below", "2")
        session.set("/w/new/below", b"3")
        assert event() == ("changed", "/w/new/below", "3")
        session.set("/w/new/below", b"4")
        assert event() == ("changed", "/w/new/below", "4")
        session.delete("/w/new/below")
        assert event() == ("deleted", "/w/new/below", None)
        session.create("/w/new/below", b"5")
        assert event() == ("created", "/w/new/below", "5")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, without_waits(stderr)) == (0, b"", "")


def test_watch_without_r_tells_of_children_only(
    spawn: Spawn, zookeeper: str, session: Session
) -> None:
    session.create("/w/child", b"1")
    with spawn("zk", "watch", "/w", "-Z", zookeeper) as process:
        assert process.stdout is not None
        assert first_note(process) == "watching 2 nodes\n"
        session.create("/w/child/grandchild", b"unseen")
        session.delete("/w/child/grandchild")
        session.create("/w/other", b"2")
        assert process.stdout.readline().split()[1:] == [b"created", b"/w/other", b"2"]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0

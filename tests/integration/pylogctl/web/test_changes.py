"""Changes by the API, on brokers with a real ZooKeeper; and who may make them."""

from __future__ import annotations

import base64
import json
import logging
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any

import pytest

from pylogctl import Client, Partial
from pylogctl.testing import ephemeral_cluster
from pylogctl.web.app import ROUTES
from tests.support.waiting import wait_until
from tests.support.web_site import Served, served

API = "/api/v1"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with ephemeral_cluster(2) as cluster, cluster.connect() as found:
        yield found


@pytest.fixture(scope="module")
def site(client: Client) -> Iterator[Served]:
    with served(client, allow_changes=True) as found:
        yield found


def call(
    site: Served, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """Return status, document and headers of a response to a program."""
    data = None if body is None else json.dumps(body).encode()
    given = {"Content-Type": "application/json"} if body is not None else {}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(site.url + path, data, given, method=method)
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return response.status, json.loads(response.read() or b"null"), dict(response.headers)


def test_topic_when_created_changed_and_deleted_then_brokers_have_it_so(
    site: Served, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    new = {"name": "made", "partitions": 2, "replicas": 2, "settings": {"flush.messages": "7"}}
    status, found, _ = call(site, "POST", f"{API}/topics", {**new, "dry_run": True})
    assert (status, found["partitions"]) == (200, 2), found
    assert "made" not in [one.name for one in client.topics()]
    status, found, headers = call(site, "POST", f"{API}/topics", new)
    assert (status, headers["location"]) == (201, f"{API}/topics/made"), found
    assert call(site, "POST", f"{API}/topics", new)[1]["code"] == "TOPIC_EXISTS"

    _, _, headers = call(site, "GET", f"{API}/topics/made")
    etag = headers["etag"]
    change = {"partitions": 3, "settings": {"flush.messages": None, "retention.ms": "60000"}}
    with caplog.at_level(logging.WARNING, "pylogctl.web"):
        status, found, headers = call(site, "PATCH", f"{API}/topics/made", change, If_Match=etag)
    assert (status, found["topic"]["partitions"]) == (200, 3), found
    assert {one["name"] for one in found["settings"]} == {"flush.messages", "retention.ms"}
    assert re.search(r"anonymous request \w+: change topic 'made'", caplog.text)
    assert call(site, "PATCH", f"{API}/topics/made", change, If_Match=etag)[0] == 412
    assert call(site, "GET", f"{API}/topics/made")[2]["etag"] == headers["etag"]

    status, found, _ = call(site, "DELETE", f"{API}/topics/made?dry_run=true")
    assert (status, found["partitions"]) == (200, 3), found
    assert call(site, "DELETE", f"{API}/topics/made")[0] == 200
    wait_until(lambda: "made" not in [one.name for one in client.topics()], "deleted")
    assert call(site, "DELETE", f"{API}/topics/made")[0] == 404


def test_messages_when_sent_then_each_tells_where_it_is_or_why_not(
    site: Served, client: Client
) -> None:
    client.create_topic("sent", partitions=2)
    (first, *_) = client.describe("sent")
    items = [
        {"value": "text", "partition": first.partition.name},
        {"value": base64.b64encode(b"\xff\x00").decode(), "encoding": "base64", "key": "k"},
        {"value": "lost", "partition": "9-9"},
    ]
    status, found, _ = call(site, "POST", f"{API}/topics/sent/messages", {"items": items})
    assert (status, found["errors"]) == (200, True)
    assert [bool(one["problem"]) for one in found["items"]] == [False, False, True]
    values = {message.value for message in client.read("sent")}
    assert values == {b"text", b"\xff\x00"}
    path = f"{API}/topics/absent/messages"
    assert call(site, "POST", path, {"items": [{"value": "x"}]})[0] == 404
    assert "absent" not in [one.name for one in client.topics()]
    wrong = {"items": [{"value": "!", "encoding": "base64"}]}
    assert call(site, "POST", f"{API}/topics/sent/messages", wrong)[0] == 422


def test_group_when_reset_by_plan_then_it_moves_and_undo_moves_it_back(
    site: Served, client: Client
) -> None:
    client.create_topic("read")
    client.send_many("read", ["a", "b", "c"])
    start, end = client.offsets("read", "start"), client.offsets("read", "end")
    wait_until(lambda: imported(client, end), "a group")
    plans = f"{API}/groups/readers/reset-plans"
    status, plan, headers = call(site, "POST", plans, {"to": "start"})
    assert (status, plan["state"]) == (201, "planned"), plan
    assert [(one["before"], one["after"]) for one in plan["items"]] == [
        (end[one], start[one]) for one in end
    ]
    assert client.offsets_of("readers") == end
    path = headers["location"]
    status, plan, _ = call(site, "POST", f"{path}/apply", {})
    assert (status, plan["state"]) == (200, "applied"), plan
    assert client.offsets_of("readers") == start
    assert call(site, "POST", f"{path}/apply", {})[0] == 409
    status, plan, _ = call(site, "POST", f"{path}/undo", {})
    assert (status, plan["state"]) == (200, "undone"), plan
    assert client.offsets_of("readers") == end

    path = call(site, "POST", plans, {"to": "start"})[2]["location"]
    client.reset("readers", to="-1")
    status, problem, _ = call(site, "POST", f"{path}/apply", {})
    assert (status, problem["code"]) == (409, "MOVED")
    assert call(site, "POST", f"{plans}/none/apply", {})[0] == 404
    assert call(site, "POST", plans, {"to": "start", "shift": "1"})[0] == 422


def imported(client: Client, offsets: dict[Any, int]) -> bool:
    """Import offsets, unless ZooKeeper does not know the new topic yet."""
    try:
        client.import_offsets("readers", offsets)
    except Partial:
        return False
    return True


def test_every_route_that_changes_when_read_only_then_it_is_refused(client: Client) -> None:
    before = client.topics()
    with served(client, allow_changes=False) as site:
        routes = [one for one in ROUTES if one.changes]
        assert len(routes) >= 7
        for route in routes:
            path = re.sub(r"\{\w+\}", "x", route.path)
            status, problem, _ = call(site, route.method, path, {"name": "x"})
            code = problem.get("code", problem.get("error_code"))  # as Confluent's clients know it
            assert (status, code) in ((403, "READ_ONLY"), (403, 403)), route
        document = call(site, "GET", f"{API}/openapi.json")[1]
        changes = {(one.method.lower(), one.path) for one in routes}
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                is_change = (method, path) in changes or (method, f"{API}{path}") in changes
                assert operation["x-changes"] == is_change, path
    assert client.topics() == before
    assert {one.path for one in ROUTES if not one.changes and one.method != "GET"} == {
        "/subjects/{subject}",
        "/compatibility/subjects/{subject}/versions",
        "/compatibility/subjects/{subject}/versions/{version}",
    }  # they ask about the schema that they carry


def session(site: Served) -> dict[str, str]:
    """Return the headers of a browser that has loaded a page."""
    request = urllib.request.Request(f"{site.url}/", headers={"Accept": "text/html"})
    with urllib.request.urlopen(request) as response:
        token = re.search(r'name="csrf-token" content="(\w+)"', response.read().decode())
        cookie = SimpleCookie(response.headers["Set-Cookie"])["pylogctl_session"]
    assert token is not None
    assert cookie["samesite"] == "Strict"
    assert cookie["httponly"]
    return {
        "Cookie": f"pylogctl_session={cookie.value}",
        "X-CSRF-Token": token[1],
        "Origin": site.url,
        "Sec-Fetch-Site": "same-origin",
    }


def test_browser_when_it_changes_something_then_only_by_a_script_of_the_page(
    site: Served, client: Client
) -> None:
    own, other = session(site), session(site)
    path, body = f"{API}/topics", {"name": "by-browser", "dry_run": True}
    assert call(site, "POST", path, body, **own)[0] == 200
    for changed in (
        {"X-CSRF-Token": other["X-CSRF-Token"]},
        {"X-CSRF-Token": ""},
        {"Cookie": "a=b"},
        {"Origin": "null"},
        {"Origin": "http://evil.test"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ):
        assert call(site, "POST", path, body, **{**own, **changed})[0] == 403, changed
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        headers = {**own, "Content-Type": kind}
        assert call(site, "POST", path, body, **headers)[0] == 415, kind
    assert "by-browser" not in [one.name for one in client.topics()]

from __future__ import annotations

import html
import json
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from pylogctl.testing import Broker
from pylogctl.web import api, messages
from pylogctl.web.messages import PageBudget
from pylogctl.web.problems import ProblemError
from tests.support.waiting import wait_until
from tests.support.web_site import HOSTILE, Served, served, served_site

API = "/api/v1"


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with served_site() as found:
        yield found


def get(site: Served, path: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
    """Return status, document (or bytes) and headers of a response."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"{site.url}{API}{path}", headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        data: Any = response.read()
        if "json" in response.headers.get("Content-Type", ""):
            data = json.loads(data)
        return response.status, data, dict(response.headers)


@pytest.mark.parametrize(
    "path",
    [
        "/health/live",
        "/cluster",
        "/brokers",
        "/brokers/0",
        "/brokers/0/settings",
        "/topics",
        "/topics/orders",
        "/topics/orders/settings",
        "/topics/orders/partitions",
        "/topics/orders/messages",
        "/groups",
        "/groups/billing",
        "/groups/billing/lag?window=60",
        "/openapi.json",
    ],
)
def test_document_when_read_then_it_is_json(site: Served, path: str) -> None:
    status, document, _ = get(site, path)
    assert status == 200, document
    assert isinstance(document, dict)


def test_cluster_when_no_broker_responds_then_health_says_so_and_the_server_lives() -> None:
    with Broker() as broker, broker.connect(timeout=2) as client, served(client) as alone:
        assert get(alone, "/health")[0] == 200
        broker.kill()
        status, found, _ = get(alone, "/health")
        assert (status, found["ok"], found["checks"][0]["result"]) == (503, False, "fail")
        status, problem, _ = get(alone, "/topics")
        assert status in (502, 504)
        assert problem["code"] in ("BROKER_UNREACHABLE", "TIMEOUT")
        assert get(alone, "/health/live")[0] == 200


def test_topics_when_paged_then_none_is_lost_or_shown_twice(site: Served) -> None:
    _, found, _ = get(site, "/topics?limit=1")
    names = [one["name"] for one in found["items"]]
    while found["next"]:
        _, found, _ = get(site, f"/topics?limit=1&cursor={found['next']}")
        names += [one["name"] for one in found["items"]]
    assert names == sorted(one.name for one in site.client.topics())
    status, problem, _ = get(site, "/topics?cursor=AAAA")
    assert (status, problem["errors"][0]["pointer"]) == (422, "/cursor")


def test_offsets_when_in_documents_then_they_are_numbers(site: Served) -> None:
    _, found, _ = get(site, "/topics/orders/partitions")
    ends = {one.partition.name: one.end for one in site.client.describe("orders")}
    assert {one["partition"]: one["end"] for one in found["items"]} == ends
    _, found, _ = get(site, "/groups/billing/lag")
    assert {one["end"] for one in found["partitions"]} == set(ends.values())


def test_messages_when_paged_both_ways_then_each_is_shown_once(site: Served) -> None:
    path = "/topics/orders/messages?partition=0-0&limit=50"
    _, page, _ = get(site, f"{path}&from=start&direction=newer")
    forwards = page["items"]
    while page["next"]:
        _, page, _ = get(site, f"{path}&direction=newer&cursor={page['next']}")
        forwards += page["items"]
    assert page["stopped"] == "end"
    backwards: list[Any] = []
    _, page, _ = get(site, path)
    backwards = page["items"]
    while page["previous"]:
        _, page, _ = get(site, f"{path}&cursor={page['previous']}")
        backwards = page["items"] + backwards
    assert forwards == backwards
    assert [json.loads(one["value"])["id"] for one in forwards] == list(range(120))
    assert {one["encoding"] for one in forwards} == {"json"}
    nexts = [one["next_offset"] for one in forwards[:-1]]
    assert nexts == [one["offset"] for one in forwards[1:]]


def test_messages_when_filtered_then_brokers_look_for_the_text(site: Served) -> None:
    _, found, _ = get(site, "/topics/orders/messages?filter=%22id%22%3A%20119")
    assert len(found["items"]) == 2
    assert found["scanned"] > 0


def test_message_when_it_has_an_envelope_then_its_time_and_producer_are_shown(site: Served) -> None:
    with site.client.producer(envelope=True) as producer:
        place = producer.send("enveloped", "a value").result()

    _, found, _ = get(site, "/topics/enveloped/messages?filter=a+value")

    (item,) = found["items"]
    assert item["value"] == "a value"
    assert re.fullmatch(r"20\d\d-.*Z by .+, number 0 of [0-9a-f]{8}", item["sent"])
    for page in ("", f"/partitions/{place.partition.name}/messages/{place.offset}"):
        path = "/topics/enveloped" + (page or "/messages")
        assert item["sent"] in html.unescape(site.get(path)[1])


def test_messages_when_binary_then_they_are_shown_as_hex_and_others_stay(site: Served) -> None:
    _, found, _ = get(site, "/topics/hostile/messages")
    by_encoding = {one["encoding"] for one in found["items"]}
    assert len(found["items"]) == len(HOSTILE)
    assert by_encoding == {"text", "json", "hex"}
    _, found, _ = get(site, "/topics/hostile/messages?as=hex&max_bytes=4")
    values = [bytes.fromhex(one["value"]) for one in found["items"]]
    assert values == [one[:4] for one in HOSTILE.values()]
    assert all(one["truncated"] for one in found["items"])


def test_raw_when_a_range_is_asked_for_then_it_is_given_as_an_attachment(site: Served) -> None:
    _, found, _ = get(site, "/topics/hostile/messages")
    path, value = "", b""
    for one, value in zip(found["items"], HOSTILE.values(), strict=True):
        path = f"/topics/hostile/partitions/0-0/messages/{one['offset']}/raw"
        status, data, headers = get(site, path)
        assert (status, data) == (200, value)
        assert headers["content-disposition"].startswith("attachment")
        assert headers["content-security-policy"].startswith("sandbox")
    assert get(site, path, Range="bytes=1-3")[:2] == (206, value[1:4])
    assert get(site, path, Range="bytes=-2")[:2] == (206, value[-2:])
    assert get(site, path, Range="bytes=9999-")[0] == 416
    assert get(site, f"{path}?inner=7")[0] == 404


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/topics/absent", 404, "TOPIC_NOT_FOUND"),
        ("/topics/absent/messages", 404, "TOPIC_NOT_FOUND"),
        ("/topics/absent/partitions", 404, "TOPIC_NOT_FOUND"),
        ("/groups/absent", 404, "GROUP_NOT_FOUND"),
        ("/brokers/77", 404, "BROKER_NOT_FOUND"),
        ("/brokers/x", 404, "NOT_FOUND"),
        ("/topics/orders/messages?from=nowhere", 422, "USAGE"),
        ("/topics/orders/messages?partition=9-9", 404, "NOT_FOUND"),
        ("/topics/orders/messages?limit=501", 422, "UNPROCESSABLE_ENTITY"),
        ("/topics/orders/messages?limit=x", 422, "UNPROCESSABLE_ENTITY"),
        ("/topics/orders/messages?url=http://evil.test", 422, "UNPROCESSABLE_ENTITY"),
        ("/topics/orders/messages?cursor=zz", 422, "USAGE"),
        ("/topics/orders/partitions/0-0/messages/1/raw", 422, "USAGE"),
        ("/nothing", 404, "NOT_FOUND"),
    ],
)
def test_request_when_wrong_then_a_problem_says_what(
    site: Served, path: str, status: int, code: str
) -> None:
    found, problem, headers = get(site, path)
    assert (found, problem["code"]) == (status, code), problem
    assert headers["content-type"] == "application/problem+json"
    assert problem["detail"]
    assert problem["instance"]


def test_messages_when_there_are_too_many_partitions_for_a_cursor_then_some_have_to_be_chosen(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "MAX_PARTITIONS", 1)
    status, problem, _ = get(site, "/topics/orders/messages")
    assert (status, problem["hints"]) == (422, ["partition=0-0&partition=0-1 chooses some"])
    assert get(site, "/topics/orders/messages?partition=0-0")[0] == 200


def test_messages_when_the_client_has_gone_then_reading_ends(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, ended = threading.Event(), threading.Event()

    def read_long(*_: object, budget: PageBudget, **__: object) -> None:
        started.set()
        wait_until(lambda: bool(budget.spent), "nobody waits for it")
        ended.set()
        raise ProblemError(500, "nobody sees it")

    monkeypatch.setattr(messages, "read_page", read_long)
    monkeypatch.setattr(messages, "PageBudget", lambda: PageBudget(seconds=3600))
    address = urlsplit(site.url)
    with socket.create_connection((address.hostname, address.port), 60) as client:
        head = f"GET {API}/topics/orders/messages HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n"
        client.sendall(head.encode())
        assert started.wait(60)
        assert not ended.is_set()
    assert ended.wait(60)

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest

from broker.api.group_calls import look_at_group
from pylogctl.pytest_plugin import MakeBroker
from pylogctl.testing import memory_cluster
from pylogctl.web.app import ROUTES
from pylogctl.web.messages import cursor_of, parse_cursor
from pylogctl.web.sampler import Point
from tests.support.waiting import wait_until
from tests.support.web_site import HOSTILE, HOSTILE_GROUP, Served, served_site
from tests.support.web_site import served as serve

PAGES = (
    "/",
    "/brokers",
    "/brokers/0",
    "/topics",
    "/topics?q=ord&sort=-in",
    "/topics/orders",
    "/topics/orders/messages",
    "/topics/hostile/messages",
    "/topics/empty/messages",
    "/topics/orders/partitions/0-0/messages/0",
    "/groups",
    "/groups?sort=-lag",
    "/groups/billing",
    f"/groups/{quote(HOSTILE_GROUP, safe='')}",
    "/health",
    "/search?q=b",
    "/nothing",
)


class Markup(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    VOID = ("meta", "link", "input", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with served_site() as served:
        served.site.sampler.look()
        served.site.sampler.look()
        served.site.sampler.look_at_groups()
        yield served


@pytest.mark.parametrize("path", PAGES)
def test_page_is_well_formed_names_its_controls_and_needs_no_inline_code(
    served: Served, path: str
) -> None:
    status, text, _ = served.get(path)
    assert status == (404 if path == "/nothing" else 200)
    page = Markup(text)
    assert page.open == []
    names = [tag for tag, _ in page.elements]
    assert names.count("h1") == 1
    for tag, attributes in page.elements:
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert not (attributes.get("href") or "").lower().startswith("javascript:")
        if tag == "script":
            assert (attributes["src"] or "").startswith("/assets/")
        if tag == "svg":
            assert "aria-label" in attributes or "aria-hidden" in attributes
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_payloads_of_any_bytes_are_shown_as_text(served: Served) -> None:
    _, text, _ = served.get("/topics/hostile/messages")
    page = Markup(text)
    assert [tag for tag, _ in page.elements].count("script") == 1  # the page's own
    assert not any(tag == "img" for tag, _ in page.elements)
    assert "\x00" not in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
    for name in ("script", "svg", "link", "template", "attribute", "json"):
        assert HOSTILE[name].decode() in page.text
    assert "\\u202egnp.exe\\u2066" in page.text
    assert "62 65 66 6f 72 65 00" in page.text  # NUL: shown as hex
    assert "ff fe 3c 62 3e" in page.text
    assert "12345678901234567890.10" in page.text


def test_payloads_are_shown_as_text_also_alone_and_in_each_way(served: Served) -> None:
    for message in served.client.read("hostile"):
        for way in ("auto", "text", "json", "hex"):
            path = f"/topics/hostile/partitions/0-0/messages/{message.offset}"
            status, text, _ = served.get(f"{path}?as={way}")
            page = Markup(text)
            assert status == 200
            assert [tag for tag, _ in page.elements].count("script") == 1
            assert page.open == []


def test_download_has_the_bytes_as_an_attachment(served: Served) -> None:
    status, text, headers = served.get("/api/v1/topics/hostile/partitions/0-0/messages/0/raw")
    assert (status, text) == (200, HOSTILE["script"].decode())
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff"


def test_names_of_groups_are_shown_as_text(served: Served) -> None:
    for path in ("/groups", "/topics/orders", "/search?q=svg", "/search?q=%3Cscript%3E"):
        page = Markup(served.get(path)[1])
        assert not any("onload" in attributes for _, attributes in page.elements)
        assert [tag for tag, _ in page.elements].count("script") == 1
    assert HOSTILE_GROUP in Markup(served.get("/groups")[1]).text


def test_group_has_the_lag_of_each_topic(served: Served) -> None:
    _, text, _ = served.get(f"/groups/{quote(HOSTILE_GROUP, safe='')}")
    size = sum(10 + len(value) for value in HOSTILE.values())
    assert re.search(rf'>hostile</a></th>.*data-label="Lag">{size} B</td>', text)
    assert re.search(r'>orders</a></th>.*data-label="Lag">0 B</td>', text)


def test_messages_page_back_to_the_first_and_on_to_the_last_without_a_gap(served: Served) -> None:
    def walk(path: str, way: str) -> list[str]:
        seen: list[str] = []
        while path:
            _, text, _ = served.get(path)
            rows = re.findall(r'<th scope="row"><a href="([^"]*)"', text)
            seen = [*seen, *rows] if way == "Older" else [*rows, *seen]
            found = re.search(rf'href="([^"]*)">{way}</a>', text)
            path = html.unescape(found[1]) if found else ""
        return seen

    path = "/topics/orders/messages?limit=50&partition=0-1"
    older = walk(path, "Older")
    assert older == sorted(older, key=lambda url: -int(url.rpartition("/")[2]))  # newest first
    assert len(older) == len(set(older)) == 120
    assert walk(f"{path}&from=start", "Newer") == older
    both = walk("/topics/orders/messages?limit=50&from=start", "Newer")
    assert len(both) == len(set(both)) == 240


def test_filter_counts_what_it_finds_and_stays_in_the_links(served: Served) -> None:
    _, text, _ = served.get("/topics/orders/messages?from=start&limit=5&filter=%22id%22%3A+7")
    assert text.count('<th scope="row">') == 5
    assert "?filter=%22id%22%3A+7&amp;limit=5&amp;after=" in text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/topics/no-such", 404, "topic 'no-such' not found"),
        ("/topics/orders/messages?partition=9-9", 404, "'orders' has no partition '9-9'"),
        ("/topics/orders/messages?from=sometime", 422, "not an offset: 'sometime'"),
        ("/topics/orders/messages?from=1", 422, "1 is not a message boundary"),
        ("/topics/orders/messages?after=x", 422, "not a position: 'x'"),
        ("/topics/orders/messages?limit=0", 422, "not a number of messages from 1 to 500: '0'"),
        ("/topics/orders/messages?as=xml", 422, "messages cannot be shown as 'xml'"),
        ("/topics/orders/partitions/x/messages/0", 404, "there is no message at 0 of orders x"),
        ("/topics?sort=colour", 422, "the list cannot be sorted by 'colour'"),
        ("/groups/no-such", 404, "group 'no-such' not found"),
        ("/brokers/77", 404, "broker '77' not found"),
        ("/assets/none.js", 404, "there is no such asset"),
    ],
)
def test_error_is_a_page_that_says_what_is_wrong(
    served: Served, path: str, status: int, said: str
) -> None:
    found, text, _ = served.get(path)
    assert found == status
    assert said in html.unescape(text)


def test_assets_are_immutable_under_the_hash_of_their_content(served: Served) -> None:
    _, text, _ = served.get("/")
    for path in re.findall(r'"(/assets/[^"]*)"', text):
        status, _, headers = served.get(path)
        assert status == 200
        assert "immutable" in headers["cache-control"]


def test_list_pages_by_the_last_key_so_that_new_rows_shift_nothing(served: Served) -> None:
    _, text, _ = served.get("/topics?after=empty")
    assert re.findall(r'<a href="/topics/([^"]*)">', text) == ["hostile", "orders"]


@pytest.mark.parametrize("text", ["0-0:8192,0-1:77.3", "0:8192,11:77"])
def test_cursor_keeps_places_inside_compressed_sets(text: str) -> None:
    assert cursor_of(parse_cursor("orders", text)) == text


def test_charts_of_a_page_come_alone_up_to_the_last_look(served: Served) -> None:
    for path in ("/", "/topics/orders", "/groups/billing", "/brokers/0"):
        _, text, _ = served.get(path)
        (found,) = (of for tag, of in Markup(text).elements if tag == "live-charts")
        assert found["data-url"]
        served.site.sampler.look()
        served.site.sampler.look_at_groups()
        status, charts, _ = served.get(found["data-url"])
        assert status == 200
        titles = re.findall(r"<figcaption>([^<]*)", charts)
        assert titles
        assert titles == re.findall(r"<figcaption>([^<]*)", text)
        before = text.partition("<live-charts")[2].partition("</live-charts>")[0]
        assert charts.count('<tr><th scope="row">') > before.count('<tr><th scope="row">')


def test_charts_of_the_cluster_have_the_first_brokers_of_the_last_look_by_number(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        f"broker/{id}/{series}" for id in (1, 10, 11, 2, 9) for series in ("in", "produce_max_ms")
    ]
    sampler = served.site.sampler
    monkeypatch.setattr(sampler, "newest", lambda _: dict.fromkeys(names, 1.0))
    monkeypatch.setattr(sampler, "points", lambda _: [Point(1.0, 1.0), Point(2.0, 1.0)])
    _, text, _ = served.get("/charts?of=cluster")
    slowest = text.partition("Slowest request of a broker")[2]
    assert re.findall(r'<th scope="col"[^>]*>(broker \d+)', slowest) == [
        "broker 1",
        "broker 2",
        "broker 9",
        "broker 10",
    ]


def test_lists_have_100_rows_a_page_and_a_filter_of_those_that_are_not_ok() -> None:
    with memory_cluster(2) as cluster, cluster.connect() as client, serve(client) as served:
        client.create_topic("big", partitions_per_broker=120)
        client.create_topic("fine", partitions=1, brokers=[0])
        cluster.brokers[1].close()
        wait_until(lambda: not client.brokers()[1].is_live, "its deregistration")

        def rows(path: str) -> tuple[list[str], str]:
            _, text, _ = served.get(path)
            found = re.search(r'rel="next" href="([^"]*)"', text)
            table = text.partition("<tbody>")[2].partition("</tbody>")[0]
            names = re.findall(r'<tr><th scope="row">.*?<a href="[^"]*">([^<]*)</a>', table)
            return names, html.unescape(found[1]) if found else ""

        for query, count in (("", 240), ("?path=x", 240), ("?show=not-ok", 120)):
            path, seen, sizes = f"/topics/big{query}", [], []
            while path:
                names, path = rows(path)
                seen += names
                sizes.append(len(names))
            assert sizes == [100] * (count // 100) + [count % 100]
            assert len(set(seen)) == count
            assert {name[0] for name in seen} == ({"1"} if count == 120 else {"0", "1"})
        assert rows("/topics")[0] == ["big", "fine"]
        assert rows("/topics?show=not-ok")[0] == ["big"]
        for path, said in (
            ("/topics?show=not-ok&q=b", ("1 topics that are not ok contain “b”",)),
            (
                "/topics?show=not-ok&q=fine",
                (
                    "0 topics that are not ok contain “fine”",
                    "No topic that is not ok contains “fine”.",
                ),
            ),
            ("/topics?q=none", ("0 topics contain “none”", "No topic contains “none”.")),
            (
                "/groups?show=not-ok&q=x",
                ("0 groups that are not ok contain “x”", "No group that is not ok contains “x”."),
            ),
        ):
            text = served.get(path)[1]
            assert all(one in text for one in said), path
            assert "are ok." not in text


def test_overview_and_group_are_of_one_reading(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = served.client
    asked: list[str] = []

    def noted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **named: Any) -> Any:
            asked.append(name)
            return call(*args, **named)

        return noting

    for name in ("topics", "brokers", "health", "describe_group", "lag"):
        monkeypatch.setattr(client, name, noted(name, getattr(client, name)))
    looking = noted("look_at_group", look_at_group)
    monkeypatch.setattr("pylogctl.web.pages.views.look_at_group", looking)
    for path, reading in (("/", "health"), ("/groups/billing", "look_at_group")):
        asked.clear()
        assert served.get(path)[0] == 200
        assert asked == [reading]


def test_pages_without_zookeeper_say_that_there_are_no_groups(
    pylog_own_broker: MakeBroker,
) -> None:
    with pylog_own_broker().connect() as client, serve(client) as served:
        client.send("orders", "one")
        for path in ("/groups", "/topics/orders"):
            status, text, _ = served.get(path)
            assert status == 200
            assert "Groups are in ZooKeeper, which these brokers do not have." in text


def test_overview_while_no_broker_responds_says_so_soon(pylog_own_broker: MakeBroker) -> None:
    broker = pylog_own_broker()
    with broker.connect(timeout=60) as client, serve(client) as served:
        broker.stop()
        start_s = time.monotonic()
        status, text, _ = served.get("/")
        assert status == 200
        assert time.monotonic() - start_s < 20
        assert ">FAIL</span>" in text
        assert f"cannot reach {broker.address}" in text


def test_pages_when_a_broker_is_gone_then_show_it_in_one_reading() -> None:
    with memory_cluster(2) as cluster, cluster.connect() as client, serve(client) as served:
        client.send("t", "x", partition="1-0")
        cluster.brokers[1].close()
        wait_until(lambda: not client.brokers()[1].is_live, "its deregistration")

        for path in ("/", "/brokers"):
            _, text, _ = served.get(path)
            assert ">FAIL</span> <span>brokers not there, offline" in text, path
            assert re.findall(r'State"><span class="state state-\w+">(\w+)', text) == [
                "running",
                "down",
                *(["offline"] if path == "/" else []),  # the state of the topic
            ], path
            if path == "/":
                assert "<dd>1/2</dd>" in text
            _, values, _ = served.get("/values?key=cluster/state")
            assert f'data-look="{json.loads(values)["cluster/state"]["look"]}"' in text, path
        for path in ("/topics", "/topics/t"):
            assert '<span class="state state-fail">offline</span>' in served.get(path)[1], path
        status, text, _ = served.get("/brokers/1")
        assert (status, "broker 1 is down" in text) == (502, True)


def test_values_have_the_state_of_the_cluster_and_of_groups(served: Served) -> None:
    served.site.sampler.look_at_health()
    _, text, _ = served.get(
        "/values?key=cluster/state&key=group/billing/state&key=group/none/state"
    )
    found = json.loads(text)
    assert found["cluster/state"]["text"] == "all partitions are led and in sync"
    assert found["group/billing/state"]["kind"] == "unknown"
    assert "group/none/state" not in found


def test_messages_when_there_are_too_many_partitions_then_the_page_says_which_are_left_out(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylogctl.web.pages.messages_view._MAX_PARTITIONS", 1)
    text = Markup(served.get("/topics/orders/messages?from=start&limit=200")[1]).text
    assert "first 1 of 2 partitions" in text
    for path in ("/topics/orders/messages?partition=0-1", "/topics/hostile/messages"):
        assert "partitions: choose" not in Markup(served.get(path)[1]).text


def test_hidden_messages_are_behind_no_door(served: Served) -> None:
    served.site.hides_messages = True
    try:
        paths = [
            "/topics/orders/messages",
            "/topics/orders/partitions/0-0/messages/0",
            "/api/v1/topics/orders/messages",
            "/api/v1/topics/orders/messages/live",
            "/api/v1/topics/orders/partitions/0-0/messages/0/raw",
        ]
        assert [served.get(path)[0] for path in paths] == [403] * 5
        assert paths[0] not in served.get("/topics/orders")[1].partition("<h2>")[0]
    finally:
        served.site.hides_messages = False


def test_routes_that_name_messages_can_be_hidden() -> None:
    routes = [one for one in ROUTES if "messages" in one.path and one.method == "GET"]
    assert len(routes) == 5
    assert all(one.shows_messages for one in routes)

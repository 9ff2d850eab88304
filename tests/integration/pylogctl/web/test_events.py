"""Streams of the API, as a browser's EventSource reads them."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from pylogctl.web import events
from tests.support.waiting import wait_until
from tests.support.web_site import Served, served, served_site

API = "/api/v1"


class Event(NamedTuple):
    name: str
    id: str
    data: object


class Stream:
    """An open stream."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def next(self) -> Event:
        """Return the next event; comments and the time to wait are passed over."""
        fields: dict[str, str] = {}
        while line := self.response.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name in ("event", "id", "data"):
                fields[name] = value
            elif not name and "data" in fields:
                data = json.loads(fields["data"])
                return Event(fields.get("event", "message"), fields.get("id", ""), data)
        raise EOFError


@contextmanager
def stream(site: Served, path: str, **headers: str) -> Iterator[Stream]:
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("GET", API + path, headers=given)
        yield Stream(connection.getresponse())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with served_site() as found:
        yield found


def test_live_messages_when_connected_again_then_none_is_missing(site: Served) -> None:
    with stream(site, "/topics/orders/messages/live") as live:
        site.client.send_many("orders", ["one", "two"], partition="0-0")
        site.client.send("orders", "three", partition="0-1")
        found = [live.next() for _ in range(3)]
    assert sorted(one.data["value"] for one in found) == ["one", "three", "two"]  # type: ignore[index]
    assert {one.name for one in found} == {"message"}
    site.client.send("orders", "meanwhile", partition="0-0")
    first = next(one for one in found if one.data["value"] == "one")  # type: ignore[index]
    with stream(site, "/topics/orders/messages/live", Last_Event_ID=first.id) as live:
        values = [live.next().data["value"] for _ in range(3)]  # type: ignore[index]
    assert values[0] == "two" or "three" in values
    assert "meanwhile" in values


def test_live_messages_when_a_partition_is_added_then_it_is_followed_from_its_start(
    site: Served,
) -> None:
    site.client.create_topic("growing", partitions=1)
    with stream(site, "/topics/growing/messages/live") as live:
        site.client.send("growing", "first")
        first = live.next()
        site.client.alter_topic("growing", partitions=2)
        (added,) = {one.partition for one in site.client.describe("growing")} - {
            site.client.describe("growing")[0].partition
        }
        site.client.send("growing", "second", partition=added)
        values = [live.next().data["value"]]  # type: ignore[index]
    with stream(site, "/topics/growing/messages/live", Last_Event_ID=first.id) as live:
        values.append(live.next().data["value"])  # type: ignore[index]

    assert values == ["second", "second"]


def test_live_messages_when_filtered_then_only_those_come(site: Served) -> None:
    with stream(site, "/topics/orders/messages/live?filter=wanted&partition=0-0") as live:
        site.client.send_many("orders", ["a", "b", "wanted", "c"], partition="0-0")
        assert live.next().data["value"] == "wanted"  # type: ignore[index]


def test_live_messages_when_the_client_does_not_read_then_a_gap_tells_how_many(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "BUFFERED", 4)
    with stream(site, "/topics/orders/messages/live?partition=0-0&max_bytes=10") as live:
        # in one batch: the thread that reads adds them all before the loop takes some
        site.client.send_many("orders", [f"{number}" for number in range(5000)], partition="0-0")
        seen, missed = 0, 0
        while seen + missed < 5000:
            event = live.next()
            if event.name == "gap":
                missed += event.data["missed"]  # type: ignore[index]
            else:
                seen += 1
    assert missed
    assert seen + missed == 5000


def test_streams_when_too_many_then_they_are_refused_and_closed_ones_do_not_count(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_STREAMS", 3)

    def status() -> int:
        with stream(site, "/events") as one:
            return one.response.status

    def opens(opened: ExitStack) -> bool:
        return opened.enter_context(stream(site, "/events")).response.status == 200

    with ExitStack() as opened:
        for _ in range(3):
            wait_until(lambda: opens(opened), "streams of other tests have ended")
        assert status() == 429
    wait_until(lambda: status() == 200, "closed streams do not count")


def test_live_messages_when_the_client_has_gone_then_nothing_reads_on(site: Served) -> None:
    with stream(site, "/topics/orders/messages/live") as live:
        site.client.send("orders", "x")
        live.next()
        assert [one for one in threading.enumerate() if one.name == "web-tail"]
    wait_until(
        lambda: not [one for one in threading.enumerate() if one.name == "web-tail"],
        "the thread that reads has ended",
    )


def test_stream_when_the_server_ends_then_it_ends_too(
    site: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as opened:
        with served(site.client) as other:
            live = opened.enter_context(stream(other, "/topics/orders/messages/live"))
            site.client.send("orders", "x")
            live.next()
        with pytest.raises(http.client.IncompleteRead):
            live.response.read()
    assert not caplog.records


def test_values_when_streamed_then_they_are_those_of_the_last_look(site: Served) -> None:
    site.site.sampler.look()
    site.site.sampler.look()
    with stream(site, "/events?topics=orders") as live:
        event = live.next()
    assert event.name == "values"
    assert isinstance(event.data, dict)
    assert "broker/0/connections" in event.data


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/topics/absent/messages/live", 404),
        ("/topics/orders/messages/live?partition=9-9", 404),
        ("/events?unknown=1", 422),
    ],
)
def test_stream_when_wrong_then_a_problem_says_so(site: Served, path: str, status: int) -> None:
    with stream(site, path) as found:
        assert found.response.status == status
        assert found.response.headers["content-type"] == "application/problem+json"

"""The message browser: pages of messages in both directions, and single messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from starlette.responses import Response

from broker.api.client import Client
from broker.errors import ArgumentError
from broker.topic import MessagePosition, TopicPartition
from broker.units import counted, format_size
from pylogctl.web import messages as paging
from pylogctl.web.pages.payloads import SHOWN_BYTES, WHOLE_BYTES, As, Payload, payload_of
from pylogctl.web.pages.rendering import link, path_of, topic_page
from pylogctl.web.problems import ProblemError
from pylogctl.web.site import Call, WebRoutes

ROUTES = WebRoutes()
_LIMIT = 50
_MAX_PARTITIONS = 200  # more do not fit into an address
_WAYS: tuple[As, ...] = ("auto", "text", "json", "hex")
_STOPPED = {
    "limit": "",
    "end": "",
    "bytes": "Stopped here: enough was read for one page. There may be more behind it.",
    "time": "Stopped here: reading took long enough for one page. There may be more behind it.",
}


def _left_out(every: list[TopicPartition]) -> str:
    if len(every) <= _MAX_PARTITIONS:
        return ""
    return (
        f"These are of the first {_MAX_PARTITIONS} of {len(every)} partitions: choose one of them "
        "for its messages."
    )


@ROUTES.at("/topics/{topic}/messages", shows_messages=True)
async def show_messages(call: Call, topic: str) -> Response:
    """Messages of a topic, before or from where the query says; the newest without a word."""
    query = call.query_params
    chosen, place = query.get("partition", ""), query.get("from", "")
    contains, wanted = query.get("filter", ""), _way_of(call)
    limit = _limit_of(query.get("limit", str(_LIMIT)))
    before, after = query.get("before", ""), query.get("after", "")

    def read(client: Client) -> tuple[list[TopicPartition], paging.MessagePage]:
        every = sorted(one.partition for one in client.describe(topic))
        if before or after:
            positions: paging.Positions = paging.parse_cursor(topic, before or after)
        else:
            some = paging.chosen_of(topic, every, [chosen] if chosen else [])[:_MAX_PARTITIONS]
            positions = paging.start_positions(client, topic, some, place.strip() or "end")
        is_backward = bool(before) or not (after or place.strip() not in ("", "end"))
        found = paging.read_page(
            client, topic, positions, is_backward=is_backward, limit=limit, contains=contains
        )
        if wanted == "auto":
            decoder = paging.ValueDecoder(client)
            found = found._replace(rows=[decoder.shown(one) for one in found.rows])
        return every, found

    every, found = await call.scan(read)
    url = path_of("topics", topic, "messages")
    kept: dict[str, Any] = {"partition": chosen, "filter": contains, "limit": limit}
    kept["as"] = "" if wanted == "auto" else wanted
    live_way = "decoded" if wanted == "auto" else wanted  # the API's that shows the same
    return topic_page(
        call,
        "messages.html",
        topic,
        tab="messages",
        names=[one.name for one in every],
        partition=chosen,
        start=place,
        filter=contains,
        wanted=wanted,
        limit=limit,
        rows=[_row(one, wanted) for one in _newest_first(found.rows)],
        summary=_summary(found),
        problems=list(filter(None, (_STOPPED[found.stopped], "" if chosen else _left_out(every)))),
        is_by_time="@" in place,
        nothing=_nothing(found, contains),
        older_url=link(url, **kept, before=paging.cursor_of(found.start))
        if found.has_older
        else "",
        newer_url=link(url, **kept, after=paging.cursor_of(found.end)) if found.has_newer else "",
        live_url=link(f"/api/v1{url}/live", partition=chosen, filter=contains, **{"as": live_way}),
        json_url=link(
            f"/api/v1{url}",
            filter=contains,
            limit=limit,
            max_bytes=65536,
            direction="newer",
            cursor=paging.cursor_of(found.start),
        ),
    )


def _newest_first(rows: Iterable[paging.ShownMessage]) -> Iterator[paging.ShownMessage]:
    """Yield the messages of each partition, the newest of it first."""
    for _, some in groupby(rows, key=lambda one: one.partition):
        yield from reversed(list(some))


def _limit_of(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= paging.MAX_ROWS:
        raise ProblemError(422, f"not a number of messages from 1 to {paging.MAX_ROWS}: '{text}'")
    return int(text)


def _way_of(call: Call) -> As:
    given = call.query_params.get("as", "auto")
    for one in _WAYS:
        if given == one:
            return one
    raise ProblemError(
        422, f"messages cannot be shown as '{given}'", hints=(f"valid: {', '.join(_WAYS)}",)
    )


def _summary(found: paging.MessagePage) -> str:
    read = f", {format_size(found.scanned_bytes)} read for it" if found.scanned_bytes else ""
    return f"{counted(len(found.rows), 'message')}{read}."


def _nothing(found: paging.MessagePage, contains: str) -> str:
    if contains and found.stopped == "end":
        return f"No message here contains “{contains}”."
    if contains:
        return f"None of the messages read contains “{contains}”: go on to older or newer ones."
    if found.has_older or found.has_newer:
        return "There are no messages in this direction."
    return "No messages. To send one: pylogctl produce"


def _row(row: paging.ShownMessage, wanted: As) -> dict[str, Any]:
    path = _path_of(row)
    return {
        "message": row,
        "payload": _payload_of(row, wanted),
        "url": link(path, inner=row.inner or ""),
        "raw_url": _raw_url(row),
    }


def _payload_of(row: paging.ShownMessage, wanted: As, limit: int = SHOWN_BYTES) -> Payload:
    shown = payload_of(row.value, limit=limit, wanted=wanted)
    return shown._replace(note=row.note or shown.note)


def _path_of(row: paging.ShownMessage) -> str:
    return path_of(
        "topics", row.partition.topic, "partitions", row.partition.name, "messages", row.offset
    )


def _raw_url(row: paging.ShownMessage) -> str:
    return link(f"/api/v1{_path_of(row)}/raw", inner=row.inner or "")


@ROUTES.at("/topics/{topic}/partitions/{partition}/messages/{offset:int}", shows_messages=True)
async def show_message(call: Call, topic: str, partition: str, offset: int) -> Response:
    """One message, up to what a page can show of it."""
    wanted, inner = _way_of(call), call.query_params.get("inner", "0")
    try:
        (found,) = paging.parse_cursor(topic, f"{partition}:{offset}.{inner}")
    except ArgumentError as error:
        raise _no_message(f"{topic} {partition}", offset) from error
    at = MessagePosition(offset, int(inner))

    def read(client: Client) -> tuple[paging.ShownMessage, int]:
        seen = paging.read_page(client, topic, {found: at}, is_backward=False, limit=1)
        if not seen.rows or seen.rows[0][1:3] != at:
            raise _no_message(str(found), offset)
        shown = (
            paging.ValueDecoder(client).shown(seen.rows[0]) if wanted == "auto" else seen.rows[0]
        )
        return shown, seen.end[found].offset

    row, next_offset = await call.read(read)
    return topic_page(
        call,
        "message.html",
        topic,
        tab="messages",
        partition=row.partition.name,
        offset=row.offset,
        inner=row.inner,
        next_offset=next_offset,
        problem=row.problem,
        sent=row.sent,
        shown=_payload_of(row, wanted, limit=WHOLE_BYTES),
        wanted=wanted,
        raw_url=_raw_url(row),
        around_url=link(
            path_of("topics", topic, "messages"),
            partition=row.partition.name,
            **{"from": row.offset},
        ),
    )


def _no_message(partition: str, offset: int) -> ProblemError:
    return ProblemError(404, f"there is no message at {offset} of {partition}")

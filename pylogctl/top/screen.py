"""The screen of `pylogctl top`: lines of text, from what is known and what a user has chosen. Pure.

The head never scrolls; the rows of the view fill what is left between it and the foot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size

from broker.ids import NO_CONTROLLER, NO_LEADER
from broker.units import counted, format_count, format_size
from pylogctl.cli import layout
from pylogctl.cli.columns import UNKNOWN, Column, ColumnKind
from pylogctl.cli.escapes import printable
from pylogctl.top import views
from pylogctl.top.keys import HELP, KEYS_LINE, Choices
from pylogctl.top.state import TopState, clock_text, sum_of_known, times_of
from pylogctl.top.views import VIEWS, Moment, ViewLine, ViewPlace

_HEADINGS = {
    "under_replicated": "urp",
    "messages_in": "msg/s",
    "bytes_in": "in/s",
    "bytes_out": "out/s",
    "produce_p99": "p99",
    "errors": "err/s",
    "replicas": "repl",
    "uptime": "up",
    "connections": "conns",
    "partitions": "parts",
    "replication_factor": "rf",
    "partition": "part",
    "unflushed": "unsynced",
    "segments": "segs",
    "stalled": "stall",
    "lag_bytes": "lag",
    "commit_age_s": "commit",
    "age_s": "age",
    "bytes_per_s": "rate",
    "eta_s": "eta",
    "not_in_sync": "out",
    "truncations": "cuts",
    "offline": "off",
}
_BARS, _ASCII_BARS = "▁▂▃▄▅▆▇█", ".:-=+*#%"
_COUNTS = (  # below the view of replication
    ("isr shrinks", "ReplicaManager", "IsrShrinks"),
    ("expands", "ReplicaManager", "IsrExpands"),
    ("new leaders", "KafkaController", "LeaderElections"),
    ("unclean", "KafkaController", "UncleanLeaderElections"),
)
_TREND_CELLS = 8
_TREND = Column("trend", "the last looks", rank=1)
_EVENT_LINES = 3
_LEAST_ROWS = 3
_BOLD, _DIM, _REVERSE, _RED, _RESET = (f"\x1b[{code}m" for code in (1, 2, 7, 31, 0))
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


class Size(NamedTuple):
    """Of a terminal, in cells."""

    width: int
    height: int


class Style(NamedTuple):
    """What a terminal can show."""

    has_color: bool = False
    has_unicode: bool = True


def screen(
    state: TopState, choices: Choices, size: Size, now: Moment, style: Style, *, name: str = ""
) -> list[str]:
    """Return the lines of the screen, one for each line of the terminal.

    `name` is that of the cluster, for people.
    """
    place = choices.place
    state_line, rates_line = head_lines(state)
    if cell_len(state_line) > size.width:
        state_line = state_line.replace("under-replicated", "URP")
    head = [_title(state, choices, size.width, now, name), state_line, rates_line]
    if choices.shows_help:
        return _filled(head, HELP, [KEYS_LINE], size, style)
    lines = views.lines_of(state, place, now)
    foot = list(_foot(state, place, size, style))
    room = max(_LEAST_ROWS, size.height - len(head) - len(foot) - 3)
    table = _table(state, lines, place, size, style, room)
    return _filled(head, table, [*foot, _last_line(choices, lines, room), KEYS_LINE], size, style)


def _filled(
    head: Sequence[str], body: Sequence[str], foot: Sequence[str], size: Size, style: Style
) -> list[str]:
    """Put the parts together: the foot at the bottom, all lines as wide as fits."""
    bottom = [_cut(one, size.width) for one in foot]
    top = [_cut(one, size.width) for one in head]
    if style.has_color:
        top = [f"{_BOLD}{top[0]}{_RESET}", *(_alarming(one) for one in top[1:])]
        bottom[-1] = f"{_DIM}{bottom[-1]}{_RESET}"
    room = max(0, size.height - len(top) - len(bottom))
    middle = [one if "\x1b" in one else _cut(one, size.width) for one in body[:room]]
    lines = [*top, *middle, *[""] * (room - len(middle)), *bottom]
    return lines[: size.height]


def _alarming(line: str) -> str:
    return f"{_RED}{line}{_RESET}" if line.startswith("DOWN") else line


def _cut(text: str, width: int) -> str:
    """Return text of at most this width; what is cut off is at its end."""
    text = text.rstrip()
    return text if cell_len(text) <= width else set_cell_size(text, width).rstrip()


def _title(state: TopState, choices: Choices, width: int, now: Moment, name: str) -> str:
    place = choices.place
    view = f"{place.view} of {printable(place.target)}" if place.target else place.view
    left = [f"pylogctl top - {view}"]
    if place.filter:
        left.append(f"filter: {printable(place.filter)}")
    if place.sort:
        left.append(f"sort: {_sort_text(place)}")
    cluster = state.cluster
    if not place.target and cluster is not None and cluster.controller_id != NO_CONTROLLER:
        left.append(f"controller {cluster.controller_id}")
    left.append(name)
    least_s = state.least_interval_s(VIEWS[place.view].parts)
    interval_s = max(choices.interval_s, least_s)
    mode = "[paused]" if choices.is_paused else "[live]"
    right = [mode, clock_text(now.ms), f"every {interval_s:.3g}s"]
    while cell_len("  ".join((*left, *right))) > width and len(left) + len(right) > 2:
        (left if len(left) > 1 else right).pop()
    text, end = "  ".join(left), "  ".join(right[::-1])
    return text + " " * max(2, width - cell_len(text) - len(end)) + end


def _sort_text(place: ViewPlace) -> str:
    name = place.sort.removeprefix("-")
    heading = _heading(name, place).upper().replace("_", "-")
    return f"{heading} desc" if place.sort.startswith("-") else heading


def _heading(name: str, place: ViewPlace) -> str:
    return VIEWS[place.view].headings.get(name) or _HEADINGS.get(name, name)


def head_lines(state: TopState) -> list[str]:
    """Return what is said of the whole cluster in every view: its state, and its rates."""
    return ["  ".join(_state_parts(state)), "   ".join(_rate_parts(state))]


def _state_parts(state: TopState) -> Iterator[str]:
    cluster = state.cluster
    down = {id for id, one in state.brokers.items() if one.is_silent}
    if cluster is not None:
        replicas = {id for one in state.partitions() for id in one.replicas}
        down |= replicas - state.brokers.keys()
    if down:
        yield f"DOWN {counted(len(down), 'broker')}"
    else:
        yield counted(len(state.brokers), "broker")
    if cluster is not None and cluster.cluster_id and cluster.controller_id == NO_CONTROLLER:
        yield "NO CONTROLLER"
    # the controller counts only those with replicas
    yield f"offline {sum(one.leader == NO_LEADER for one in state.partitions())}"
    yield f"under-replicated {_or_dash(state.total('ReplicaManager', 'UnderReplicatedPartitions'))}"
    yield f"min-isr {_or_dash(state.total('ReplicaManager', 'UnderMinIsrPartitionCount'))}"
    if state.groups_error:
        yield "groups ? (no ZooKeeper)"
    elif state.groups is not None:
        counts = Counter(one.status().value for one in state.groups)
        words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        yield f"groups {words or 'none'}"


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def _rate_parts(state: TopState) -> Iterator[str]:
    topics = "BrokerAllTopicStat"
    messages = _rate_text(state.total_rate(topics, "MessagesIn"))
    yield f"in {messages} msg/s {_bytes_text(state.total_rate(topics, 'BytesIn'))}/s"
    yield f"out {_bytes_text(state.total_rate(topics, 'BytesOut'))}/s"
    requests = sum_of_known(map(views.request_rate, state.brokers.values()))
    yield f"{_rate_text(requests)} requests/s"
    times = times_of(state.brokers.values(), "produce", "total")
    if times is not None and (p99_s := times.quantile_s(0.99)) is not None:
        yield f"produce p99 {seconds_text(p99_s)}"


def _foot(state: TopState, place: ViewPlace, size: Size, style: Style) -> Iterator[str]:
    """Yield the lines below the rows of a view."""
    if place.view == "overview":
        room = max(_TREND_CELLS, size.width - 60)
        trend = _spark(state.trends.get(("cluster", ""), ()), min(room, 60), style)
        groups = sorted(state.groups or (), key=lambda one: -(one.lag_bytes or 0))
        lags = "   ".join(
            f"{printable(one.snapshot.name)} {_bytes_text(one.lag_bytes)} {one.status().value}"
            for one in groups[:_EVENT_LINES]
        )
        yield f"IN/S {trend}   LAG {lags or '-'}"
        count = max(1, min(_EVENT_LINES, size.height - 12))
        for event in state.events[: -count - 1 : -1]:
            yield f"{clock_text(event.time_ms)} {printable(event.text)}"
    elif place.view == "replication":
        counts = [f"{name} {_or_dash(state.total(*value))}" for name, *value in _COUNTS]
        moved = state.total_rate("ReplicaFetcherManager", "ReassignmentBytesFetched")
        yield "   ".join(counts)
        left = _bytes_text(views.bytes_to_copy(state))
        yield f"left to copy until in sync {left}   copied by reassignments {_bytes_text(moved)}/s"
    elif place.view == "replicas":
        for one, changes in state.changes.items():
            if f"{one.topic}/{one.name}" == place.target:
                yield from (f"{clock_text(it.time_ms)} {it.text}" for it in changes[::-1])


def _last_line(choices: Choices, lines: Sequence[ViewLine], room: int) -> str:
    place = choices.place
    if choices.typed is not None:
        return f"/{printable(choices.typed)}_"
    if choices.message:
        return printable(choices.message)
    place = choices.place
    if not lines:
        return ""
    first = _window_start(lines, place, room)
    last = min(first + room, len(lines))
    drill = "   Enter: more of the row" if VIEWS[place.view].drill else ""
    back = "   Esc: back" if place.target else ""
    return f"{first + 1}-{last} of {len(lines)}{drill}{back}"


def _window_start(lines: Sequence[ViewLine], place: ViewPlace, room: int) -> int:
    index = views.selected_index([one.name for one in lines], place)
    return max(0, min(index - room // 2, len(lines) - room))


def _table(
    state: TopState,
    lines: Sequence[ViewLine],
    place: ViewPlace,
    size: Size,
    style: Style,
    room: int,
) -> list[str]:
    view = VIEWS[place.view]
    if not lines:
        return ["", f"  {absence(state, place)}"]
    columns = [one for one in view.document.columns if one.shown and one.name != "time"]
    has_age = any(line.row.by_column().get("age") for line in lines)
    if not has_age and not place.view.startswith("group"):
        columns = [one for one in columns if one.name != "age"]
    rows = []
    for line in lines:
        values = line.row.by_column()
        rows.append([cell_text(values.get(one.name), one) for one in columns])
    columns = [one._replace(name=_heading(one.name, place), title="") for one in columns]
    if view.has_trend:
        columns.append(_TREND)
        for row, line in zip(rows, lines, strict=True):
            row.append(_spark(line.trend, _TREND_CELLS, style))
    terminal = layout.Terminal(size.width - 1, style.has_color, style.has_unicode, gap=" ")
    table = layout.Table(columns, terminal)
    table.choose(rows, are_all=False)
    table.fit(rows)
    first = _window_start(lines, place, room)
    shown = rows[first : first + room]
    heading, _, *drawn = table.lines(shown, header=True)
    selected = views.selected_index([one.name for one in lines], place) - first
    return [
        f" {heading}",
        *(
            _row_text(text, line, is_selected=index == selected, style=style)
            for index, (text, line) in enumerate(
                zip(drawn, lines[first : first + room], strict=True)
            )
        ),
    ]


def _row_text(text: str, line: ViewLine, *, is_selected: bool, style: Style) -> str:
    text = f"{'>' if is_selected else ' '}{text}"
    if not style.has_color:
        return text
    codes = _REVERSE * is_selected + _DIM * line.is_silent
    return codes + text.replace(_RESET, _RESET + codes) + _RESET if codes else text


def absence(state: TopState, place: ViewPlace) -> str:
    """Return what is shown in place of rows."""
    if place.filter:
        return f"nothing matches '{printable(place.filter)}'"
    if place.view == "groups" and not state.has_zookeeper:
        return "groups are in ZooKeeper: name it with -Z"
    if place.view == "groups" and state.groups is None:
        return state.groups_error or "groups are being read"
    return VIEWS[place.view].document.empty


def cell_text(value: Any, column: Column) -> str:
    """Return a value as short as columns of a live view need it."""
    if value is UNKNOWN:
        return "?"
    if value is None or value == ():
        return "-"
    if column.kind is ColumnKind.NUMBER:  # all of them are shares
        return f"{100 * value:.0f}%"
    if column.kind in (ColumnKind.BYTES, ColumnKind.BYTE_RATE):
        return _bytes_text(value)
    if column.kind is ColumnKind.RATE:
        return _rate_text(value)
    if column.kind is ColumnKind.SECONDS:
        return seconds_text(value)
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return printable(str(value))


def _bytes_text(size: float | None) -> str:
    if size is None:
        return "-"
    return format_size(size).replace(" ", "").replace("iB", "i")  # columns are narrow


def _rate_text(rate: float | None) -> str:
    if rate is None:
        return "-"
    return f"{rate:.1f}" if 0 < abs(rate) < 10 else format_count(rate)


def seconds_text(seconds: float) -> str:
    """Return a duration in one unit."""
    if seconds < 1:
        return f"{1000 * seconds:.0f}ms" if seconds >= 0.001 or not seconds else "<1ms"
    for unit_s, name in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "m")):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.0f}{name}"
    return f"{seconds:.0f}s"


def _spark(values: Sequence[float | None], width: int, style: Style) -> str:
    """Return the last values as bars; blank where one is unknown."""
    bars = _BARS if style.has_unicode else _ASCII_BARS
    shown = values[-width:]
    top = max((one for one in shown if one is not None), default=0) or 1
    last = len(bars) - 1
    return "".join(
        " " if one is None else bars[min(last, max(0, round(last * one / top)))] for one in shown
    ).rjust(width)

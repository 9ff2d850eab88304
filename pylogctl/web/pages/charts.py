"""Charts as SVG, drawn without script: what they show is also in a table behind a disclosure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from pylogctl.web.sampler import Point

WIDTH, HEIGHT = 480, 120
_SPARK_WIDTH, _SPARK_HEIGHT = 120, 24
_MAX_POINTS = 240  # drawn of a line; each stands for the highest of its interval
_MAX_ROWS = 24  # of the table

Format = Callable[[float], str]


class Line(NamedTuple):
    """A line of a chart."""

    name: str
    points: Sequence[Point]


def thinned(points: Sequence[Point], count: int) -> list[Point]:
    """Return at most so many points: of each of as many intervals the one with the highest value.

    So a short peak is never left out.
    """
    if len(points) <= count:
        return list(points)
    cuts = [len(points) * index // count for index in range(count + 1)]
    return [max(points[start:end], key=lambda one: one.value) for start, end in pairwise(cuts)]


def chart(title: str, lines: Sequence[Line], format_value: Format) -> Markup:
    """Return a figure of lines over one axis of time: SVG, a key, and the values as a table."""
    lines = [line for line in lines if line.points]
    if not lines:
        return Markup('<figure class="chart"><figcaption>{}</figcaption><p>{}</p></figure>').format(
            title, "No values yet: the first come within seconds."
        )
    first = min(line.points[0].time_s for line in lines)
    last = max(line.points[-1].time_s for line in lines)
    top = max(one.value for line in lines for one in line.points)
    drawn = Markup().join(
        Markup('<polyline class="line line-{}" points="{}"/>').format(
            index, _path(thinned(line.points, _MAX_POINTS), first, last, top, WIDTH, HEIGHT)
        )
        for index, line in enumerate(lines)
    )
    key = Markup().join(
        Markup('<li><svg class="swatch" viewBox="0 0 16 4" aria-hidden="true"><path class="line '
               'line-{}" d="M0 2H16"/></svg> {}: <b>{}</b></li>').format(
            index, line.name, format_value(line.points[-1].value)
        )
        for index, line in enumerate(lines)
    )  # fmt: skip
    summary = "; ".join(
        f"{line.name} {format_value(line.points[-1].value)} now, "
        f"at most {format_value(max(one.value for one in line.points))}"
        for line in lines
    )
    return Markup(
        '<figure class="chart"><figcaption>{title}</figcaption>'
        '<svg viewBox="0 -14 {width} {full}" role="img" aria-label="{title}. {summary}">'
        "<title>{title}</title><desc>{summary}</desc>"
        '<path class="axis" d="M0 {height}H{width}M0 0H{width}"/>'
        '<text x="0" y="-3" class="tick">{top}</text>{drawn}'
        '<text x="0" y="{below}" class="tick">{first}</text>'
        '<text x="{width}" y="{below}" class="tick" text-anchor="end">{last}</text></svg>'
        '<ul class="key">{key}</ul>{table}</figure>'
    ).format(
        title=title,
        summary=summary,
        width=WIDTH,
        height=HEIGHT,
        full=HEIGHT + 32,
        below=HEIGHT + 13,
        top=format_value(top),
        drawn=drawn,
        first=clock(first),
        last=clock(last),
        key=key,
        table=_table(title, lines, format_value),
    )


def spark(points: Sequence[Point], label: str) -> Markup:
    """Return a small line without axes, as wide as a cell of a table."""
    if not points:
        return Markup()
    top = max(one.value for one in points)
    drawn = _path(
        thinned(points, _SPARK_WIDTH // 2),
        points[0].time_s,
        points[-1].time_s,
        top,
        _SPARK_WIDTH,
        _SPARK_HEIGHT,
    )
    return Markup(
        '<svg class="spark" viewBox="0 -1 {} {}" role="img" aria-label="{}">'
        '<polyline class="line line-0" points="{}"/></svg>'
    ).format(_SPARK_WIDTH, _SPARK_HEIGHT + 2, label, drawn)


def clock(time_s: float) -> str:
    """Return the time of day of this machine."""
    return datetime.fromtimestamp(time_s).astimezone().strftime("%H:%M:%S")


def _path(
    points: Sequence[Point], first: float, last: float, top: float, width: int, height: int
) -> str:
    span, scale = last - first or 1.0, top or 1.0
    return " ".join(
        f"{(one.time_s - first) / span * width:.1f},{height - one.value / scale * height:.1f}"
        for one in points
    )


def _table(title: str, lines: Sequence[Line], format_value: Format) -> Markup:
    """Return the values as a table: the lines' points of the same moments, newest first."""
    times = thinned(max((line.points for line in lines), key=len), _MAX_ROWS)
    values = [{one.time_s: one.value for one in line.points} for line in lines]
    head = Markup().join(Markup('<th scope="col">{}</th>').format(line.name) for line in lines)
    rows = Markup().join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            clock(moment.time_s),
            Markup().join(
                Markup('<td class="number">{}</td>').format(
                    format_value(known[moment.time_s]) if moment.time_s in known else "-"
                )
                for known in values
            ),
        )
        for moment in reversed(times)
    )
    return Markup(
        "<details><summary>Values</summary><table><caption>{}</caption>"
        '<thead><tr><th scope="col">Time</th>{}</tr></thead><tbody>{}</tbody></table></details>'
    ).format(title, head, rows)

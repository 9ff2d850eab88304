"""Charts as plain SVG: bars to compare names, lines over numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Series = Mapping[str, Sequence[tuple[float, float]]]

_COLORS = ("#1f6f8b", "#d1495b", "#edae49", "#66a182", "#6b4e71", "#8d8d8d")
_TEXT = 'font-family="sans-serif" font-size="12" fill="#222"'
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 80, 20, 40, 60
_PLOT_HEIGHT = 260
_BAR_HEIGHT, _BAR_ROOM, _VALUE_ROOM, _LETTER_WIDTH = 22, 400, 70, 6.5
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def bars(title: str, unit: str, values: Mapping[str, float]) -> str:
    """Return a chart with one horizontal bar for each value, from zero.

    Args:
        title: above the chart.
        unit: of the values.
        values: by name, from top to bottom, not negative.
    """
    longest = max(values.values(), default=0.0) or 1.0
    left = 20 + _LETTER_WIDTH * max(map(len, values), default=0)
    parts = []
    for row, (name, value) in enumerate(values.items()):
        y = _TOP + row * _BAR_HEIGHT
        width = value / longest * _BAR_ROOM
        parts += [
            _text(left - 8, y + 15, name, anchor="end"),
            f'<rect x="{left}" y="{y + 3}" width="{width:.1f}" height="{_BAR_HEIGHT - 6}" '
            f'fill="{_COLORS[0 if row == 0 else -1]}"/>',
            _text(left + width + 6, y + 15, short(value)),
        ]
    width, height = left + _BAR_ROOM + _VALUE_ROOM, _TOP + len(values) * _BAR_HEIGHT + 10
    return _document(title, unit, width, height, parts)


def lines(title: str, unit: str, x_label: str, series: Series) -> str:
    """Return a chart of lines over a logarithmic x axis, from zero up.

    Args:
        title: above the chart.
        unit: of y.
        x_label: below the chart.
        series: points (x, y) by name, neither negative; an x of 0 is drawn left of the others.
    """
    xs = sorted({x for points in series.values() for x, _ in points})
    least = min((x for x in xs if x), default=1.0) / 10
    top = _round_up(max((y for points in series.values() for _, y in points), default=1.0))
    low, high = math.log(xs[0] or least), math.log(xs[-1] or least)
    span = (high - low) or 1.0
    bottom = _TOP + _PLOT_HEIGHT

    def position(x: float, y: float) -> tuple[float, float]:
        across = (math.log(x or least) - low) / span * (_WIDTH - _LEFT - _RIGHT)
        return _LEFT + across, bottom - y / top * _PLOT_HEIGHT

    parts = _grid(top, bottom)
    for x in xs:
        parts.append(_text(position(x, 0)[0], bottom + 18, short(x), anchor="middle"))
    parts.append(_text((_WIDTH + _LEFT) / 2, bottom + 36, x_label, anchor="middle"))
    for number, (name, points) in enumerate(series.items()):
        color = _COLORS[number % len(_COLORS)]
        spots = [position(x, y) for x, y in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in spots]
        key = _LEFT + 10 + number % 3 * 185, bottom + 52 + number // 3 * 18
        parts.append(f'<circle cx="{key[0]}" cy="{key[1] - 4}" r="4" fill="{color}"/>')
        parts.append(_text(key[0] + 10, key[1], name))
    height = bottom + _BOTTOM + (len(series) - 1) // 3 * 18
    return _document(title, unit, _WIDTH, height, parts)


def short(value: float) -> str:
    """Return a number with three digits and a decimal prefix."""
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor:
            return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g}"


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= value)


def _grid(top: float, bottom: float) -> list[str]:
    parts = []
    for step in range(6):
        y = bottom - step * _PLOT_HEIGHT / 5
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 8, y + 4, short(top * step / 5), anchor="end"))
    return parts


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {_TEXT}>{escape(text)}</text>'


def _document(title: str, unit: str, width: float, height: float, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    heading = f"{title} ({unit})"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="100%" height="100%" fill="#fff"/>\n'
        f'<text x="10" y="22" font-family="sans-serif" font-size="14" font-weight="bold" '
        f'fill="#222">{escape(heading)}</text>\n{body}\n</svg>\n'
    )

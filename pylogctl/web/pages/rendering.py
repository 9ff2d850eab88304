"""Templates and assets: what handlers need to return a page."""

from __future__ import annotations

import hashlib
import mimetypes
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import jinja2
from starlette.responses import HTMLResponse, Response

from broker.admin.lag import LagStatus
from broker.json_fields import Number
from broker.units import format_duration, format_rate, format_size
from pylogctl.cli.escapes import printable
from pylogctl.web.problems import Problem, ProblemError
from pylogctl.web.site import Call, WebRoutes

_FOLDER = Path(__file__).parent
_STATIC = _FOLDER / "static"
_ABSENT = "-"
ROUTES = WebRoutes()
_STATES_OF_PARTITION = {"ok": "ok", "under-replicated": "warn", "unknown": "unknown"}
_STATES_OF_LAG = {
    LagStatus.OK: "ok",
    LagStatus.IDLE: "ok",
    LagStatus.NO_OFFSET: "unknown",
    LagStatus.LAG: "unknown",
    LagStatus.WARN: "warn",
    LagStatus.UNKNOWN: "unknown",
}
"""How bad the status of a group is; the others are failures."""


class StateWord(NamedTuple):
    """A state: a word, and how bad it is."""

    word: str
    kind: str  # ok, warn, fail or unknown
    text: str = ""
    url: str = ""


def lag_state(status: LagStatus) -> StateWord:
    """Return the state that a status of a group is shown as."""
    return StateWord(str(status), _STATES_OF_LAG.get(status, "fail"))


def state_of(word: str) -> StateWord:
    """Return a state of a partition, or of a topic, with how bad it is."""
    return StateWord(word, _STATES_OF_PARTITION.get(word, "fail"))


def _finalized(value: Any) -> Any:
    """Return a value as it may stand in a page: text without what misleads the eye."""
    return printable(value, keep="\t\r\n") if type(value) is str else value


def text_of_series(value: float | None, series: str) -> str:
    """Return a value of a series for people; the last part of its name says what it is."""
    if value is None:
        return _ABSENT
    match series.rpartition("/")[2]:
        case "in" | "out":
            return f"{format_size(value)}/s"
        case "cpu":
            return f"{100 * value:.0f} %"
        case "lag" | "position" | "end":
            return format_size(value)
        case "connections":
            return f"{value:.0f}"
        case name if name.endswith("_ms"):
            return f"{value:.1f} ms"
        case _:
            return format_rate(value)


def formatter(series: str) -> Callable[[float], str]:
    """Return what formats the values of a series."""
    return lambda value: text_of_series(value, series)


def _if_known(show: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a filter that shows values, and a dash for one that is absent."""
    return lambda value: _ABSENT if value is None else show(value)


def _most(values: Iterable[int | None]) -> int | None:
    return max((one for one in values if one is not None), default=None)


def path_of(*parts: object) -> str:
    """Return a path of this server; names become its parts, whatever characters they have."""
    return "".join(f"/{quote(str(one), safe='')}" for one in parts)


def link(path: str, /, **query: object) -> str:
    """Return a path with a query, without what is empty."""
    given = {name: value for name, value in query.items() if value not in (None, "", [])}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


@cache
def _assets() -> dict[str, tuple[bytes, str]]:
    """Return content and type of each asset, by its name with a hash of the content."""
    found = {}
    for file in sorted(_STATIC.iterdir()):
        content = file.read_bytes()
        name = f"{file.stem}.{hashlib.sha256(content).hexdigest()[:16]}{file.suffix}"
        kind = "text/javascript" if file.suffix == ".js" else mimetypes.guess_type(file.name)[0]
        found[name] = content, kind or "application/octet-stream"
    return found


@cache
def _asset_url(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    (hashed,) = (one for one in _assets() if one.startswith(f"{stem}.") and one.endswith(suffix))
    return f"/assets/{hashed}"


@ROUTES.at("/assets/{name}")
async def asset(call: Call, name: str) -> Response:
    """Return a script, the style sheet or the icon."""
    found = _assets().get(name)
    if found is None:
        raise ProblemError(404, "there is no such asset")
    content, kind = found
    cached = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, media_type=kind, headers=cached)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "absent": _if_known(lambda value: value),
        "size": _if_known(format_size),
        "duration": _if_known(format_duration),
        "moment": _if_known(lambda value: value.astimezone().strftime("%Y-%m-%d %H:%M:%S")),
        "ago": _if_known(lambda at: f"{format_duration(time.time() - at.timestamp())} ago"),
        "most": _most,
        "of_series": text_of_series,
    }
    environment.tests["json_number"] = lambda value: isinstance(value, Number)
    environment.globals |= {
        "asset": _asset_url,
        "path_of": path_of,
        "link": link,
        "state_of": state_of,
        "lag_state": lag_state,
    }
    return environment


def page(call: Call, template: str, section: str, **values: Any) -> HTMLResponse:
    """Return a page of a template with these values; `section` is its item of the menu."""
    common = {
        "csrf_token": call.state.csrf_token,
        "here": call.url.path,
        "section": section,
        "searched": "",
        "shows_not_ok": call.query_params.get("show") == "not-ok",
        "hides_messages": call.site.hides_messages,
        "allow_changes": call.site.allow_changes,
    }
    return HTMLResponse(_environment().get_template(template).render(common | values))


def topic_page(call: Call, template: str, topic: str, **values: Any) -> HTMLResponse:
    """Return a page of a topic."""
    return page(call, template, "Topics", topic=topic, topic_url=path_of("topics", topic), **values)


def render_error(problem: Problem) -> str:
    """Return the page that tells a browser of an error."""
    return (
        _environment()
        .get_template("error.html")
        .render(problem=problem, csrf_token="", here="", section="", searched="")
    )

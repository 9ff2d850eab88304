"""Saved runs: read again, listed, and held against each other.

Knows the files of `perf --save`; knows no broker and no option.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pylogctl.cli.errors import UsageError
from pylogctl.cli.render import Column, Document, Kind
from pylogctl.perf.report import RUN_SCHEMA

REPORT = Document(
    "perf.report/1",
    (
        Column("file", "where the run is saved"),
        Column("command", "what was measured"),
        Column("topic", "where"),
        Column("messages", "number of messages", Kind.INTEGER),
        Column("seconds", "time on the wall", Kind.SECONDS),
        Column("msg_per_s", "messages per second", Kind.NUMBER),
        Column("mib_per_s", "MiB of payload per second", Kind.NUMBER),
        Column("p50_ms", "latency that half do not exceed", Kind.NUMBER),
        Column("p99_ms", "latency that 99 % do not exceed", Kind.NUMBER),
        Column("p99_9_ms", "latency that 99.9 % do not exceed", Kind.NUMBER),
        Column("max_ms", "longest latency", Kind.NUMBER),
        Column("overhead_bytes", "bytes of log for a message beyond its payload", Kind.NUMBER),
        Column("acks", "acknowledgement asked for", shown=False),
        Column("flush", "when messages are flushed", shown=False),
        Column("cpu_s", "processor time, in seconds", Kind.NUMBER, shown=False),
        Column("rss_bytes", "most memory", Kind.BYTES, shown=False),
        Column("started", "when", shown=False),
        Column("options", "options and properties", shown=False),
        Column("pylogctl", "version", shown=False),
        Column("git_revision", "revision of the checkout it ran from", shown=False),
        Column("python", "interpreter", shown=False),
        Column("platform", "system", shown=False),
        Column("processors", "how many", Kind.INTEGER, shown=False),
    ),
    empty="no runs",
)
COMPARE = Document(
    "perf.compare/1",
    (
        Column("figure", "what was measured"),
        Column("before", "in the first file", Kind.NUMBER),
        Column("after", "in the second file", Kind.NUMBER),
        Column("change_percent", "from the first to the second", Kind.NUMBER),
        Column("verdict", "better, worse or same; same is within the limit"),
        Column("decides", "whether it counts for --fail-below", Kind.BOOLEAN),
    ),
    empty="nothing to compare",
)
_IS_MORE_BETTER = {
    "msg_per_s": True,
    "mib_per_s": True,
    "p50_ms": False,
    "p90_ms": False,
    "p95_ms": False,
    "p99_ms": False,
    "p99_9_ms": False,
    "max_ms": False,
    "cpu_s": False,
    "rss_bytes": False,
    "overhead_bytes": False,
}
_DECIDES = {"perf e2e": ("p50_ms", "p99_ms")}
_DECIDES_ELSE = ("msg_per_s",)
_SURROUNDINGS = ("python", "platform", "processors")


class SavedRun(NamedTuple):
    """A run as its file has it."""

    path: Path
    document: Mapping[str, Any]

    @property
    def command(self) -> str:
        """Return what was measured, such as `perf produce`."""
        return str(self.document["command"])

    @property
    def result(self) -> Mapping[str, Any]:
        """Return the record of the result."""
        result: Mapping[str, Any] = self.document["result"]
        return result


def load_run(path: Path) -> SavedRun:
    """Read a saved run.

    Raises:
        OSError: the file cannot be read.
        UsageError: it is no saved run.
    """
    try:
        document = json.loads(path.read_bytes())
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("schema") != RUN_SCHEMA:
        raise UsageError(f"'{path}' is no saved run", hints=["save one with: perf ... --save FILE"])
    return SavedRun(path, document)


def report_record(run: SavedRun) -> dict[str, Any]:
    """Return a run as a record of `REPORT`."""
    options = run.document["options"]
    properties = options["properties"]
    return {
        "acks": properties.get("request.required.acks"),
        **run.document,
        **run.result,
        "file": str(run.path),
        "topic": options["topic"],
        "options": options,
    }


def compare_records(before: SavedRun, after: SavedRun, *, limit: float) -> Iterator[dict[str, Any]]:
    """Give a record of `COMPARE` for each figure that both runs have.

    Args:
        before: what was.
        after: what is.
        limit: the share by which a figure may be worse and still count as the same.

    Raises:
        UsageError: they are runs of different commands.
    """
    if before.command != after.command:
        raise UsageError(f"'{before.command}' and '{after.command}' cannot be compared")
    deciding = _DECIDES.get(before.command, _DECIDES_ELSE)
    for figure, is_more_better in _IS_MORE_BETTER.items():
        old, new = before.result.get(figure), after.result.get(figure)
        if old is None or new is None:
            continue
        change = (new - old) / old if old else 0.0
        gain = change if is_more_better else -change
        yield {
            "figure": figure,
            "before": old,
            "after": new,
            "change_percent": round(100 * change, 2),
            "verdict": "worse" if gain < -limit else "better" if gain > limit else "same",
            "decides": figure in deciding,
        }


def is_regression(records: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a figure that decides is worse."""
    return any(one["decides"] and one["verdict"] == "worse" for one in records)


def differences(before: SavedRun, after: SavedRun) -> list[str]:
    """Return what else was different, by name: options, properties, surroundings."""
    pairs = [(before.document[name], after.document[name], name) for name in _SURROUNDINGS]
    old, new = _flat(before.document["options"]), _flat(after.document["options"])
    pairs += [(old.get(name), new.get(name), name) for name in sorted(old.keys() | new.keys())]
    return [f"{name}: {one} and {other}" for one, other, name in pairs if one != other]


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    return {**options, **options["properties"], "properties": None}

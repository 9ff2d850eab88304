"""Payloads of messages as a page shows them: text, a JSON tree, or hex, whatever bytes they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from broker.json_fields import MISSING, read_json
from pylogctl.cli.escapes import printable
from pylogctl.web.messages import text_of

SHOWN_BYTES = 4096  # of each message in a list
WHOLE_BYTES = 1 << 20  # of a message on a page of its own; beyond it there is the download
_HEX_BYTES = 64 << 10
_JSON_BYTES = 256 << 10
_MAX_NODES = 5000
_MAX_DEPTH = 40
_SUMMARY_LENGTH = 160
_KEPT = "\t\r\n"

As = Literal["auto", "text", "json", "hex"]


class Payload(NamedTuple):
    """What is shown of a payload."""

    kind: Literal["text", "json", "hex"]
    summary: str  # one line
    text: str  # raw; for hex lines of 16 bytes with their offset and ASCII
    tree: Any  # the JSON document with its numbers as `Number`; for other kinds None
    size_bytes: int
    shown_bytes: int
    note: str  # why it is not shown as was asked; empty if it is

    @property
    def is_cut(self) -> bool:
        """Whether there is more than what is shown."""
        return self.shown_bytes < self.size_bytes


def payload_of(data: bytes, *, limit: int = SHOWN_BYTES, wanted: As = "auto") -> Payload:
    """Return what is shown of a payload, and how.

    Text is UTF-8 without control characters but tabs and line ends; what would mislead the eye,
    such as marks of writing direction, is shown as escapes.
    """
    size, data = len(data), data[:limit]
    text = None if wanted == "hex" else text_of(data, is_cut=size > limit)
    note = ""
    if text is None and wanted in ("text", "json"):
        note = f"not {wanted}: it is not UTF-8 without control characters"
    if text is None:
        data = data[:_HEX_BYTES]
        dump = "\n".join(_dump(data))
        return Payload("hex", _hex_summary(data), dump, None, size, len(data), note)
    tree = None
    if wanted != "text" and text[:1].strip(" \t\r\n") in ("", "{", "["):
        tree, note = _tree_of(text, is_whole=size <= limit)
    if tree is None and wanted == "json":
        note = note or "not a JSON object or list"
    elif wanted != "json" and tree is None and "large" not in note:
        note = ""
    shown = printable(text, keep=_KEPT)
    line = printable(text[:_SUMMARY_LENGTH]) + ("…" if len(text) > _SUMMARY_LENGTH else "")
    kind: Literal["text", "json"] = "text" if tree is None else "json"
    return Payload(kind, line or "(empty)", shown, tree, size, len(data), note)


def _tree_of(text: str, *, is_whole: bool) -> tuple[Any, str]:
    """Return a JSON object or list, or None and why not."""
    if not is_whole:
        return None, ""
    if len(text) > _JSON_BYTES:
        return None, "too large to show as a tree"
    try:
        tree = read_json(text)
        nodes = _count(tree, 0)
    except RecursionError:
        return None, "not JSON"
    if tree is MISSING:
        return None, "not JSON"
    if nodes > _MAX_NODES:
        return None, "too large to show as a tree"
    return (tree, "") if isinstance(tree, dict | list) else (None, "")


def _count(tree: Any, depth: int) -> int:
    """Return the number of nodes; beyond the depth that is shown, more than is shown."""
    if depth > _MAX_DEPTH:
        return _MAX_NODES + 1
    if isinstance(tree, Mapping):
        return 1 + sum(_count(one, depth + 1) for one in tree.values())
    if isinstance(tree, list):
        return 1 + sum(_count(one, depth + 1) for one in tree)
    return 1


def _dump(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        shown = "".join(chr(one) if 0x20 <= one < 0x7F else "." for one in row)
        yield f"{start:08x}  {row.hex(' '):<47}  {shown}"


def _hex_summary(data: bytes) -> str:
    return data[:32].hex(" ") + (" …" if len(data) > 32 else "")

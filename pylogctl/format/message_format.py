"""Format strings for messages, such as `%t[%p] %o %s{hex}`.

A format string is compiled once into a list of functions.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from broker.errors import PluginError, did_you_mean
from broker.json_fields import field_path, read_json, text_of, value_at
from broker.units import format_time
from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.cli.escapes import printable_bytes
from pylogctl.cli.options import PayloadForm
from pylogctl.format.envelope import MessageFacts, encode_payload, header_text
from pylogctl.format.framing import escape, unescape


class Received(NamedTuple):
    """A message with its number from 1, the time of receipt, and the group that read it."""

    facts: MessageFacts
    number: int
    time_ms: int
    group: str


Render = Callable[[Received], bytes]

PRESETS = {
    "@full": "%t[%p] offset %o next %n inner %I size %S codec %z crc %c\\n%s{esc}\\n\\n",
    "@tsv": "%t\\t%p\\t%o\\t%S\\t%c\\t%s{esc}\\n",
    "@kcat": "%t [%p] at offset %o: %s\\n",
}
_TOKEN = re.compile(r"%(.?)(?:\{((?:[^{}]|\{[^{}]*\})*)\})?", re.DOTALL)
_NOT_STORED = "this log format stores no keys"

_TEXTS: dict[str, Callable[[Received], str]] = {
    "t": lambda m: m.facts.partition.topic,
    "p": lambda m: m.facts.partition.name,
    "c": lambda m: f"{m.facts.crc:08x}",
    "z": lambda m: m.facts.codec,
    "g": lambda m: m.group,
    "h": lambda m: _headers_text(m.facts),
}
_NUMBERS: dict[str, Callable[[Received], int]] = {
    "S": lambda m: m.facts.payload_bytes,
    "R": lambda m: m.facts.payload_bytes,
    "K": lambda m: -1 if m.facts.key is None else len(m.facts.key),
    "o": lambda m: m.facts.offset,
    "n": lambda m: m.facts.next_offset,
    "I": lambda m: m.facts.inner,
    "i": lambda m: m.number,
    "b": lambda m: m.facts.partition.home,
    "m": lambda m: m.facts.magic,
}
_PACKED = {
    "big32": (">i", 32),
    "little32": ("<i", 32),
    "big64": (">q", 64),
    "hex8": ("02x", 8),
    "hex16": ("04x", 16),
    "hex32": ("08x", 32),
    "hex64": ("016x", 64),
}
_PAYLOAD_WORDS: dict[str, Callable[[bytes], bytes]] = {
    "hex": lambda data: data.hex().encode(),
    "base64": base64.b64encode,
    "esc": lambda data: escape(data).encode(),
    "json": lambda data: json.dumps(data.decode("utf-8", "replace")).encode(),
    "utf8": lambda data: data.decode("utf-8", "replace").encode(),
    "upper": bytes.upper,
}
_PAYLOAD_MODIFIERS = (*_PAYLOAD_WORDS, "trunc:N", "unpack:CODES", "jq:.PATH")
_NUMBER_MODIFIERS = (*_PACKED, "width:N", "comma")


def compile_format(
    text: str,
    presets: Mapping[str, str] = PRESETS,
    *,
    for_terminal: bool = False,
    has_keys: bool = False,
) -> Render:
    """Return a function that writes a message in this format; no newline is added.

    `text` has tokens `%x`, each optionally with a modifier in braces, and escapes; or it is a
    preset or writer, `@name`. `for_terminal` writes control characters of a message, other than
    tabs and line feeds, as escapes; those of the format itself are kept. Without `has_keys` a
    token for keys is refused, as no message can have one.
    """
    if text.startswith("@"):
        if text not in presets:
            write = _writer(text, presets)
            return _escaping(write) if for_terminal else write
        text = presets[text]
    parts: list[Render] = []
    position = 0
    for match in _TOKEN.finditer(text):
        _add_literal(parts, text[position : match.start()])
        part = _compile_token(match, text, has_keys=has_keys)
        parts.append(_escaping(part) if for_terminal else part)
        position = match.end()
    _add_literal(parts, text[position:])
    return lambda message: b"".join([part(message) for part in parts])


def _writer(text: str, presets: Mapping[str, str]) -> Render:
    """Return the writer that `@module:name` names, or `@NAME` by an entry point."""
    from broker.plugins import WRITER, installed, load  # late: few commands have plug-ins
    from broker.protocol.codec import Message

    if ":" not in text:
        known = [*presets, *(f"@{one.name}" for one in installed(WRITER))]
        if text not in known:
            hints = (f"formats: {', '.join(known)}", "@module:name is a plug-in")
            raise UsageError(f"no format '{text}'{did_you_mean(text, known)}", *hints)
    writer = load(WRITER, "--format", text[1:])

    def write(received: Received) -> bytes:
        facts = received.facts
        topic, partition = facts.partition.topic, facts.partition
        place = (facts.offset, facts.next_offset, facts.payload, facts.inner)
        try:
            return bytes(writer(Message(topic, partition, *place)))
        except PluginError as error:
            raise error.about(f"message at {facts.offset} of {partition}") from error

    return write


def _escaping(part: Render) -> Render:
    return lambda message: printable_bytes(part(message), keep="\t\n")


def _add_literal(parts: list[Render], text: str) -> None:
    if text:
        data = unescape(text)
        parts.append(lambda message: data)


def _compile_token(match: re.Match[str], text: str, *, has_keys: bool) -> Render:
    letter, modifier = match.groups()
    if letter == "%":
        return _literal_percent(modifier)
    if letter and letter in "kK" and not has_keys:
        hint = f"'%{letter}' in --format asks for one"
        raise CliError(ExitStatus.UNSUPPORTED, _NOT_STORED, hint)
    try:
        if letter == "d":
            return _compile_time(modifier or "iso", lambda message: message.time_ms)
        if letter == "T":
            return _compile_time(modifier or "iso", lambda message: message.facts.time_ms)
        if letter in _NUMBERS:
            return _compile_number(letter, modifier)
        if letter in _TEXTS:
            return _compile_payload(_text_getter(letter), modifier)
        if letter == "k":
            return _compile_payload(lambda message: message.facts.key or b"", modifier)
        if letter == "s":
            return _compile_payload(lambda message: message.facts.payload, modifier)
    except _UnknownModifierError as error:
        raise _marked(f"unknown modifier '{{{modifier}}}'", match, text, error.known) from error
    raise _marked(f"unknown token '%{letter}'", match, text, [])


class _UnknownModifierError(Exception):
    """A modifier does not exist, or does not apply to its token."""

    def __init__(self, known: tuple[str, ...]) -> None:
        super().__init__(known)
        self.known = list(known)


def _marked(problem: str, match: re.Match[str], text: str, known: list[str]) -> UsageError:
    """Return the error with the format as a hint, and a mark below the token."""
    hints = [text, " " * match.start() + "^"]
    if known:
        hints.append(f"modifiers here: {', '.join(known)}")
    return UsageError(f"{problem} at column {match.start() + 1} of --format", *hints)


def _literal_percent(modifier: str | None) -> Render:
    data = b"%" if modifier is None else b"%" + unescape("{" + modifier + "}")
    return lambda message: data


def _text_getter(letter: str) -> Callable[[Received], bytes]:
    get = _TEXTS[letter]
    return lambda message: get(message).encode("utf-8", "surrogateescape")


def _compile_number(letter: str, modifier: str | None) -> Render:
    get = _NUMBERS[letter]
    if modifier is None and letter == "R":
        modifier = "big32"
    if modifier is None:
        return lambda message: b"%d" % get(message)
    if modifier == "comma":
        return lambda message: f"{get(message):,}".encode()
    if modifier.startswith("width:") and modifier[6:].isdecimal():
        width = int(modifier[6:])
        return lambda message: f"{get(message):>{width}}".encode()
    if modifier not in _PACKED:
        raise _UnknownModifierError(_NUMBER_MODIFIERS)
    code, bits = _PACKED[modifier]
    mask = (1 << bits) - 1
    if code[0] in "<>":
        # Unsigned: of a number that is too large the low bits are packed.
        packer = struct.Struct(code.upper())
        return lambda message: packer.pack(get(message) & mask)
    return lambda message: format(get(message) & mask, code).encode()


def _compile_time(modifier: str, get: Callable[[Received], int | None]) -> Render:
    write: Callable[[int], str]
    if modifier == "ms":
        write = str
    elif modifier == "iso":
        write = format_time
    elif "%" in modifier:
        write = lambda ms: f"{datetime.fromtimestamp(ms / 1000, UTC).astimezone():{modifier}}"  # noqa: E731
    else:
        raise _UnknownModifierError(("ms", "iso", "%FT%T%z and other strftime codes"))
    return lambda message: b"-" if (ms := get(message)) is None else write(ms).encode()


def _headers_text(facts: MessageFacts) -> str:
    headers = [header_text(*one) for one in facts.record.headers] if facts.record else []
    if facts.envelope is not None:
        headers += [header_text(*one) for one in facts.envelope.headers]
    return ",".join(headers) or "-"


def _compile_payload(get: Callable[[Received], bytes], modifier: str | None) -> Render:
    if modifier is None:
        return get
    change = _payload_change(modifier)
    return lambda message: change(get(message))


def _payload_change(modifier: str) -> Callable[[bytes], bytes]:
    if modifier in _PAYLOAD_WORDS:
        return _PAYLOAD_WORDS[modifier]
    name, _, argument = modifier.partition(":")
    if name == "trunc" and argument.isdecimal():
        limit = int(argument)
        return lambda data: data[:limit]
    if name == "unpack" and argument:
        return _unpacker(argument)
    if name == "jq" and argument.startswith("."):
        path = field_path(argument)
        return lambda data: _json_text(data, path)
    raise _UnknownModifierError(_PAYLOAD_MODIFIERS)


def _unpacker(codes: str) -> Callable[[bytes], bytes]:
    try:
        layout = struct.Struct(codes)
    except struct.error as error:
        raise UsageError(f"not struct codes: '{codes}' ({error})") from error

    def unpack(data: bytes) -> bytes:
        if len(data) < layout.size:
            return b"-"
        return " ".join(map(str, layout.unpack_from(data))).encode()

    return unpack


def _json_text(data: bytes, path: list[str]) -> bytes:
    """Return the value at a path of a JSON payload, `null` if there is none."""
    text = text_of(value_at(read_json(data), path))
    return b"null" if text is None else text.encode("utf-8", "replace")


PAYLOAD_TEXTS: dict[PayloadForm, Callable[[bytes], str]] = {
    "utf8": lambda payload: payload.decode("utf-8", "backslashreplace"),
    "hex": bytes.hex,
    "base64": lambda payload: binascii.b2a_base64(payload, newline=False).decode(),
    "escape": escape,
}


def payload_field(name: str, payload: bytes, form: PayloadForm, *, is_json: bool) -> dict[str, Any]:
    """Return the field of a row for a payload, or for a part of it of that name."""
    if is_json and form != "escape":  # under the name by which `produce --jsonl` reads it
        key, text = encode_payload(payload, "auto" if form == "utf8" else form, name)
        return {key: text}
    return {name: PAYLOAD_TEXTS[form](payload)}

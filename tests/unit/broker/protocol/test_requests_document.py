"""The field tables beside the code are written by hand; what can be compared is compared."""

from __future__ import annotations

import re
from pathlib import Path

import broker.protocol
from broker.errors import NAME_OF_CODE
from broker.protocol.client_requests import (
    MAX_PATTERN_BYTES,
    Acks,
    OffsetKind,
    PayloadFilter,
)
from broker.protocol.codec import MAX_NESTING
from broker.protocol.compression import MAX_DECOMPRESSED_BYTES, Codec, codec_of
from broker.protocol.layouts import EXTENSION_REQUESTS
from broker.protocol.requests import RequestType
from broker.server.requests.pattern_filter import KEPT_BYTES, SCAN_BYTES

DOCUMENT = Path(broker.protocol.__path__[0], "REQUESTS.md").read_text(encoding="utf-8")


def rows_under(head: str) -> list[list[str]]:
    """The cells of the table with this head, without the head."""
    lines = DOCUMENT[DOCUMENT.index(f"\n| {head} |") + 1 :].splitlines()[2:]
    end = next(n for n, line in enumerate([*lines, ""]) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]


def test_types_when_listed_in_the_document_then_are_those_of_the_code() -> None:
    rows = rows_under("type | name | response is sent")

    assert {int(number): name for number, name, _ in rows} == {
        int(number): RequestType(number).name for number, _ in EXTENSION_REQUESTS
    }


def test_types_when_listed_in_the_document_then_each_has_a_section() -> None:
    headings = [line[3:] for line in DOCUMENT.splitlines() if line.startswith("## ")]

    assert [heading for heading in headings if heading[0].isdigit()] == [
        f"{int(number)} {RequestType(number).name}"
        for number, version in sorted(EXTENSION_REQUESTS)
        if version == 0
    ]


def test_versions_when_beyond_0_then_are_described() -> None:
    headings = re.findall(r"^(?:## (\d+) |### Version (\d+))", DOCUMENT, re.MULTILINE)
    described = []
    number = 0
    for type_text, version_text in headings:
        number = int(type_text or number)
        described.append((number, int(version_text or 0)))

    assert described == sorted(EXTENSION_REQUESTS)


def test_filters_when_described_in_the_document_then_are_those_of_the_code() -> None:
    assert f"at most {MAX_PATTERN_BYTES} bytes long" in DOCUMENT
    assert "| flags | int8 | 1: ignore the case of letters; 2: the messages that" in DOCUMENT
    assert PayloadFilter(b"", ignore_case=True).encode()[0] == 1
    assert PayloadFilter(b"", invert=True).encode()[0] == 2
    assert (SCAN_BYTES, KEPT_BYTES) == (4 << 20, 1 << 20)
    text = DOCUMENT.replace("\n", " ")
    for limit in ("at most 4 MiB of the logs", "at most 1 MiB."):
        assert limit in text


def test_error_codes_when_listed_in_the_document_then_are_those_of_the_code() -> None:
    rows = rows_under("code | error | meaning")

    assert {int(code): name for code, name, _ in rows} == NAME_OF_CODE


def test_offset_kinds_when_listed_in_the_document_then_are_those_of_the_code() -> None:
    rows = rows_under("kind | name | gives")

    assert {int(number): name for number, name, _ in rows} == {
        int(kind): kind.name for kind in OffsetKind
    }


def test_acks_when_described_in_the_document_then_are_those_of_the_code() -> None:
    assert "| acks | int16 | 0 no response, 1 written, -1 committed" in DOCUMENT
    names = {int(acks): acks.name for acks in Acks}
    assert names == {0: "NONE", 1: "WRITTEN", -1: "COMMITTED", -2: "AUTO"}


def test_codecs_when_listed_in_the_document_then_are_those_of_the_code() -> None:
    found = {}
    for extension, low, name, _ in rows_under("bits 3-2 | bits 1-0 | codec | payload"):
        for high in range(4) if extension == "any" else map(int, extension.split(",")):
            found[high << 2 | int(low)] = Codec[name] if name else None

    assert found == {attributes: codec_of(attributes) for attributes in range(16)}


def test_limits_when_described_in_the_document_then_are_those_of_the_code() -> None:
    assert (MAX_NESTING, MAX_DECOMPRESSED_BYTES) == (8, 64 << 20)
    assert "down to eight levels" in DOCUMENT
    assert "at most 64 MiB" in DOCUMENT.replace("\n", " ")

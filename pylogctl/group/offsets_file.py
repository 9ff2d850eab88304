"""Files of offsets.

Five formats are read, recognized by how they start: 0.7's export `/consumers/G/offsets/T/B-P:N`
(also written here), JSON lines, a JSON document, CSV with a header, and `TOPIC PARTITION OFFSET`
lines.

Source: Kafka 0.7 `ExportZkOffsets`, `ImportZkOffsets`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from broker.admin.group_plans import OffsetRecord
from broker.partition_patterns import parse_partition
from broker.topic import TopicPartition
from broker.zk import paths
from pylogctl.cli.environment import UsageError

_ZK07_LINE = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/([0-9]+-[0-9]+):(-?[0-9]+)")
_OFFSET = re.compile(r"-?[0-9]+")
_SHOWN_LENGTH = 80
_SHOWN_NUMBERS = 20


def zk07_line(group: str, partition: TopicPartition, text: str) -> str:
    """Return a line of 0.7's export tool, without the line end; `text` is the node's value."""
    return f"{paths.offset(group, partition)}:{text}"


def parse_entries(text: str, name: str) -> list[OffsetRecord]:
    """Return the offsets in a file's text; skip empty lines and those that start with `#`."""
    if (document := _document(text)) is not None:
        parse: Callable[[str, int], OffsetRecord] = _parse_record_text
        lines = [(number, json.dumps(one)) for number, one in enumerate(document, start=1)]
        return _parse_lines(lines, parse, f"record {{}} of '{name}'")
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if lines and _is_csv_header(lines[0][1]):
        header = [column.strip() for column in lines[0][1].split(",")]
        return _parse_lines(lines[1:], _csv_parser(header), f"line {{}} of '{name}'")
    return _parse_lines(lines, _parse_line, f"line {{}} of '{name}'")


def _document(text: str) -> list[Any] | None:
    """Return the records of a JSON document; None if the text is not one."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        document = json.loads(text)
    except ValueError:
        return None
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        return list(document["data"])
    return document if isinstance(document, list) else None


def _is_csv_header(line: str) -> bool:
    columns = {column.strip() for column in line.split(",")}
    return {"topic", "partition"} <= columns and bool(columns & {"offset", "new"})


def _parse_lines(
    lines: Iterable[tuple[int, str]], parse: Callable[[str, int], OffsetRecord], line_name: str
) -> list[OffsetRecord]:
    entries, broken = [], []
    for number, text in lines:
        try:
            entries.append(parse(text, number))
        except (ValueError, KeyError, TypeError, csv.Error, UsageError):
            broken.append((number, text))
    if broken:
        number, text = broken[0]
        shown = text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."
        raise UsageError(
            f"{line_name.format(number)} is not an offset: '{shown}'",
            *_other_lines([number for number, _ in broken[1:]]),
            "valid: /consumers/G/offsets/T/0-0:123, T 0-0 123, JSON lines, CSV",
        )
    return entries


def _other_lines(numbers: Sequence[int]) -> list[str]:
    """Return a hint with the numbers of the other malformed lines, if there are any."""
    if not numbers:
        return []
    more = len(numbers) - _SHOWN_NUMBERS
    text = ", ".join(map(str, numbers[:_SHOWN_NUMBERS])) + (f" and {more} more" if more > 0 else "")
    return [f"neither are these: {text}"]


def _parse_line(text: str, number: int) -> OffsetRecord:
    if text.startswith("/"):
        return _parse_zk07(text, number)
    if text.startswith("{"):
        return _parse_record_text(text, number)
    topic, partition, offset = text.split()
    return OffsetRecord(None, topic, parse_partition(partition), _parse_offset(offset), number)


def _parse_zk07(text: str, number: int) -> OffsetRecord:
    found = _ZK07_LINE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    group, topic, partition, offset = found.groups()
    return OffsetRecord(group, topic, parse_partition(partition), int(offset), number)


def _parse_record_text(text: str, number: int) -> OffsetRecord:
    record = json.loads(text)
    if not isinstance(record, dict):
        raise TypeError(text)
    return _entry_of(record, number)


def _csv_parser(header: list[str]) -> Callable[[str, int], OffsetRecord]:
    def parse(text: str, number: int) -> OffsetRecord:
        cells = next(csv.reader([text], strict=True))
        return _entry_of(dict(zip(header, cells, strict=True)), number)

    return parse


def _entry_of(record: Mapping[str, Any], number: int) -> OffsetRecord:
    """Return the entry of an exported record, or of a saved plan with `current` and `new`."""
    is_plan = "new" in record
    partition = str(record["partition"])
    if "broker" in record:
        partition = f"{int(record['broker'])}-{partition}"
    return OffsetRecord(
        str(record["group"]) if record.get("group") else None,
        str(record["topic"]),
        parse_partition(partition),
        _parse_offset(record["new"] if is_plan else record["offset"]),
        number,
        checks_current=is_plan and "current" in record,
        current=_parse_offset(record["current"]) if is_plan and "current" in record else None,
    )


def _parse_offset(value: object) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not _OFFSET.fullmatch(str(value)):
        raise ValueError(value)
    return int(str(value))

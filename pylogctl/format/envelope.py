"""Messages as JSON objects (`--jsonl`), and the facts of a message that was read."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from broker.errors import ArgumentError, did_you_mean
from broker.partition_patterns import PartitionPattern, parse_partition
from broker.protocol.envelope import Envelope, open_envelope
from broker.times import parse_time_ms
from broker.topic import TopicPartition
from broker.units import END_MS, format_time
from pylogctl.cli.environment import CliError, ExitStatus, UsageError

if TYPE_CHECKING:
    from broker.protocol.message_set import Message
    from broker.protocol.record_batch import Record

_dumps = json.JSONEncoder(separators=(",", ":")).encode
FIELDS = (
    "topic", "broker", "partition", "offset", "next_offset", "inner", "size", "crc", "codec",
    "timestamp", "host", "producer", "sequence", "key", "key_b64", "key_hex", "headers",
    "payload", "payload_b64", "payload_hex",
)  # fmt: skip
PayloadEncoding = Literal["auto", "utf8", "base64", "hex"]
"""The words of `--payload-encoding`; auto: text if the payload is valid UTF-8, else base64."""
_PAYLOAD_FIELDS = ("payload", "payload_b64", "payload_hex")


class MessageFacts(NamedTuple):
    """A message that was read, with its position."""

    partition: TopicPartition
    offset: int  # of its entry
    next_offset: int  # where reading resumes after it
    inner: int  # its index in a wrapper
    crc: int
    codec: str
    magic: int
    payload: bytes  # without the envelope
    envelope: Envelope | None = None
    record: Record | None = None  # of Kafka, which has more than a payload

    @property
    def key(self) -> bytes | None:
        """Return the key of a record; None if it has none, as messages of 0.7."""
        return None if self.record is None else self.record.key

    @property
    def payload_bytes(self) -> int:
        """Return the size of the payload, -1 if it is null."""
        is_null = self.record is not None and self.record.value is None
        return -1 if is_null else len(self.payload)

    @property
    def time_ms(self) -> int | None:
        """Return the time of a record, or of the envelope; None if there is none."""
        if self.record is not None and (time_ms := time_of(self.record.timestamp)) is not None:
            return time_ms
        return None if self.envelope is None else self.envelope.time_us // 1000

    @property
    def stored(self) -> bytes:
        """Return the payload as it is in the log."""
        return self.payload if self.envelope is None else self.envelope.wrap(self.payload)


def time_of(timestamp: int) -> int | None:
    """Return the timestamp of a record; None for -1, which is none, and beyond the year 9999."""
    return timestamp if 0 <= timestamp < END_MS else None


def header_text(name: str, value: bytes | None) -> str:
    """Return a header as `name=value`, without the sign if the value is null."""
    return name if value is None else f"{name}={value.decode('utf-8', 'backslashreplace')}"


def facts_of(partition: TopicPartition, message: Message) -> MessageFacts:
    """Return the facts of a message of a partition."""
    codec = message.codec.name.lower()
    envelope, payload = None, message.payload
    if not partition.has_records:
        envelope, payload = open_envelope(payload)
    kind = message.crc, codec, message.magic
    return MessageFacts(partition, *message[:3], *kind, payload, envelope)


class InputMessage(NamedTuple):
    """A message to produce; `partition` is None if the line names none.

    A record without a value has no payload; a topic of 0.7 cannot store it.
    """

    payload: bytes | None
    partition: PartitionPattern | None
    record: Record | None = None  # for a topic of format `kafka`, if that was asked for


def write_envelope(message: MessageFacts, encoding: PayloadEncoding) -> bytes:
    """Return a message as one line of ASCII JSON with a fixed order of keys."""
    try:
        key, text = encode_payload(message.payload, encoding)
    except UnicodeDecodeError as error:
        raise CliError(
            ExitStatus.CORRUPT,
            f"{message.partition}: the payload at offset {message.offset} is not UTF-8",
            "try: --payload-encoding base64",
        ) from error
    is_null = message.payload_bytes < 0
    fields = {
        "topic": message.partition.topic,
        **({} if message.partition.has_records else {"broker": message.partition.home}),
        "partition": message.partition.index,
        "offset": message.offset,
        "next_offset": message.next_offset,
        "inner": message.inner,
        "size": None if is_null else len(message.payload),
        "crc": f"{message.crc:08x}",
        "codec": message.codec,
        **_envelope_fields(message.envelope),
        **_record_fields(message.record, encoding),
        key: None if is_null else text,
    }
    return _dumps(fields).encode() + b"\n"


def _envelope_fields(envelope: Envelope | None) -> dict[str, object]:
    if envelope is None:
        return {}
    return {
        "timestamp": format_time(envelope.time_us // 1000),
        "host": envelope.host,
        "producer": f"{envelope.producer:08x}",
        "sequence": envelope.sequence,
    }


def _record_fields(record: Record | None, encoding: PayloadEncoding) -> dict[str, object]:
    if record is None:
        return {}
    fields: dict[str, object] = {}
    if (time_ms := time_of(record.timestamp)) is not None:
        fields["timestamp"] = format_time(time_ms)
    if record.key is not None:
        fields |= _field("key", record.key, encoding)
    if record.headers:
        fields["headers"] = [
            {"key": name, **({"value": None} if one is None else _field("value", one, encoding))}
            for name, one in record.headers
        ]
    return fields


def _field(name: str, data: bytes, encoding: PayloadEncoding) -> dict[str, object]:
    """Return the field of a key or a header; one that is not text is in base64."""
    given, text = encode_payload(data, "auto" if encoding == "utf8" else encoding, name)
    return {given: text}


def encode_payload(
    payload: bytes, encoding: PayloadEncoding, name: str = "payload"
) -> tuple[str, str]:
    """Return the name and the text of the field for a payload, from which it can be read again."""
    if encoding == "hex":
        return f"{name}_hex", payload.hex()
    if encoding != "base64":
        try:
            return name, payload.decode("utf-8")
        except UnicodeDecodeError:
            if encoding == "utf8":
                raise
    return f"{name}_b64", base64.b64encode(payload).decode()


def read_envelope(
    line: bytes, number: int, *, strict: bool = False, has_record: bool = False
) -> InputMessage:
    """Return the message to produce of line `number`.

    The line is a JSON object with one of `payload`, `payload_b64`, `payload_hex` (null counts as
    none, but of `payload` alone it is a record without a value), and optionally `partition` (and
    `broker`); with `has_record` also `key`, `headers` and `timestamp`. Other fields are ignored;
    with `strict`, unknown ones are refused.
    """
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"line {number}: not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise UsageError(f"line {number}: not a JSON object")
    given = [key for key in _PAYLOAD_FIELDS if fields.get(key) is not None]
    is_null = not given and "payload" in fields
    if len(given) != 1 and not is_null:
        found = " and ".join(given) or "none"
        raise UsageError(
            f"line {number}: exactly one payload field is needed, found {found}",
            f"fields: {', '.join(_PAYLOAD_FIELDS)}",
        )
    if strict and (unknown := [key for key in fields if key not in FIELDS]):
        raise UsageError(
            f"line {number}: unknown field '{unknown[0]}'{did_you_mean(unknown[0], FIELDS)}"
        )
    payload = None if is_null else _decode_payload(given[0], fields[given[0]], number)
    record = _record_of(fields, payload, number) if has_record else None
    return InputMessage(payload, _partition_of(fields, number), record)


def _record_of(fields: dict[str, Any], payload: bytes | None, number: int) -> Record:
    """Return the record of a line; its time is -1 if the line has none."""
    from broker.protocol.record_batch import NO_TIMESTAMP, Record  # late: few topics have records

    time_ms = NO_TIMESTAMP
    if (given := fields.get("timestamp")) is not None:
        try:
            time_ms = parse_time_ms(str(given), now_ms=0)
        except ArgumentError as error:
            raise UsageError(f"line {number}: {error}", *error.hints) from error
    headers = fields.get("headers") or []
    if not isinstance(headers, list) or not all(isinstance(one, dict) for one in headers):
        raise UsageError(f"line {number}: 'headers' is not a list of objects")
    found = []
    for one in headers:
        if not isinstance(name := one.get("key"), str):
            raise UsageError(f"line {number}: a header has no 'key'")
        found.append((name, _bytes_field(one, "value", number)))
    return Record(0, time_ms, _bytes_field(fields, "key", number), payload, tuple(found))


def _bytes_field(fields: dict[str, Any], name: str, number: int) -> bytes | None:
    for key in (name, f"{name}_b64", f"{name}_hex"):
        if fields.get(key) is not None:
            return _decode_payload(key, fields[key], number)
    return None


def _decode_payload(key: str, text: Any, number: int) -> bytes:
    if not isinstance(text, str):
        raise UsageError(f"line {number}: '{key}' is not a string")
    try:
        if key.endswith("_hex"):
            return binascii.unhexlify(text)
        if key.endswith("_b64"):
            return base64.b64decode(text, validate=True)
        return text.encode("utf-8")
    except ValueError as error:
        raise UsageError(f"line {number}: '{key}' cannot be decoded: {error}") from error


def _partition_of(fields: dict[str, Any], number: int) -> PartitionPattern | None:
    partition = fields.get("partition")
    if partition is None:
        return None
    text = str(partition)
    if "broker" in fields and "-" not in text:
        text = f"{fields['broker']}-{text}"
    try:
        return parse_partition(text)
    except ArgumentError as error:
        raise UsageError(f"line {number}: {error}", *error.hints) from error

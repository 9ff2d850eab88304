"""The JSON object of a message."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.record_batch import Record
from broker.topic import TopicPartition
from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.format.envelope import MessageFacts, PayloadEncoding, read_envelope, write_envelope


def _message(payload: bytes) -> MessageFacts:
    return MessageFacts(TopicPartition("t", 2, 1), 120, 153, 0, 0x9A3E1B, "none", 1, payload)


@given(
    st.binary(max_size=200) | st.text(max_size=50).map(lambda text: text.encode("utf-8", "ignore")),
    st.sampled_from(["auto", "base64", "hex"]),
)
def test_envelope_given_any_payload_is_read_back(payload: bytes, encoding: PayloadEncoding) -> None:
    line = write_envelope(_message(payload), encoding)
    assert line.isascii()
    assert line.count(b"\n") == 1
    read = read_envelope(line, 1, strict=True)
    assert read.payload == payload
    assert read.partition is not None
    assert read.partition.matches(TopicPartition("t", 2, 1))


def test_envelope_given_text_has_a_fixed_order_of_keys() -> None:
    assert write_envelope(_message(b"hello"), "auto") == (
        b'{"topic":"t","broker":2,"partition":1,"offset":120,"next_offset":153,"inner":0,'
        b'"size":5,"crc":"009a3e1b","codec":"none","payload":"hello"}\n'
    )


def test_envelope_given_other_bytes_uses_base64_only() -> None:
    fields = json.loads(write_envelope(_message(b"\xff\xfe\x00\x01"), "auto"))
    assert fields["payload_b64"] == "//4AAQ=="
    assert "payload" not in fields


def test_envelope_given_utf8_demanded_and_other_bytes_fails() -> None:
    with pytest.raises(CliError) as caught:
        write_envelope(_message(b"\xff"), "utf8")
    assert caught.value.status is ExitStatus.CORRUPT


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"nope", "line 7: not JSON"),
        (b"[1]", "line 7: not a JSON object"),
        (b"{}", "line 7: exactly one payload field is needed, found none"),
        (b'{"payload":"a","payload_hex":"00"}', "line 7: exactly one payload field"),
        (b'{"payload":1}', "line 7: 'payload' is not a string"),
        (b'{"payload_hex":"0"}', "line 7: 'payload_hex' cannot be decoded"),
        (b'{"payload_b64":"$"}', "line 7: 'payload_b64' cannot be decoded"),
        (b'{"payload":"a","partition":"x"}', "line 7: not a partition: 'x'"),
        (b"[" * 100_000, "line 7: not JSON"),
    ],
)
def test_read_envelope_given_a_bad_line_names_it(line: bytes, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_envelope(line, 7)
    assert caught.value.message.startswith(message)


def test_read_envelope_given_a_record_without_a_value_has_no_payload() -> None:
    line = b'{"payload":null,"payload_b64":null,"key":"k","headers":[]}'
    assert read_envelope(line, 1).payload is None
    assert read_envelope(line.replace(b'64":null', b'64":"YQ=="'), 1).payload == b"a"


@pytest.mark.parametrize(("payload", "value"), [("null", None), ('"a"', b"a")])
def test_read_envelope_when_a_record_is_asked_for_then_has_what_the_line_has(
    payload: str, value: bytes | None
) -> None:
    now_ms = 1_700_000_000_123
    headers = '[{"key":"h","value_hex":"01"},{"key":"n"}]'
    line = f'{{"payload":{payload},"key_b64":"aw==","headers":{headers},"timestamp":{now_ms}}}'
    record = read_envelope(line.encode(), 1, has_record=True).record
    assert record == Record(0, now_ms, b"k", value, (("h", b"\x01"), ("n", None)))
    assert read_envelope(line.encode(), 1).record is None
    bare = read_envelope(b'{"payload":"a"}', 1, has_record=True).record
    assert bare == Record(0, -1, None, b"a")


def test_read_envelope_given_unknown_fields_ignores_them_unless_strict() -> None:
    line = b'{"payload":"a","ofset":1}'
    assert read_envelope(line, 1).payload == b"a"
    with pytest.raises(UsageError, match="unknown field 'ofset'; did you mean 'offset'"):
        read_envelope(line, 1, strict=True)


@given(st.binary(max_size=60))
def test_read_envelope_given_any_bytes_returns_or_raises_usage_error(line: bytes) -> None:
    try:
        read_envelope(line, 1)
    except UsageError as error:
        assert error.message.startswith("line 1")

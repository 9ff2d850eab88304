"""The envelope in front of payloads: its bytes, and what is not one."""

from __future__ import annotations

from datetime import UTC, datetime
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.envelope import MAGIC, MAX_HOST_BYTES, Envelope, open_envelope
from broker.protocol.message_set import wrap
from broker.topic import TopicPartition
from tests.support.codec_engines import Engine

PARTITION = TopicPartition("t", 2, 1)
ENVELOPE = Envelope(1_763_625_600_250_001, "wéb1", 0x9A3E1B2C, 17)
GOLDEN = bytes.fromhex(
    "f8504c45" "01" "05" "00064402156b7091" "9a3e1b2c" "0000000000000011" "77c3a96231"
)  # fmt: skip
_ENVELOPES = st.builds(
    Envelope,
    st.integers(0, 253_402_300_800_000_000 - 1),
    st.text(st.characters(codec="utf-8"), max_size=63),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
)


def test_envelope_when_written_then_has_the_bytes_of_its_version() -> None:
    assert ENVELOPE.wrap(b"hello") == GOLDEN + bytes.fromhex("9b945969") + b"hello"
    assert ENVELOPE.time == datetime(2025, 11, 20, 8, 0, 0, 250_001, UTC)


@given(_ENVELOPES, st.binary(max_size=50))
def test_envelope_when_written_then_is_read_again(envelope: Envelope, payload: bytes) -> None:
    assert open_envelope(envelope.wrap(payload)) == (envelope, payload)


@given(_ENVELOPES, _ENVELOPES, st.binary(max_size=50))
def test_envelope_when_around_another_then_only_the_outer_one_is_removed(
    outer: Envelope, inner: Envelope, payload: bytes
) -> None:
    assert open_envelope(outer.wrap(inner.wrap(payload))) == (outer, inner.wrap(payload))


@given(_ENVELOPES, st.data())
def test_envelope_when_a_byte_differs_or_lacks_then_is_a_payload(
    envelope: Envelope, data: st.DataObject
) -> None:
    whole = bytearray(envelope.wrap(b""))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))

    assert open_envelope(bytes(whole)) == (None, bytes(whole))
    assert open_envelope(cut) == (None, cut)


@given(st.binary(max_size=80))
def test_payload_when_it_starts_like_an_envelope_then_stays_as_it_is(rest: bytes) -> None:
    assert open_envelope(MAGIC + rest) == (None, MAGIC + rest)


def _with_crc(head: bytes) -> bytes:
    return head + crc32(head).to_bytes(4, "big")


@pytest.mark.parametrize(
    "stored",
    [
        _with_crc(GOLDEN.replace(b"E\x01", b"E\x02")),  # another version
        _with_crc(GOLDEN[:6] + b"\xff" * 8 + GOLDEN[14:]),  # a time that no calendar has
        _with_crc(GOLDEN[:-5] + b"\xff" * 5),  # a host that is not UTF-8
    ],
)
def test_envelope_when_its_values_are_not_known_then_is_a_payload(stored: bytes) -> None:
    assert open_envelope(stored) == (None, stored)


def test_host_when_very_long_then_is_cut_between_characters() -> None:
    found, _ = open_envelope(ENVELOPE._replace(host="é" * 200).wrap(b""))
    assert found is not None
    assert found.host == "é" * (MAX_HOST_BYTES // 2)


def test_messages_when_some_have_an_envelope_then_are_read_with_it(engine: Engine) -> None:
    stored = [b"plain", ENVELOPE.wrap(b"wrapped"), MAGIC + b"no envelope", MAGIC]
    for data in (encode(stored), bytes(wrap(encode(stored), Codec.GZIP))):
        found, _, _ = engine.decode_messages(data, 0, "t", PARTITION)

        values = [b"plain", b"wrapped", MAGIC + b"no envelope", MAGIC]
        assert [one.value for one in found] == values
        assert [one.envelope for one in found] == [None, ENVELOPE, None, None]
        assert found[1].timestamp == ENVELOPE.time
        assert found[1].headers == (
            ("host", "wéb1".encode()),
            ("producer", b"9a3e1b2c"),
            ("sequence", b"17"),
        )
    assert engine.Message("t", PARTITION, 0, 9, b"x", 0, ENVELOPE) != engine.Message(
        "t", PARTITION, 0, 9, b"x"
    )

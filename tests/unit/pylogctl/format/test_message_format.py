"""Format strings of messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.envelope import Envelope
from broker.topic import TopicPartition
from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.format.envelope import MessageFacts
from pylogctl.format.message_format import PRESETS, Received, compile_format

PAYLOAD = b'{"a":{"b":[1,"x"]}}\xff'
MESSAGE = Received(
    MessageFacts(
        *(TopicPartition("orders", 2, 1), 120, 153, 3, 0x9A3E1B2C, "gzip", 1, b"hello"),
        Envelope(1_763_625_601_000_000, "web1", 15, 7),
    ),
    number=1234,
    time_ms=1_763_625_600_250,
    group="g",
)


def _format(text: str, payload: bytes = b"hello") -> bytes:
    facts = MESSAGE.facts._replace(payload=payload)
    return compile_format(text)(MESSAGE._replace(facts=facts))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%s", b"hello"),
        ("%S", b"5"),
        ("%R", b"\0\0\0\5"),
        ("%o %n %I %i", b"120 153 3 1234"),
        ("%t[%p] %b", b"orders[2-1] 2"),
        ("%c %z %m %g", b"9a3e1b2c gzip 1 g"),
        ("100%%\\n\\x00", b"100%\n\0"),
        ("%s{hex}", b"68656c6c6f"),
        ("%s{base64}", b"aGVsbG8="),
        ("%s{upper}", b"HELLO"),
        ("%s{trunc:2}", b"he"),
        ("%s{json}", b'"hello"'),
        ("%s{unpack:>IB}", b"1751477356 111"),
        ("%s{unpack:>Q}", b"-"),
        ("%o{hex32}", b"00000078"),
        ("%o{hex8}%o{hex16}%o{hex64}", b"7800780000000000000078"),
        ("%o{big32}", b"\0\0\0\x78"),
        ("%o{little32}", b"\x78\0\0\0"),
        ("%o{big64}", b"\0\0\0\0\0\0\0\x78"),
        ("%i{comma}|%i{width:6}", b"1,234|  1234"),
        ("%d{ms}", b"1763625600250"),
        ("%d", b"2025-11-20T08:00:00.250Z"),
        ("%d{%Y}", b"2025"),
        ("%T %h", b"2025-11-20T08:00:01.000Z host=web1,producer=0000000f,sequence=7"),
        ("%T{ms} %T{%Y}", b"1763625601000 2025"),
        ("%%{x}", b"%{x}"),
    ],
)
def test_format_given_a_token_writes_its_value(text: str, expected: bytes) -> None:
    assert _format(text) == expected


def test_format_given_a_payload_of_other_bytes_changes_it_only_when_asked() -> None:
    assert _format("%s", PAYLOAD) == PAYLOAD
    assert _format("%s{utf8}", b"a\xff") == b"a\xef\xbf\xbd"
    assert _format("%s{esc}", b"a\n\xff\\") == rb"a\n\xff\\"


def test_format_given_a_dotted_path_reads_json() -> None:
    assert _format("%s{jq:.a.b.1}", b'{"a":{"b":[1,"x"]}}') == b"x"
    assert _format("%s{jq:.a}", b'{"a":1,"a":{"b":[1.10,"x",null]}}') == b'{"b":[1.10,"x",null]}'
    assert _format("%s{jq:.a.c}", b'{"a":{}}') == b"null"
    assert _format("%s{jq:.a}", b"no json") == b"null"


@pytest.mark.parametrize("letter", ["k", "K"])
def test_format_given_what_is_not_stored_is_unsupported(letter: str) -> None:
    with pytest.raises(CliError, match="stores no keys") as caught:
        compile_format(f"%{letter}")
    assert caught.value.status is ExitStatus.UNSUPPORTED


def test_format_given_an_unknown_token_points_at_it() -> None:
    with pytest.raises(UsageError) as caught:
        compile_format("%t %q")
    assert caught.value.message == "unknown token '%q' at column 4 of --format"
    assert caught.value.hints == ("%t %q", "   ^")


@pytest.mark.parametrize("text", ["%s{rot13}", "%o{hex}", "%d{iso8601}", "%s{trunc:x}", "%"])
def test_format_given_an_unknown_modifier_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="unknown"):
        compile_format(text)


def test_format_given_an_unknown_preset_guesses() -> None:
    with pytest.raises(UsageError, match="no format '@ful'; did you mean '@full'"):
        compile_format("@ful")


@pytest.mark.parametrize("name", PRESETS)
def test_format_given_a_preset_writes_a_message(name: str) -> None:
    assert b"hello" in _format(name)


@given(st.text(alphabet="%sSRotd{}hex:jq.\\nx0", max_size=20))
def test_format_given_any_text_compiles_or_raises_cli_error(text: str) -> None:
    try:
        compile_format(text)(MESSAGE)
    except CliError as error:
        assert error.status in (ExitStatus.USAGE, ExitStatus.UNSUPPORTED)

"""What the known nodes of the registry say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylogctl.zk.document import describe_value


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("/brokers/ids/0", b"box-17:127.0.0.1:9092", "127.0.0.1:9092 (creator box-17)"),
        ("/brokers/topics/t/0", b"1", "1 partition"),
        ("/brokers/topics/t/0", b"3", "3 partitions"),
        ("/consumers/g/offsets/t/0-0", b"4096", "offset 4096"),
        ("/consumers/g/owners/t/0-0", b"g_box-1-0", "owned by g_box-1-0"),
        ("/consumers/g/ids/c", b'{ "t": 2 }', "t: 2 streams"),
        ("/consumers/g/ids/c", b"*1*.*", "topics /.*/, 1 streams"),
        ("/consumers/g/ids/c", b"!1!x", "all but /x/, 1 streams"),
        ("/other", b"text", "text"),
        ("/other", b"\x00\xff\n", r"\0\xff\n"),
        ("/brokers/ids/0", b"nonsense", "nonsense"),
        ("/brokers/ids/0", b"", ""),
    ],
)
def test_known_nodes_are_decoded_and_others_escaped(path: str, value: bytes, text: str) -> None:
    assert describe_value(path, value) == text


def test_raw_never_decodes() -> None:
    assert describe_value("/brokers/topics/t/0", b"3", raw=True) == "3"


@given(
    st.sampled_from(["/brokers/ids/0", "/brokers/topics/t/0", "/consumers/g/ids/c", "/x"]),
    st.binary(max_size=60),
)
def test_any_value_is_one_printable_line(path: str, value: bytes) -> None:
    assert "\n" not in describe_value(path, value)

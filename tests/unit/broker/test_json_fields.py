"""Fields of messages in JSON, as they stand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.json_fields import MISSING, field_path, read_json, text_of, value_at


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ('{"a":{"b":"x"}}', "x"),
        ('{"a":{"b":1.10}}', "1.10"),
        ('{"a":{"b":12345678901234567890}}', "12345678901234567890"),
        ('{"a":{"b":1e400}}', "1e400"),
        ('{"a":{"b":true}}', "true"),
        ('{"a":{"b":null}}', None),
        ('{"a":{"c":1}}', None),
        ('{"a":{"b":1,"b":2}}', "2"),
        ('{"a":{"b":1},"a":{"b":2}}', "2"),
        ('{"a":{"b":[1.0,"é",{"c":-0}]}}', '[1.0,"é",{"c":-0}]'),
        ('{"a":{"b":{"ä":"ö"}}}', '{"ä":"ö"}'),
        ('{"a":{"b":' + "[" * 500 + "]" * 500 + "}}", None),
        ('{"a":["x",{"y":1}]}', None),
        ("[" * 100_000, None),
        ('{"a":{"b":1}', None),
        ("", None),
    ],
)
def test_field_when_read_then_is_as_it_stands(document: str, text: str | None) -> None:
    assert text_of(value_at(read_json(document.encode()), field_path(".a.b"))) == text


def test_field_when_its_path_has_an_index_then_is_of_the_list() -> None:
    document = read_json(b'{"a":[{"b":1.50}]}')
    assert value_at(document, ["a", "0", "b"]) == "1.50"
    assert value_at(document, ["a", "1"]) is MISSING
    assert value_at(document, ["a", "b"]) is MISSING


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    )
)
def test_text_when_a_document_is_written_again_then_is_the_same_document(value: object) -> None:
    text = text_of([read_json(json.dumps(value))])
    assert text is not None
    assert json.loads(text) == [value]

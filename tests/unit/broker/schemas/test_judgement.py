"""Schemas that would cost a broker its time or memory, and names that no reader takes."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from broker import errors
from broker.schemas import judgement
from broker.schemas.values import Compatibility, SchemaType


def judge(text: str, kind: SchemaType = SchemaType.AVRO) -> list[str]:
    return judgement.judge(
        judgement.Judge(), kind, judgement.normal_form(text), Compatibility.BACKWARD, []
    )


def fields(count: int) -> str:
    made = [{"name": f"f{n}", "type": "int"} for n in range(count)]
    return json.dumps({"type": "record", "name": "R", "fields": made})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param('"' + "x" * (10 << 20) + '"', "limit is 262144", id="10 MB"),
        pytest.param('"' + '\\"' * 131_000, "not JSON", id="quotes without an end"),
        pytest.param("[" * 200_000, "nested", id="brackets"),
        pytest.param('{"type":"array","items":' * 400 + '"int"' + "}" * 400, "nested", id="arrays"),
        pytest.param(fields(2001), "2000 fields", id="fields"),
        pytest.param('{"a": NaN}', "NaN", id="NaN"),
        pytest.param("", "not JSON", id="empty"),
    ],
)
def test_text_when_beyond_the_bounds_then_is_refused_at_once(text: str, reason: str) -> None:
    began_s = time.process_time()

    with pytest.raises(errors.InvalidSchemaError, match=reason):
        judgement.normal_form(text)

    assert time.process_time() - began_s < 10  # seconds, where a quadratic search takes minutes


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "record", "name": "R", "fields": [{"name": "a b", "type": "int"}]}',
        '{"type": "record", "name": "R R", "fields": []}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Unknown"}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "record", '
        '"name": "R", "fields": []}}]}',  # a name twice
        '{"type": "record", "name": "R"}',
        '{"type": "enum", "name": "E", "symbols": [1]}',
        "17",
        "{}",
    ],
)
def test_schema_when_invalid_then_the_refusal_says_so(text: str) -> None:
    with pytest.raises(errors.InvalidSchemaError, match="not a schema of AVRO: "):
        judge(text)


def test_schema_when_it_names_itself_or_has_all_fields_then_is_taken() -> None:
    node = '{"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}'
    assert judge(node) == []
    assert judge(fields(1900)) == []
    assert judge('{"type": "object"}', SchemaType.JSON) == []


def test_schema_when_files_here_have_names_of_packages_then_they_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "avro.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)

    assert judge(fields(1)) == []


def test_judge_when_stopped_then_ends_its_process() -> None:
    process = judgement.Judge()
    ended: list[BaseException] = []

    def run() -> None:
        try:
            process.run(b"")
            process.run(b"")
        except errors.ShuttingDownError as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    process.stop()
    thread.join(60)

    assert [type(one) for one in ended] == [errors.ShuttingDownError]

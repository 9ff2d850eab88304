"""`pylogctl schema`, against a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker import Broker
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Result

Schema = Callable[..., Result]

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
NOTED = ORDER.replace("}]}", '}, {"name": "note", "type": ["null", "string"], "default": null}]}')
BROKEN = ORDER.replace("}]}", '}, {"name": "price", "type": "double"}]}')  # no default


@pytest.fixture
def schema(running_broker: Broker, invoke: Invoke, tmp_path: Path) -> Schema:
    """Run a command of `pylogctl schema`; files have the schemas."""
    for name, text in (("order", ORDER), ("noted", NOTED), ("broken", BROKEN)):
        (tmp_path / f"{name}.avsc").write_text(text)
    address = f"127.0.0.1:{running_broker.port}"

    def run(command: str, *args: str, **named: Any) -> Result:
        given = [str(tmp_path / one) if one.endswith(".avsc") else one for one in args]
        return invoke("schema", command, *given, "-b", address, **named)

    return run


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.status == ExitStatus.OK, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)["data"]
    return found


def test_schema_when_added_then_is_listed_and_shown_and_again_is_the_same(schema: Schema) -> None:
    assert rows(schema("list", "--output", "json")) == []
    added = rows(schema("add", "orders-value", "order.avsc", "--output", "json"))
    new = {"subject": "orders-value", "version": 1, "action": "registered"}
    assert [{**one, "id": 0} for one in added] == [{**new, "id": 0}]
    schema_id = added[0]["id"]

    again = schema("add", "orders-value", "-", "--output", "json", stdin=ORDER.encode())
    assert rows(again) == [{**new, "id": schema_id, "action": "exists"}]
    assert "already" in again.stderr
    assert rows(schema("add", "orders-value", "noted.avsc", "--output", "json"))[0]["version"] == 2

    (listed,) = rows(schema("list", "--output", "json"))
    assert (listed["versions"], listed["type"]) == ([1, 2], "AVRO")
    assert listed["compatibility"] == "BACKWARD"
    assert schema("list", "--columns", "subject,versions", "--no-header").text == (
        "orders-value  1,2\n"
    )
    by_id = schema("show", "--id", str(schema_id))
    assert by_id.text == schema("show", "orders-value", "--version", "1").text
    assert json.loads(by_id.text)["name"] == "Order"
    (shown,) = rows(schema("show", "orders-value", "--output", "json"))
    assert (shown["version"], json.loads(shown["schema"])["fields"][1]["name"]) == (2, "note")


def test_schema_when_it_does_not_fit_then_check_and_add_tell_the_field(schema: Schema) -> None:
    schema("add", "orders-value", "order.avsc")
    assert schema("check", "orders-value", "noted.avsc").status == ExitStatus.OK

    checked = schema("check", "orders-value", "broken.avsc", "--output", "json")
    assert checked.status == ExitStatus.CORRUPT
    assert "price" in json.loads(checked.stdout)["data"][0]["reason"]
    for options in ((), ("--dry-run",)):
        refused = schema("add", "orders-value", "broken.avsc", *options)
        assert refused.status == ExitStatus.CONFLICT
        assert "price" in refused.stderr

    set_ = schema("compat", "orders-value", "none", "--output", "json")
    assert rows(set_) == [{"subject": "orders-value", "compatibility": "NONE"}]
    assert schema("add", "orders-value", "broken.avsc").status == ExitStatus.OK
    assert rows(schema("compat", "--output", "json")) == [
        {"subject": "<default>", "compatibility": "BACKWARD"},
        {"subject": "orders-value", "compatibility": "NONE"},
    ]
    back = schema("compat", "orders-value", "default", "--output", "json")
    assert rows(back)[0]["compatibility"] == "BACKWARD"


def test_file_when_it_has_a_mark_and_names_json_schema_then_is_taken_as_that(
    schema: Schema,
) -> None:
    text = b'\xef\xbb\xbf{"$schema": "https://json-schema.org/draft/2020-12/schema"}\r\n'

    added = schema("add", "j", "-", "--output", "json", stdin=text)

    assert rows(added)[0]["version"] == 1
    assert rows(schema("list", "--output", "json"))[0]["type"] == "JSON"


def test_version_when_deleted_then_its_id_stays_readable(schema: Schema) -> None:
    (first,) = rows(schema("add", "orders-value", "order.avsc", "--output", "json"))
    schema("add", "orders-value", "noted.avsc")

    assert schema("delete", "orders-value").status == ExitStatus.DECLINED
    assert schema("delete", "orders-value", "--dry-run").status == ExitStatus.OK
    deleted = schema("delete", "orders-value", "--version", "1", "--yes", "--output", "json")
    assert [one["version"] for one in rows(deleted)] == [1]
    assert rows(schema("list", "--output", "json"))[0]["versions"] == [2]
    assert schema("show", "orders-value", "--version", "1").status == ExitStatus.NOT_FOUND
    (by_id,) = rows(schema("show", "--id", str(first["id"]), "--output", "json"))
    assert (by_id["subject"], json.loads(by_id["schema"])["name"]) == (None, "Order")

    assert schema("delete", "orders-value", "--yes").status == ExitStatus.OK
    assert schema("delete", "orders-value", "--yes").status == ExitStatus.NOT_FOUND


@pytest.mark.parametrize(
    ("args", "stdin", "status", "text"),
    [
        (("add", "s", "-"), b"{", ExitStatus.USAGE, ""),
        (("add", "s", "-"), b"\xff", ExitStatus.USAGE, "UTF-8"),
        (("add", "s", "-"), b" " * (1 << 20) + b"x", ExitStatus.USAGE, "larger"),
        (("add", "s", "/no/such/file"), b"", ExitStatus.NOT_FOUND, "/no/such/file"),
        (("show", "s"), b"", ExitStatus.NOT_FOUND, "'s'"),
        (("show",), b"", ExitStatus.USAGE, "--id"),
        (("show", "s", "--version", "0"), b"", ExitStatus.USAGE, "--version"),
        (("show", "s", "--version", str(2**31)), b"", ExitStatus.USAGE, "--version"),
        (("show", "--id", "7"), b"", ExitStatus.NOT_FOUND, "7"),
        (("show", "--id", str(2**31)), b"", ExitStatus.USAGE, "--id"),
        (("add", "s", "-", "--type", "avro"), b'{"$schema": ""}', ExitStatus.USAGE, "AVRO"),
        (("compat", "s", "best"), b"", ExitStatus.USAGE, "full_transitive"),
    ],
)
def test_input_when_it_is_wrong_then_the_error_names_it(
    args: tuple[str, ...], stdin: bytes, status: ExitStatus, text: str, schema: Schema
) -> None:
    result = schema(*args, stdin=stdin)

    assert result.status == status, result.stderr
    assert text in result.stderr

"""Messages with schemas: written by `produce --schema`, read with `--decode`, and copied."""

from __future__ import annotations

import json
import os
import struct
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker
from broker.client.schemas import SchemaClient
from broker.errors import BrokerUnreachableError
from broker.schemas.values import RegisteredSchema
from pylogctl.cli.environment import ExitStatus
from pylogctl.testing import Broker as OneBroker
from pylogctl.testing import memory_cluster
from tests.support.command_line import Invoke, Result
from tests.support.web_site import served

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": ["null", "string"], "default": None},
    ],
}
NEXT = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "-"}]}
FIRST, SECOND = '{"id":1,"user":"ada"}', '{"id":2,"user":null}'


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(ORDER))
    return path


@pytest.fixture
def run(running_broker: Broker, invoke: Invoke) -> Callable[..., Result]:
    """Run a command on `running_broker`."""

    def of_broker(*args: str, stdin: str = "") -> Result:
        result: Result = invoke(*args, "-b", at(running_broker), stdin=stdin.encode())
        return result

    return of_broker


@pytest.fixture
def mixed(run: Callable[..., Result], schema: Path) -> Callable[..., Result]:
    """Two orders, and garbage between them, in topic `orders`."""
    assert not run(
        "produce", "orders", "--schema", str(schema), stdin='{"id": 1, "user": "ada"}'
    ).status
    assert not run("produce", "orders", stdin="garbage\n").status
    assert not run("produce", "orders", "--schema", "auto", stdin='{"id": 2}\n').status
    return run


def test_produce_when_lines_fit_then_consume_decodes_what_confluent_would_read(
    mixed: Callable[..., Result],
) -> None:
    stored = mixed("consume", "orders", "--from-beginning", "-e", "-n", "1", "--hex")
    assert stored.text == (struct.pack(">bi", 0, 1) + b"\x02\x02\x06ada").hex() + "\n"

    decoded = mixed("consume", "orders", "--from-beginning", "-e", "--decode", "auto")

    assert decoded.status == ExitStatus.PARTIAL
    assert decoded.text.splitlines() == [FIRST, "garbage", SECOND]
    assert "cannot be decoded: it has no schema" in decoded.stderr
    assert "3 messages, 1 not decoded" in decoded.stderr


def test_produce_when_a_line_does_not_fit_then_it_is_refused_by_line_and_field(
    run: Callable[..., Result], schema: Path
) -> None:
    lines = '{"id": 1}\n{"id": "x"}\n{"id": 3}\n'

    stopped = run("produce", "t", "--schema", str(schema), stdin=lines)
    skipped = run("produce", "t", "--schema", "1", "--on-error", "skip", stdin=lines + "{\n")

    assert stopped.status == ExitStatus.USAGE
    assert 'line 2: .id: expected long, not "x"' in stopped.stderr
    assert "messages sent before: 1" in stopped.stderr
    assert skipped.status == ExitStatus.PARTIAL
    assert "line 4: not JSON" in skipped.stderr
    read = run("consume", "t", "--from-beginning", "-e", "--decode", "auto")
    assert [json.loads(line)["id"] for line in read.text.splitlines()] == [1, 1, 3]


def test_produce_when_lines_are_of_windows_then_marks_and_empty_ones_are_no_values(
    run: Callable[..., Result], schema: Path
) -> None:
    schema.write_text(schema.read_text(), encoding="utf-8-sig")
    lines = "\ufeff" + FIRST + "\r\n\r\n\n" + SECOND + "\r\n"

    sent = run("produce", "t", "--schema", str(schema), "--skip-empty", stdin=lines)

    assert sent.status == ExitStatus.OK, sent.stderr
    read = run("consume", "t", "--from-beginning", "-e", "--decode", "auto")
    assert read.text.splitlines() == [FIRST, SECOND]


def test_produce_when_there_is_no_schema_then_says_how_to_add_one(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    found = run("produce", "t", "--schema", "auto", stdin="{}")
    assert found.status == ExitStatus.NOT_FOUND
    assert "there is no subject 't-value'" in found.stderr
    assert run("produce", "t", "--schema", "7", stdin="{}").status == ExitStatus.NOT_FOUND
    missing = str(tmp_path / "none.avsc")
    assert run("produce", "t", "--schema", missing, stdin="{}").status == ExitStatus.NOT_FOUND


def test_consume_when_a_message_begins_with_the_id_of_none_then_the_rest_is_decoded(
    mixed: Callable[..., Result],
) -> None:
    garbage = "\0\u00ff\u00ff"  # UTF-8 of it: a negative id
    assert not mixed("produce", "orders", stdin=f"{garbage}\n").status

    read = mixed("consume", "orders", "--from-beginning", "-e", "--decode", "auto")
    beyond = mixed("produce", "orders", "--schema", str(2**31), stdin="{}")

    assert read.status == ExitStatus.PARTIAL
    assert read.text.splitlines() == [FIRST, "garbage", SECOND, garbage]
    assert beyond.status == ExitStatus.NOT_FOUND


def test_log_dump_when_messages_have_envelopes_then_decodes_what_is_behind_them(
    run: Callable[..., Result], schema: Path, running_broker: Broker
) -> None:
    wrapped = ("--envelope", "--schema", str(schema))
    assert not run("produce", "orders", *wrapped, stdin=f"{FIRST}\n").status
    log = str(running_broker.config.data_dir / "orders_0")

    dumped = run("log", "dump", log, "--decode", "auto", "-F", "%T %s\n")
    table = run("log", "dump", log, "--decode", "auto", "--output", "jsonl")

    time, _, payload = dumped.text.partition(" ")
    assert (dumped.status, payload, time[-1:]) == (0, f"{FIRST}\n", "Z")
    assert json.loads(table.text)["payload"] == FIRST


def test_consume_when_corrupt_messages_stop_it_then_those_before_are_written(
    mixed: Callable[..., Result],
) -> None:
    read = ("consume", "orders", "--from-beginning", "-e", "--decode", "auto", "--on-corrupt")
    stopped, skipped = mixed(*read, "stop"), mixed(*read, "skip", "--where", "json:.id>1")
    assert (stopped.status, stopped.text) == (ExitStatus.CORRUPT, f"{FIRST}\n")
    assert (skipped.status, skipped.text) == (ExitStatus.PARTIAL, f"{SECOND}\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--decode", "avro"], "no decoder 'avro'"),
        (["--reader", "1"], "--decode reads"),
        (["--decode", "auto", "--reader", "x"], "no id of a schema"),
        (["--decode", "auto", "--raw"], "--raw"),
        (["--decode", "auto", "--grep", "a", "--grep-at", "broker"], "--grep-at broker"),
    ],
)
def test_consume_when_options_contradict_then_no_broker_is_asked(
    invoke: Invoke, options: list[str], says: str
) -> None:
    found = invoke("consume", "t", "-b", "127.0.0.1:1", *options)
    assert found.status == ExitStatus.USAGE
    assert says in found.stderr


def test_readers_when_the_subject_has_a_later_version_then_resolve_to_it(
    mixed: Callable[..., Result], running_broker: Broker, tmp_path: Path
) -> None:
    later = tmp_path / "next.avsc"
    later.write_text(json.dumps(NEXT))
    assert not mixed(
        "produce", "orders", "--schema", str(later), stdin='{"id": 3, "note": "x"}'
    ).status
    latest = ("--decode", "auto", "--reader", "latest")

    sampled = mixed("topic", "sample", "orders", *latest, "--output", "jsonl")
    log = str(running_broker.config.data_dir / "orders_0")
    dumped = mixed("log", "dump", log, "-n", "1", "-F", "%s\n", *latest)
    first = mixed("consume", "orders", "-o", "-1", "-e", "--decode", "auto", "--reader", "1")

    assert sampled.status == ExitStatus.PARTIAL
    payloads = [json.loads(line)["payload"] for line in sampled.text.splitlines()]
    assert payloads == [
        '{"id":1,"user":"ada","note":"-"}', "garbage", '{"id":2,"user":null,"note":"-"}',
        '{"id":3,"user":null,"note":"x"}',
    ]  # fmt: skip
    assert (dumped.status, dumped.text) == (0, '{"id":1,"user":"ada","note":"-"}\n')
    assert first.text == '{"id":3,"user":null}\n'


def test_copy_when_the_target_has_other_schemas_then_ids_are_kept_or_nothing_is_copied(
    start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path, schema: Path
) -> None:
    source = start_broker(data_dir=tmp_path / "source")
    targets = [start_broker(broker_id=n, data_dir=tmp_path / str(n)) for n in (7, 8)]
    other = tmp_path / "other.avsc"
    other.write_text('"string"')
    produce = ("--schema", str(other), "-b", at(source))
    assert not invoke("produce", "names", *produce, stdin=b'"a"\n').status  # takes the first id
    produce = ("--schema", str(schema), "-b", at(source))
    assert not invoke("produce", "orders", *produce, stdin=b'{"id": 1, "user": "ada"}\n').status
    for text in ('"int"', '"long"'):
        other.write_text(text)
        subject = ("--schema", str(other), "-b", at(targets[1]))
        assert not invoke("produce", text.strip('"'), *subject, stdin=b"1\n").status

    def copy(target: Broker) -> Result:
        sides = ("--from", f"brokers={at(source)}", "--to", f"brokers={at(target)}")
        found: Result = invoke("copy", "orders", "orders", "--schemas", *sides)
        return found

    carried, refused = copy(targets[0]), copy(targets[1])

    assert not carried.status, carried.stderr
    assert "1 schema carried" in carried.stderr
    assert "0 schemas carried" in copy(targets[0]).stderr
    read = ("consume", "orders", "--from-beginning", "-e", "-n", "1", "--decode", "auto")
    assert invoke(*read, "-b", at(targets[0])).text == f"{FIRST}\n"
    assert refused.status == ExitStatus.CONFLICT
    assert "id 2 is the schema of 'orders-value', version 1, in the source" in refused.stderr
    assert not (tmp_path / "8" / "orders_0").exists()


def test_web_when_a_message_has_a_schema_then_page_and_api_show_its_value(
    invoke: Invoke, schema: Path
) -> None:
    with OneBroker() as broker, broker.connect() as client:
        to = ("produce", "orders", "-b", str(broker.address))
        assert not invoke(*to, "--schema", str(schema), stdin=b'{"id": 1, "user": "ada"}').status
        assert not invoke(*to, stdin=b"garbage\n").status
        client.send("orders", b"\0\0\0\0\x63\x02")
        with served(client) as site:

            def get(path: str) -> str:
                with urllib.request.urlopen(f"{site.url}{path}", timeout=60) as response:
                    text: str = response.read().decode()
                    return text

            decoded = json.loads(get("/api/v1/topics/orders/messages?as=decoded"))["items"]
            plain = json.loads(get("/api/v1/topics/orders/messages"))["items"]
            page = get("/topics/orders/messages")
            one = get("/topics/orders/partitions/0-0/messages/0")

    assert [(row["value"], row["encoding"]) for row in decoded] == [
        (FIRST, "json"), ("garbage", "text"), ("000000006302", "hex"),
    ]  # fmt: skip
    assert decoded[0]["note"] == "decoded by schema 1, of 11 bytes"
    assert decoded[2]["note"] == "not decoded: there is no schema 99"
    assert plain[0]["encoding"] == "hex"
    for text in (page, one):
        assert "decoded by schema 1" in text
        assert "ada" in text


def test_decode_when_a_payload_has_a_length_of_gigabytes_then_it_is_shown_as_it_is(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    path = tmp_path / "bytes.avsc"
    path.write_text('"bytes"')
    assert not run("produce", "t", "--schema", str(path), stdin='"abc"\n').status
    hostile = (b"\0\0\0\0\1" + b"\xfe\xff\xff\xff\x0f" + os.urandom(3)).hex()
    assert not run("produce", "t", "--hex", stdin=f"{hostile}\n").status
    found = run("consume", "t", "--from-beginning", "-e", "--decode", "auto", "--base64")
    assert found.status == ExitStatus.PARTIAL
    assert "schema 1: Expected" in found.stderr


def test_consume_when_brokers_cannot_tell_a_schema_for_the_moment_then_asks_again(
    mixed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    get = SchemaClient.get

    def failing_once(client: SchemaClient, schema_id: int) -> RegisteredSchema:
        asked.append(schema_id)
        if len(asked) == 1:
            raise BrokerUnreachableError("it restarts")
        return get(client, schema_id)

    monkeypatch.setattr(SchemaClient, "get", failing_once)
    found = mixed("consume", "orders", "--from-beginning", "-e", "--decode", "auto")
    assert found.text.splitlines() == [FIRST, "garbage", SECOND]
    assert asked == [1, 1]


def test_group_when_messages_have_schemas_then_decodes_them_until_its_end(
    invoke: Invoke, schema: Path
) -> None:
    with memory_cluster() as cluster:
        of = ("-Z", cluster.zookeeper)
        for line in (FIRST, SECOND):
            assert not invoke(
                *("produce", "orders", "--schema", str(schema), *of), stdin=line.encode()
            ).status

        read = ("consume", "--group", "g", "orders", "--from-beginning", "-e", "--decode", "auto")
        first, again = invoke(*read, *of), invoke(*read, *of)

    assert (first.status, first.text) == (0, f"{FIRST}\n{SECOND}\n")
    assert (again.status, again.text) == (0, "")

"""The registry in its file: ids, versions and compatibility, what is kept after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker import errors
from broker.schemas.store import FileHome, SchemaStore
from broker.schemas.values import Compatibility, SchemaType

AVRO = SchemaType.AVRO


def record(*fields: str, name: str = "R") -> str:
    """Return a record of ints; a field with `=` has a default."""
    made = [
        {"name": one.rstrip("="), "type": "int", **({"default": 0} if one.endswith("=") else {})}
        for one in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": made})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "schemas.json"


@pytest.fixture
def store(path: Path) -> SchemaStore:
    return SchemaStore(FileHome(path))


def test_register_when_a_schema_is_there_then_its_id_is_shared_and_its_version_kept(
    store: SchemaStore,
) -> None:
    first = store.register("s", record("a"), AVRO)
    again = store.register(
        "s", '{"fields": [{"type": "int", "name": "a"}], "name": "R", "type": "record"}', AVRO
    )
    other = store.register("other", record("a"), AVRO)
    second = store.register("s", record("a", "b="), AVRO)

    assert again == first
    assert [(one.id, one.version) for one in (first, other, second)] == [(1, 1), (1, 1), (2, 2)]
    assert store.subjects() == ["other", "s"]
    assert [(one.subject, one.version) for one in store.same_ids(1)] == [("other", 1), ("s", 1)]


def test_delete_when_done_then_the_id_is_readable_and_no_number_is_given_again(
    store: SchemaStore, path: Path
) -> None:
    store.register("s", record("a"), AVRO)
    assert store.delete("s") == {1: 1}
    with pytest.raises(errors.UnknownSchemaError, match="no subject 's'"):
        store.version("s")

    store = SchemaStore(FileHome(path))  # as after a restart
    assert json.loads(store.schema(1).text)["name"] == "R"
    again, new = store.register("s", record("a"), AVRO), store.register("t", record("z"), AVRO)
    assert [(one.id, one.version) for one in (again, new)] == [(1, 2), (2, 1)]


def test_register_when_incompatible_then_the_field_is_named(store: SchemaStore) -> None:
    store.register("s", record("a"), AVRO)

    with pytest.raises(errors.IncompatibleSchemaError, match="BACKWARD") as caught:
        store.register("s", record("a", "new_one"), AVRO)

    (reason,) = caught.value.reasons
    assert "field 'new_one' has no default" in reason
    assert list(store.versions("s")) == [1]


@pytest.mark.parametrize(
    ("level", "text", "fits"),
    [
        (Compatibility.BACKWARD, record("b", "c"), True),  # reads the latest
        (Compatibility.BACKWARD_TRANSITIVE, record("b", "c"), False),  # but not the first
        (Compatibility.FORWARD, record("a", "b", "d"), True),
        (Compatibility.FORWARD, record("b"), True),  # a has a default
        (Compatibility.FULL, record("a=", "d"), False),
        (Compatibility.NONE, '"string"', True),
    ],
)
def test_check_when_a_level_is_set_then_it_decides(
    store: SchemaStore, level: Compatibility, text: str, *, fits: bool
) -> None:
    store.set_compatibility("s", Compatibility.NONE)
    for one in (record("b"), record("a=", "b", "c=")):
        store.register("s", one, AVRO)
    store.set_compatibility("s", level)

    assert (store.check("s", text, AVRO) == []) is fits


def test_compatibility_when_a_subject_has_none_of_its_own_then_is_the_registrys(
    store: SchemaStore,
) -> None:
    assert store.compatibility("s") is Compatibility.BACKWARD
    store.set_compatibility("", Compatibility.FULL)
    store.set_compatibility("s", Compatibility.NONE)
    assert (store.compatibility("s"), store.compatibility("t")) == ("NONE", "FULL")
    store.set_compatibility("s", None)
    assert store.compatibility("s") is Compatibility.FULL


def test_register_when_an_id_is_given_then_it_is_kept_or_refused(store: SchemaStore) -> None:
    assert store.register("s", record("a"), AVRO, schema_id=70).id == 70
    assert store.register("s", record("a"), AVRO, schema_id=70).version == 1
    assert store.register("s", record("b"), AVRO, schema_id=7).id == 7  # a copy is not compared
    for taken, text in ((70, record("c")), (71, record("a"))):
        with pytest.raises(errors.SchemaIdTakenError) as caught:
            store.register("s", text, AVRO, schema_id=taken)
        assert isinstance(caught.value, errors.ConflictError)
    assert store.register("s", record("b", "x="), AVRO).id == 71


@pytest.mark.parametrize("content", ["", "{", "[]", '{"ids/1": 3}'])
def test_file_when_damaged_then_is_refused_and_left_as_it_is(path: Path, content: str) -> None:
    path.write_text(content)

    with pytest.raises(errors.SchemasUnavailableError, match=r"schemas\.json is damaged"):
        SchemaStore(FileHome(path)).register("s", '"int"', AVRO)

    assert path.read_text() == content


_WRITER = """
import sys
from pathlib import Path
from broker.schemas.store import FileHome, ROOT
home = FileHome(Path(sys.argv[1]))
for n in range(1, 1 << 30):
    root, state = home.begin()
    home.commit({ROOT: {"next_id": n + 1}, f"ids/{n}": {"type": "AVRO", "text": '"int"'}}, state)
    print(n, flush=True)
"""


def test_file_when_its_writer_is_killed_then_has_all_that_it_had_told_of(path: Path) -> None:
    for _ in range(3):
        path.unlink(missing_ok=True)
        command = [sys.executable, "-c", _WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                if int(line) == 20:
                    writer.send_signal(signal.SIGKILL)
                    break
            told = max([20, *map(int, writer.stdout.read().split())])
        home = FileHome(path)
        root = home.begin()[0]
        assert root is not None
        assert root["next_id"] > told
        assert len(home.read_all("ids/")) == root["next_id"] - 1

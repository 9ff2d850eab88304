"""Imports point one way, and packages know nothing of what they must not know."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[2]
BASE = {
    "errors",
    "closing",
    "deadlines",
    "clock",
    "topic",
    "properties",
    "times",
    "json_fields",
    "records",
    "listener_config",
    "config",
    "topic_settings",
    "stats",
    "metrics",
    "exposition",
    "metrics_server",
    "files",
    "endpoints",
    "cluster_state",
    "leader_epochs",
    "state_changes",
    "replica_records",
    "units",
    "partition_patterns",
    "patterns",
    "ids",
    "plugins",
    "positions",
    "threads",
    "token_bucket",
}

MAY_IMPORT: dict[str, set[str]] = {
    "endpoints": {"errors"},
    "errors": set(),
    "deadlines": {"errors"},
    "token_bucket": set(),
    "clock": set(),
    "closing": set(),
    "ids": set(),
    "topic": {"errors"},
    "units": {"errors", "clock"},
    "positions": {"errors", "topic", "times", "units", "partition_patterns"},
    "partition_patterns": {"errors", "topic"},
    "plugins": {"errors"},
    "patterns": {"errors"},
    "properties": {"errors"},
    "times": {"errors", "units"},
    "json_fields": set(),
    "records": {"topic"},
    "listener_config": {"endpoints", "errors", "properties"},
    "config": {"errors", "listener_config", "plugins", "properties", "times", "topic"},
    "topic_settings": {"errors", "properties", "config", "topic"},
    "stats": {"errors", "clock"},
    "metrics": {"stats"},
    "exposition": {"metrics", "stats"},
    "metrics_server": {"endpoints", "errors", "threads", "units"},
    "files": set(),
    "threads": set(),
    "cluster_state": {"endpoints", "topic"},
    "leader_epochs": {"cluster_state", "ids"},
    "state_changes": {"topic"},
    "replica_records": {"cluster_state", "ids", "topic"},
    "protocol": BASE,
    "security": BASE | {"protocol"},
    "log": BASE | {"protocol"},
    "zk": {
        "errors",
        "deadlines",
        "clock",
        "ids",
        "topic",
        "config",
        "topic_settings",
        "cluster_state",
        "endpoints",
        "threads",
        "stats",
        "files",
        "protocol",
        "security",
    },
    "schemas": BASE | {"zk"},
    "replication": BASE,
    "controller": BASE,
    "server": BASE
    | {"protocol", "security", "log", "zk", "schemas", "client", "replication", "controller"},
    "client": BASE | {"protocol", "security", "zk", "schemas"},
    "producer": BASE | {"protocol", "security", "zk", "schemas", "client"},
    "consumer": BASE | {"protocol", "security", "zk", "schemas", "client"},
    "tools": BASE | {"protocol", "security", "zk", "schemas", "client", "producer", "consumer"},
    "admin": BASE
    | {"protocol", "security", "zk", "schemas", "client", "producer", "consumer", "tools"}
    | {"controller"},
    "api": BASE
    | {"protocol", "security", "zk", "schemas", "client", "producer", "consumer", "tools"}
    | {"admin"},
    "aio": BASE
    | {"protocol", "security", "zk", "schemas", "client", "producer", "consumer", "admin", "api"},
    "spark": BASE
    | {"protocol", "security", "log", "zk", "schemas", "client", "producer", "consumer"}
    | {"tools"},
}
"""What each part of `broker` may import besides itself; every part has a line here."""

SERVER_ROOMS: dict[str, set[str]] = {
    "cluster": set(),
    "requests": {"cluster"},
    "network": {"requests"},
}
"""What each room of `broker.server` may import of it besides itself."""

SPARK_ROOMS: dict[str, set[str]] = {
    "runtime": set(),
    "reading": {"runtime", "offsets", "options", "schema"},
    "loading": {"runtime", "reading", "offsets", "options"},
}
"""What each room of `broker.spark` may import of it besides itself: a few modules for programs."""

LOG_ROOMS: dict[str, set[str]] = {
    "offline": {"batch_index", "batches", "data_directory", "format", "recovery", "scan", "segment"}
    | {"side_files"},
}
"""What the offline tools of `broker.log` may import of it besides themselves."""

ROOMS_OF_PARTS = {"log": LOG_ROOMS, "server": SERVER_ROOMS, "spark": SPARK_ROOMS}

COMMAND_ROOMS: dict[str, set[str]] = {
    "cli": set(),
    "format": {"cli"},
    "comparison": {"cli"},
    "zk": {"cli", "format"},
    "doctor": {"cli"},
    "testing": set(),
    "pytest_plugin": {"testing"},
    "windows": set(),
    "help": {"cli"},
    "broker": {"cli", "topic"},
    "log": {"cli", "copy", "format", "produce"},
    "acl": {"cli"},
    "archive": {"cli"},
    "config": {"cli", "broker"},
    "context": {"cli"},
    "schema": {"cli"},
    "user": {"cli"},
    "plugins": {"cli", "format"},
    "consume": {"cli", "format"},
    "produce": {"cli", "comparison", "format"},
    "topic": {"cli", "format"},
    "cluster": {"cli", "broker"},
    "group": {"cli", "format", "topic"},
    "top": {"cli", "group"},
    "copy": {"cli", "produce"},
    "mirror": {"cli", "comparison"},
    "metrics": {"cli", "broker"},
    "audit": {"cli", "comparison"},
    "perf": {"cli", "broker"},
    "pipeline": {"cli", "format", "log", "audit"},
    "web": {"cli"},
}
"""What each room of `pylogctl` may import besides itself; every room has a line here."""

SANS_IO_BANNED = {"socket", "asyncio", "threading", "selectors", "time", "logging"}
BROKER_BANNED = {"typer", "click", "rich", "pylogctl"}
STARTS_BROKERS = {"pylogctl/broker/service.py", "pylogctl/testing/brokers.py"}
"""The only files outside `broker` that may know the server."""


class Import(NamedTuple):
    """One module that a file imports, and where."""

    place: str
    module: str

    @property
    def part(self) -> str:
        """The part of `broker` or room of `pylogctl` it is in; empty for the package itself."""
        return [*self.module.split("."), ""][1]


def files_of(package: str) -> list[Path]:
    return sorted((REPOSITORY / package).rglob("*.py"))


@cache
def imports_of(path: Path) -> list[Import]:
    name = path.relative_to(REPOSITORY).as_posix()
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=name)
    package = ".".join(path.relative_to(REPOSITORY).parent.parts)
    return [
        Import(f"{name}:{node.lineno}", module)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt | ast.expr)
        for module in imported_modules(node, package)
    ]


def imported_modules(node: ast.AST, package: str) -> Iterator[str]:
    """Give the absolute names of what an import statement, or `import_module`, imports."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            parts = package.split(".")[: -level + 1 or None] if level else []
            source = ".".join(parts + ([module] if module else []))
            yield from (_module_or_name(source, alias.name) for alias in names)
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            yield name


def _module_or_name(source: str, name: str) -> str:
    """Return `source.name` where that is a module of ours, else `source`."""
    path = REPOSITORY.joinpath(*source.split("."), name)
    return f"{source}.{name}" if path.is_dir() or path.with_suffix(".py").is_file() else source


def is_in(module: str, packages: set[str]) -> bool:
    return module.split(".")[0] in packages


def part_of(path: Path) -> str:
    """The part of its package that a file belongs to; empty for `__init__.py` and `__main__.py`."""
    place = path.relative_to(REPOSITORY).parts[1].removesuffix(".py")
    return "" if place in ("__init__", "__main__") else place


def module_of(path: Path) -> str:
    """The dotted name of a file's module."""
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


def circles(uses: dict[str, set[str]]) -> list[list[str]]:
    """Find the circles of a graph: each group of nodes that reach one another (Tarjan, 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        path.append(node)
        for other in uses.get(node, set()):
            if other not in number:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in path:
                lowest[node] = min(lowest[node], number[other])
        if lowest[node] == number[node]:
            at = path.index(node)
            ring, path[at:] = path[at:], []
            if len(ring) > 1:
                found.append(sorted(ring))

    for node in sorted(uses):
        if node not in number:
            visit(node)
    return found


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import broker.log.log, os", ["broker.log.log", "os"]),
        ("from broker.log.log import Log", ["broker.log.log"]),
        ("from broker.log import log", ["broker.log.log"]),
        ("from broker import errors, Producer", ["broker.errors", "broker"]),
        ("from . import topic", ["broker.topic"]),
        ("from .log import log", ["broker.log.log"]),
        ("if TYPE_CHECKING:\n    import broker.zk", ["broker.zk"]),
        ("def f():\n    from broker.zk import paths", ["broker.zk.paths"]),
        ("importlib.import_module('broker.server')", ["broker.server"]),
        ("import_module(name)", []),
    ],
)
def test_imports_when_written_in_any_form_then_are_found(source: str, modules: list[str]) -> None:
    found = [m for node in ast.walk(ast.parse(source)) for m in imported_modules(node, "broker")]

    assert found == modules


def test_relative_import_when_two_levels_up_then_is_found() -> None:
    (node,) = ast.parse("from ..errors import BrokerError").body

    assert list(imported_modules(node, "broker.log")) == ["broker.errors"]


def test_parts_when_listed_then_every_file_of_the_library_belongs_to_one() -> None:
    parts = {part_of(path) for path in files_of("broker")} - {""}

    assert parts <= MAY_IMPORT.keys(), "a new part needs a line in MAY_IMPORT"


def test_rooms_when_listed_then_every_file_of_the_command_line_belongs_to_one() -> None:
    rooms = {part_of(path) for path in files_of("pylogctl")} - {""}

    assert rooms == COMMAND_ROOMS.keys(), "a new room needs a line in COMMAND_ROOMS"


@pytest.mark.parametrize("table", [MAY_IMPORT, COMMAND_ROOMS], ids=["broker", "pylogctl"])
def test_table_when_followed_then_no_part_reaches_itself(table: dict[str, set[str]]) -> None:
    for part, allowed in table.items():
        reached = set(allowed)
        while more := {p for r in reached for p in table[r]} - reached:
            reached |= more
        assert part not in reached


def test_circles_when_modules_import_each_other_then_are_found() -> None:
    uses = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "d2"}, "d2": set[str]()}

    assert circles(uses) == [["a", "b", "c"]]


def test_modules_when_imports_are_followed_then_form_no_circle() -> None:
    files = [*files_of("broker"), *files_of("pylogctl")]
    known = {module_of(path) for path in files}
    uses = {
        module_of(path): {i.module for i in imports_of(path)} & known - {module_of(path)}
        for path in files
        if path.stem != "__init__"
    }

    assert circles(uses) == []


@pytest.mark.parametrize("room", COMMAND_ROOMS)
def test_rooms_when_imported_then_only_from_rooms_below(room: str) -> None:
    found = [i for path in files_of("pylogctl") if part_of(path) == room for i in imports_of(path)]
    inside = [i for i in found if is_in(i.module, {"pylogctl"}) and i.part]

    assert [i for i in inside if i.part not in COMMAND_ROOMS[room] | {room}] == []


@pytest.mark.parametrize(
    ("part", "room"),
    [(part, room) for part, rooms in ROOMS_OF_PARTS.items() for room in rooms],
)
def test_rooms_of_a_part_when_imported_then_only_from_those_below(part: str, room: str) -> None:
    found = [i.module for path in files_of(f"broker/{part}/{room}") for i in imports_of(path)]
    inside = {module.split(".")[2] for module in found if module.startswith(f"broker.{part}.")}

    assert inside - ROOMS_OF_PARTS[part][room] - {room} == set()


def test_offline_tools_when_imported_then_by_no_broker() -> None:
    files = [*files_of("broker/log"), *files_of("broker/server")]
    found = [
        one.place
        for path in files
        for one in imports_of(path)
        if one.module.startswith("broker.log.offline") and path.parent.name != "offline"
    ]

    assert found == []


@pytest.mark.parametrize("part", ROOMS_OF_PARTS)
def test_rooms_of_a_part_when_listed_then_are_all_its_folders(part: str) -> None:
    folders = {path.parent.name for path in (REPOSITORY / "broker" / part).glob("*/*.py")}

    assert folders == ROOMS_OF_PARTS[part].keys()


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_when_inside_the_library_then_point_one_way(part: str) -> None:
    backward = [
        found
        for path in files_of("broker")
        if part_of(path) == part
        for found in imports_of(path)
        if is_in(found.module, {"broker"}) and found.part not in MAY_IMPORT[part] | {part, ""}
    ]

    assert backward == []


def test_library_when_imported_then_knows_no_command_line() -> None:
    found = [i for path in files_of("broker") for i in imports_of(path)]

    assert [i for i in found if is_in(i.module, BROKER_BANNED)] == []


@pytest.mark.parametrize("folder", ["protocol", "replication", "controller"])
def test_pure_folder_when_imported_then_knows_no_socket_thread_clock_or_logger(
    folder: str,
) -> None:
    found = [i for path in files_of(f"broker/{folder}") for i in imports_of(path)]

    assert [i for i in found if is_in(i.module, SANS_IO_BANNED)] == []


def test_command_line_when_imported_then_only_broker_start_knows_the_server() -> None:
    found = [
        i
        for path in files_of("pylogctl")
        if path.relative_to(REPOSITORY).as_posix() not in STARTS_BROKERS
        for i in imports_of(path)
    ]

    assert [i for i in found if is_in(i.module, {"broker"}) and i.part == "server"] == []


@pytest.mark.parametrize("name", sorted(STARTS_BROKERS))
def test_file_when_allowed_to_know_the_server_then_exists(name: str) -> None:
    assert (REPOSITORY / name).is_file()


BARE_THREADS = {
    "broker/threads.py",  # the one place
    "broker/zk/child.py",  # imports nothing of the library
    "broker/spark/runtime/interruption.py",  # its exceptions are of the caller
    "broker/server/cluster/followed.py",  # a timer that sets an event
    "broker/server/cluster/replica_manager.py",  # a timer, whose function is `logged`
    "pylogctl/cli/progress.py",  # a timer that writes a note
}


def test_threads_when_started_then_by_what_lets_none_end_unseen() -> None:
    found = {
        str(path.relative_to(REPOSITORY))
        for package in ("broker", "pylogctl")
        for path in files_of(package)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", ""))
        in {"Thread", "Timer", "start_new_thread"}
    }
    assert found == BARE_THREADS

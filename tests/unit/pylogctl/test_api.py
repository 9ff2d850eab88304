"""The names of `import pylogctl`: they are listed for programs, editors and type checkers alike."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pylogctl

REPOSITORY = Path(__file__).parents[3]
PROGRAM = """
import pylogctl

def last_orders(address: str) -> list[str]:
    with pylogctl.connect(address, timeout=5) as client:
        receipt: pylogctl.Receipt = client.send("orders", "one", key="k")
        offset: int = receipt.offset
        with client.producer(codec="gzip") as producer:
            producer.send("orders", b"two").add_done_callback(lambda one: print(one.result()))
        with client.read("orders", start={0: offset}) as reader:
            client.read("orders", start=reader.positions)
        for message in client.group("billing", "orders"):
            value: bytes = message.value
        return [one.text() for one in client.read("orders", start=offset, stop="end")]

try:
    last_orders("localhost")
except pylogctl.Unreachable as error:
    print(error.is_retriable)
"""


def checked_names() -> set[str]:
    """Return the names that type checkers see."""
    tree = ast.parse((REPOSITORY / "pylogctl/__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or ""
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_names_when_listed_then_are_those_of_the_type_checkers_and_all_exist() -> None:
    code = "import pylogctl; print(*(n for n in dir(pylogctl) if n[0] != '_'))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) - {"annotations", "TYPE_CHECKING"} == checked_names()
    for name in checked_names():
        assert getattr(pylogctl, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        pylogctl.conect  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import pylogctl", {"broker.errors", "asyncio", "logging"}),
        ("import pylogctl; pylogctl.connect", {"kazoo", "asyncio", "ssl", "broker.server"}),
        ("import pylogctl.pytest_plugin", {"broker.errors", "pylogctl.cli"}),
    ],
)
def test_import_when_little_is_used_then_little_is_loaded(code: str, absent: set[str]) -> None:
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) & absent == set()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("pass", ""),
        ("pylogctl.conect('a')", 'has no attribute "conect"'),
        ("pylogctl.connect('a').send('t', 5)", 'incompatible type "int"'),
        ("pylogctl.connect('a').group('g', 't', commit='never')", "incompatible type"),
    ],
)
def test_program_when_checked_strictly_then_only_its_own_mistakes_are_found(
    tmp_path: Path, line: str, problem: str
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM + line + "\n")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "program.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(REPOSITORY), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert problem in found.stdout
    assert (found.returncode == 0) == (not problem), found.stdout

"""The names of `import pylogctl`: they are listed for programs, editors and type checkers alike."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import pylogctl

REPOSITORY = Path(__file__).parents[3]


def checked_names(package: str) -> set[str]:
    """Return the names that type checkers see."""
    tree = ast.parse((REPOSITORY / package / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or ""
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", ["pylogctl", "broker"])
def test_names_when_listed_then_are_those_of_the_type_checkers_and_all_exist(package: str) -> None:
    names = checked_names(package)
    code = f"import {package}; print(*(n for n in dir({package}) if n[0] != '_'))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) - {"annotations", "TYPE_CHECKING"} == names
    module = importlib.import_module(package)
    for name in names:
        assert getattr(module, name) is not None


def test_name_when_misspelt_then_there_is_none() -> None:
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

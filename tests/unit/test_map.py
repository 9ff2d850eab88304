"""The map of the code: each folder's `__init__.py` says what every file in it is for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FOLDERS = sorted(
    one.parent for top in ("broker", "pylogctl") for one in (REPOSITORY / top).rglob("__init__.py")
)


def named_in(folder: Path) -> list[str]:
    """Return the files of whose purpose a line of the folder's docstring tells."""
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    return re.findall(r"^ *(\w+\.py)  +\S", ast.get_docstring(tree) or "", re.MULTILINE)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda one: str(one.relative_to(REPOSITORY)))
def test_docstring_of_a_folder_when_read_then_says_what_each_file_is_for(folder: Path) -> None:
    files = sorted(one.name for one in folder.glob("*.py") if one.name != "__init__.py")
    assert sorted(named_in(folder)) == files

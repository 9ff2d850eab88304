"""The size of the product: two people carry it, so that each folder has a budget.

A row falls with what a change takes away. It is raised only by the change that needs it, whose
message gives the reason.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
BUDGET: dict[str, int] = {
    "broker": 3857,
    "broker/admin": 4995,
    "broker/aio": 1886,
    "broker/api": 3210,
    "broker/client": 2047,
    "broker/consumer": 3946,
    "broker/controller": 1346,
    "broker/log": 8822,
    "broker/producer": 3202,
    "broker/protocol": 3880,
    "broker/replication": 731,
    "broker/schemas": 1195,
    "broker/security": 1275,
    "broker/server": 12248,
    "broker/spark": 6158,
    "broker/tools": 1372,
    "broker/zk": 3851,
    "pylogctl": 609,
    "pylogctl/acl": 201,
    "pylogctl/archive": 46,
    "pylogctl/audit": 372,
    "pylogctl/broker": 769,
    "pylogctl/cli": 4579,
    "pylogctl/cluster": 345,
    "pylogctl/config": 440,
    "pylogctl/consume": 1402,
    "pylogctl/context": 137,
    "pylogctl/copy": 221,
    "pylogctl/doctor": 311,
    "pylogctl/format": 867,
    "pylogctl/group": 1044,
    "pylogctl/help": 255,
    "pylogctl/log": 1633,
    "pylogctl/metrics": 148,
    "pylogctl/mirror": 943,
    "pylogctl/perf": 1218,
    "pylogctl/pipeline": 2361,
    "pylogctl/plugins": 41,
    "pylogctl/produce": 1830,
    "pylogctl/schema": 266,
    "pylogctl/testing": 575,
    "pylogctl/top": 1783,
    "pylogctl/topic": 900,
    "pylogctl/user": 236,
    "pylogctl/web": 3388,
    "pylogctl/zk": 747,
    "pyspark_pylog": 2,
}


def lines_of_code(source: str) -> int:
    """Return how many lines have code: no blanks, comments or docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):  # also one below a field
                docstrings.update(range(node.lineno, (node.end_lineno or 0) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings)


def folder_of(path: Path) -> str:
    """Return the folder whose budget a module counts for."""
    parts = path.relative_to(REPOSITORY).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


@pytest.fixture(scope="module")
def sizes() -> Counter[str]:
    found: Counter[str] = Counter()
    for top in ("broker", "pylogctl", "pyspark_pylog"):
        for path in (REPOSITORY / top).rglob("*.py"):
            found[folder_of(path)] += lines_of_code(path.read_text(encoding="utf-8"))
    return found


def test_lines_when_counted_then_blanks_comments_and_docstrings_are_not() -> None:
    assert lines_of_code('"""Doc."""\n\nx = 1  # why\n# why\n\ny = """a\nb"""\n"""Of y."""\n') == 3


def test_folders_when_measured_then_are_within_their_budgets(sizes: Counter[str]) -> None:
    over = {one: size for one, size in sizes.items() if size > BUDGET.get(one, 0)}
    assert not over, "lines of folders that are too large"


def test_budgets_when_a_folder_has_shrunk_then_have_fallen_with_it(sizes: Counter[str]) -> None:
    loose = {one: sizes[one] for one, limit in BUDGET.items() if limit > sizes[one] * 1.02 + 20}
    assert not loose, "lines of folders whose budget is to fall"

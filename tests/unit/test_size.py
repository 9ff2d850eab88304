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
    "broker": 3522,
    "broker/admin": 5335,
    "broker/aio": 2083,
    "broker/api": 3026,
    "broker/client": 1967,
    "broker/consumer": 3889,
    "broker/controller": 1347,
    "broker/log": 5253,
    "broker/producer": 2848,
    "broker/protocol": 3315,
    "broker/replication": 751,
    "broker/security": 1316,
    "broker/server": 12045,
    "broker/spark": 5946,
    "broker/tools": 1353,
    "broker/zk": 3968,
    "pylogctl": 451,
    "pylogctl/acl": 251,
    "pylogctl/audit": 326,
    "pylogctl/broker": 886,
    "pylogctl/cli": 5022,
    "pylogctl/cluster": 442,
    "pylogctl/config": 527,
    "pylogctl/consume": 1361,
    "pylogctl/context": 181,
    "pylogctl/copy": 252,
    "pylogctl/doctor": 333,
    "pylogctl/format": 754,
    "pylogctl/group": 1290,
    "pylogctl/help": 277,
    "pylogctl/log": 1397,
    "pylogctl/metrics": 165,
    "pylogctl/mirror": 1010,
    "pylogctl/perf": 1272,
    "pylogctl/pipeline": 2346,
    "pylogctl/produce": 1771,
    "pylogctl/testing": 595,
    "pylogctl/top": 1858,
    "pylogctl/topic": 1133,
    "pylogctl/user": 330,
    "pylogctl/web": 3354,
    "pylogctl/zk": 910,
    "pyspark_pylog": 2,
}


def lines_of_code(source: str) -> int:
    """Return how many lines have code: no blanks, comments or docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            docstrings.update(range(first.lineno, (first.end_lineno or 0) + 1))
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
    assert lines_of_code('"""Doc."""\n\nx = 1  # why\n# why\n\ny = """a\nb"""\n') == 3


def test_folders_when_measured_then_are_within_their_budgets(sizes: Counter[str]) -> None:
    over = {one: size for one, size in sizes.items() if size > BUDGET.get(one, 0)}
    assert not over, "lines of folders that are too large"


def test_budgets_when_a_folder_has_shrunk_then_have_fallen_with_it(sizes: Counter[str]) -> None:
    loose = {one: sizes[one] for one, limit in BUDGET.items() if limit > sizes[one] * 1.02 + 20}
    assert not loose, "lines of folders whose budget is to fall"

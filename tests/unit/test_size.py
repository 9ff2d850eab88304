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
    "broker": 3673,
    "broker/admin": 5286,
    "broker/aio": 2967,
    "broker/api": 3049,
    "broker/client": 1985,
    "broker/consumer": 3980,
    "broker/controller": 1372,
    "broker/log": 5299,
    "broker/producer": 3125,
    "broker/protocol": 3528,
    "broker/replication": 773,
    "broker/security": 1349,
    "broker/server": 12635,
    "broker/spark": 5982,
    "broker/tools": 1385,
    "broker/zk": 4098,
    "pylogctl": 313,
    "pylogctl/acl": 269,
    "pylogctl/audit": 336,
    "pylogctl/broker": 993,
    "pylogctl/cli": 5100,
    "pylogctl/cluster": 496,
    "pylogctl/config": 563,
    "pylogctl/consume": 1471,
    "pylogctl/context": 186,
    "pylogctl/copy": 284,
    "pylogctl/doctor": 347,
    "pylogctl/format": 779,
    "pylogctl/group": 1285,
    "pylogctl/help": 280,
    "pylogctl/log": 1445,
    "pylogctl/metrics": 167,
    "pylogctl/mirror": 1172,
    "pylogctl/perf": 1524,
    "pylogctl/pipeline": 2406,
    "pylogctl/produce": 1950,
    "pylogctl/testing": 595,
    "pylogctl/top": 1866,
    "pylogctl/topic": 1291,
    "pylogctl/user": 357,
    "pylogctl/web": 3510,
    "pylogctl/zk": 924,
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

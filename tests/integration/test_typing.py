"""Programs of users are checked against an installed wheel, by both checkers of types.

The programs are in `tests/typing`. A line there that must fail has comments that expect the errors
of both checkers; one that is not needed is an error itself.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = REPOSITORY / "tests" / "typing"
NOT_IN_WHEEL = (
    ".*",
    "__pycache__",
    "*.so",
    "*.egg-info",
    "build",
    "dist",
    "tests",
    "bench",
    "fuzz",
)
PYRIGHT = {
    "typeCheckingMode": "strict",
    "enableTypeIgnoreComments": False,  # these are mypy's
    "reportUnnecessaryTypeIgnoreComment": "error",
}
FIXTURES = (
    *(f"pylogctl.testing.{one}." for one in ("brokers", "clock", "faults")),
    "pylogctl.pytest_plugin.",
)


def run(*command: str | Path, directory: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a module; the tests of Spark may have put this tree on the path of processes."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": "", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel of this tree, and nothing else; its folder."""
    work = tmp_path_factory.mktemp("wheel")
    source, environment = work / "source", work / "environment"
    shutil.copytree(REPOSITORY, source, ignore=shutil.ignore_patterns(*NOT_IN_WHEEL))
    pip: list[str | Path] = [
        "pip",
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--no-python-version-warning",
    ]
    built = run(
        *(*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", "wheels", "."),
        directory=source,
        CC="false",  # the compiled codec takes a while, and has no types of its own
    )
    assert not built.returncode, built.stdout + built.stderr
    (wheel,) = source.glob("wheels/*.whl")
    run("venv", "--without-pip", environment, directory=work)
    pip += ["--python", environment / "bin" / "python"]
    done = run(
        *pip,
        *("install", "--no-deps", "--no-index", "--no-compile", wheel),
        directory=work,
    )
    assert not done.returncode, done.stderr
    return environment


@pytest.fixture(scope="module")
def programs(installed: Path) -> Path:
    """A folder with copies of the programs, far from this tree."""
    folder = shutil.copytree(PROGRAMS, installed.parent / "programs")
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    return folder


def verified_types(package: str, installed: Path) -> list[dict[str, Any]]:
    """Return what pyright says of each name of a package that other programs can see."""
    done = run(
        *("basedpyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"),
        directory=installed,
        PATH=f"{installed / 'bin'}{os.pathsep}{os.environ['PATH']}",  # `--pythonpath` is not used
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    return found


def public_names() -> set[str]:
    """Return where the names of `import pylogctl` are made, as `module.name`."""
    tree = ast.parse((REPOSITORY / "pylogctl" / "__init__.py").read_text(encoding="utf-8"))
    return {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("broker.")
        for alias in node.names
    }


def test_wheel_when_installed_then_says_that_it_has_types(installed: Path) -> None:
    (site,) = installed.glob("lib/python*/site-packages")
    for name in ("broker/py.typed", "pylogctl/py.typed", "broker/protocol/_codec.pyi"):
        assert (site / name).is_file(), name


def test_wheel_when_installed_then_has_the_files_of_the_web_pages(installed: Path) -> None:
    (site,) = installed.glob("lib/python*/site-packages")
    folder = Path("pylogctl/web/pages")
    files = {one.relative_to(REPOSITORY) for one in (REPOSITORY / folder).glob("[st]*/*")}
    assert files
    assert files <= {one.relative_to(site) for one in (site / folder).glob("*/*")}


def test_programs_when_checked_by_mypy_then_have_the_errors_that_they_expect(
    installed: Path, programs: Path
) -> None:
    done = run(
        *("mypy", "--strict", "--python-executable", installed / "bin" / "python"),
        *("--cache-dir", installed.parent / "mypy", "."),
        directory=programs,
    )
    assert done.stdout.startswith("Success"), done.stdout + done.stderr


def test_programs_when_checked_by_pyright_then_have_the_errors_that_they_expect(
    installed: Path, programs: Path
) -> None:
    done = run(
        *("basedpyright", "--pythonpath", installed / "bin" / "python", "."), directory=programs
    )
    assert done.stdout.startswith("0 errors, 0 warnings"), done.stdout + done.stderr


def test_public_names_when_verified_by_pyright_then_have_complete_types(installed: Path) -> None:
    library = verified_types("broker", installed)
    tools = verified_types("pylogctl", installed)
    public = public_names()
    members = tuple(f"{name}." for name in public)
    assert public <= {one["name"] for one in library}
    incomplete = [
        f"{one['name']}: {[found['message'] for found in one['diagnostics']]}"
        for one in [*library, *tools]
        if one["name"] in public or one["name"].startswith((*members, *FIXTURES))
        if one["isExported"] and not one["isTypeKnown"]
    ]
    assert not incomplete, "\n".join(incomplete)

"""The examples of docs/extending.md run as they stand, against a broker with the page's file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.command_line import REPOSITORY
from tests.support.command_line import clean_environment as clean_environment
from tests.support.waiting import wait_until

PAGE = (REPOSITORY / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^### (?P<title>[^\n]*)$|^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


class Step(NamedTuple):
    """A command of the page, and what it writes; empty for one that is run once."""

    section: str
    command: str
    expected: str


def files_and_steps() -> tuple[dict[str, str], list[Step]]:
    """Return the files of the page, with all blocks of each, and its commands."""
    files: dict[str, str] = {}
    steps: list[Step] = []
    section = ""
    for block in BLOCK.finditer(PAGE):
        if block["title"]:
            section = block["title"]
        elif block["kind"] in ("python", "properties"):
            name = block["text"].split("\n", 1)[0].removeprefix("# ")
            files[name] = files.get(name, "") + block["text"]
        elif block["kind"] == "console":
            for part in re.split(r"^\$ ", block["text"], flags=re.M)[1:]:
                command, _, expected = part.partition("\n")
                steps.append(Step(section, command, expected))
    return files, steps


FILES, STEPS = files_and_steps()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """The page's files in a folder, and the environment of commands, with a broker of that file."""
    folder = tmp_path_factory.mktemp("extending")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(folder), str(REPOSITORY)]))
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    command = "pylogctl broker start --config server.properties --no-zookeeper --port 0"
    words = [*command.split(), "--data", "data", "--ready-file", "ready"]
    with (
        (folder / "broker.log").open("wb") as log,
        subprocess.Popen(words, cwd=folder, env=env, stdout=log, stderr=log) as process,
    ):
        try:
            wait_until((folder / "ready").exists, "the start of the broker")
            ready = dict(re.findall(r"(\w+)=(\S+)", (folder / "ready").read_text()))
            env["PYLOGCTL_BROKER"] = f"{ready['host']}:{ready['port']}"
            yield folder, env
        finally:
            process.terminate()


def test_page_when_read_then_has_an_example_of_each_kind() -> None:
    kinds = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.M)
    from broker.plugins import KINDS

    assert kinds == list(KINDS)
    shown = "".join(step.command for step in STEPS) + "".join(FILES.values())
    names = ("by_region", "sealed", "Redact", "numbered", "unsealed", "as_sql", "may_delete")
    assert all(f"acme_plugins:{name}" in shown for name in names)


def test_examples_when_run_in_their_order_then_write_what_the_page_shows(
    place: tuple[Path, dict[str, str]],
) -> None:
    folder, env = place

    def output_of(step: Step) -> str:
        words = ["bash", "-o", "pipefail", "-c", step.command]
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, timeout=120)
        seen[step] = done.stdout.decode() + done.stderr.decode()
        if not step.expected:
            assert done.returncode == 0, (step, seen[step])
        return done.stdout.decode()

    seen: dict[Step, str] = {}
    for step in STEPS:
        if not step.expected:
            output_of(step)
            continue
        try:
            wait_until(lambda step=step: output_of(step) == step.expected, step.command)  # type: ignore[misc]
        except pytest.fail.Exception:
            pytest.fail(f"{step.section}: {step.command}\n{seen[step]}\nnot\n{step.expected}")

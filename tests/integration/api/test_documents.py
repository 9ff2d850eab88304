"""The Python programs in the README and in docs/python.md run as they stand there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from pylogctl.testing import Broker, ephemeral_cluster

REPOSITORY = Path(__file__).parents[3]


def programs(name: str) -> list[str]:
    """Return the blocks of a page that use `pylogctl` from Python."""
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", text, flags=re.MULTILINE)
    found = [textwrap.dedent(one).strip() + "\n" for one in blocks]
    return [one for one in found if re.match(r"(import pylogctl|from pylogctl|def test_)", one)]


PROGRAMS = [one for page in ("README.md", "docs/python.md") for one in programs(page)]


def test_programs_when_searched_then_are_found() -> None:
    assert len(PROGRAMS) == 4


@pytest.mark.zookeeper
def test_program_of_a_group_when_run_then_works(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = (one for one in PROGRAMS if "client.group(" in one)
    ending = program.replace('start="earliest"', 'start="earliest", idle=5')
    with ephemeral_cluster(1) as cluster, cluster.connect() as client:
        client.send("orders", "one")
        exec(ending.replace("localhost:9092", cluster.address), {})
    assert "b'one'" in capsys.readouterr().out


@pytest.mark.parametrize("program", [one for one in PROGRAMS if "client.group(" not in one])
def test_program_when_run_as_it_stands_then_works(program: str, pylog_broker: Broker) -> None:
    names: dict[str, object] = {}
    exec(program.replace("localhost:9092", pylog_broker.address), names)
    if "test_orders" in names:
        with pylog_broker.connect() as client:
            names["test_orders"](client, "orders-of-a-test")  # type: ignore[operator]

"""Listings on a real terminal of 80, 100 and 130 columns.

What each looks like is kept in `screens/`, a file for a listing; `python -m
tests.integration.pylogctl.test_screens` writes them anew: read the difference before it is
committed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest

from broker import Broker
from broker.config import BrokerConfig
from broker.consumer.config import ConsumerConfig
from broker.producer.config import ProducerConfig
from broker.protocol.codec import encode
from broker.zk.session import Session
from pylogctl.cli.columns import Column, ColumnKind, Document, Fit, by_column
from pylogctl.cli.environment import Environment, Streams
from pylogctl.cli.render import _text
from tests.integration.pylogctl.group.group_fixtures import await_topic
from tests.integration.pylogctl.topic.test_topic import fill
from tests.support.command_line import REPOSITORY, Invoke, process_environment
from tests.support.listings import END, LISTINGS, MARK

WIDTHS = (80, 100, 130)
SCREENS = Path(__file__).parent / "screens"
_HEIGHT = 2000
_NO_VALUES = ("-", "")


def on_terminal(home: Path, width: int, *words: str) -> tuple[list[str], int]:
    """Run a module on a terminal; return the lines it shows, and its exit status.

    A line that is wider than the terminal takes several lines there, and fails here.
    """
    child = pexpect.spawn(
        sys.executable,
        ["-m", *words],
        cwd=str(REPOSITORY),
        env=process_environment(home, {"TERM": "xterm", "PAGER": "cat"}),
        dimensions=(50, width),
        encoding="utf-8",
        timeout=60,
    )
    child.expect(pexpect.EOF)
    child.close()
    written = str(child.before)
    screen = pyte.Screen(width, _HEIGHT)
    pyte.Stream(screen).feed(written)
    lines = [line.rstrip() for line in screen.display]
    while lines and not lines[-1]:
        lines.pop()
    assert len(lines) == len(written.rstrip().splitlines()), "a line is too wide"
    return lines, int(child.exitstatus)


@cache
def _screens(home: Path, width: int) -> dict[str, list[str]]:
    lines, status = on_terminal(home, width, "tests.support.listings")
    assert status == 0
    screens: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        if line == END:
            return screens
        if line.startswith(MARK):
            current = screens.setdefault(line.removeprefix(MARK), [])
        else:
            current.append(line)
    raise AssertionError(f"no end: {lines[-3:]}")


def golden(name: str, home: Path) -> str:
    """Return a listing in all widths, as its file has it."""
    parts = []
    for width in WIDTHS:
        parts += [f"{f' {width} columns ':=^{width}}", *_screens(home, width)[name], ""]
    return "\n".join(parts)


def _file_of(name: str) -> Path:
    return SCREENS / (re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-").lower() + ".txt")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.mark.parametrize("name", LISTINGS)
def test_listing_looks_as_it_did(name: str, home: Path) -> None:
    assert golden(name, home) == _file_of(name).read_text()


def test_screens_are_of_listings_that_there_are() -> None:
    assert {_file_of(name) for name in LISTINGS} == set(SCREENS.iterdir())


def _cells(document: Document, rows: Iterable[Any]) -> Iterator[tuple[Column, list[str]]]:
    """Yield the columns that are shown, with their cells as they are when there is room."""
    records = list(map(by_column, rows))
    for column in document.columns:
        if column.shown:
            values = [record.get(column.name) for record in records]
            yield column, [_text_of(value, column) for value in values]


def _text_of(value: object, column: Column) -> str:
    return _text(Environment(Streams(None, None, None), {}), value, column, scaled=True)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", LISTINGS)
def test_listing_shows_or_names_each_column_and_folds_no_value(
    name: str, width: int, home: Path
) -> None:
    listing = LISTINGS[name]
    text = "\n".join(_screens(home, width)[name])
    table, _, note = text.partition("not shown: ")
    left_out = set(re.split(r",\s+", note.partition(";")[0])) - {""}
    names = {column.name for column in listing.document.columns}
    assert left_out <= names

    for column, cells in _cells(listing.document, listing.rows):
        if column.name in left_out or set(cells) <= {*_NO_VALUES}:
            continue
        assert re.search(rf"(?:^|\s){re.escape(column.heading)}(?:\s|$)", table), column.name
        if column.kind is not ColumnKind.TEXT or column.fit in (Fit.WHOLE, Fit.STATE):
            for cell in cells:
                whole = rf"(?:^|\s){re.escape(cell)}(?:\s|$)"
                assert re.search(whole, table) or cell in _NO_VALUES, (column.name, cell)


@pytest.mark.parametrize("width", WIDTHS)
def test_topics_that_are_alike_can_be_told_apart(width: int, home: Path) -> None:
    for name in ("topic list", "topic describe", "group describe", "audit check", "copy"):
        starts = {line.split()[0] for line in _screens(home, width)[name] if "…" in line}
        assert len(starts - {"-"}) in (0, 3), name


@pytest.fixture
def files(tmp_path: Path) -> Path:
    log = tmp_path / f"{'a-topic-' * 5}_0"
    log.mkdir()
    payloads = [b'{"number":%d,"text":"%s"}' % (n, b"words " * 30) for n in range(50)]
    (log / f"{0:020}.pylog").write_bytes(encode(payloads))
    whole = encode(payloads)
    damaged = whole[:300] + b"\xff" + whole[301:-1]
    (log / f"{len(whole):020}.pylog").write_bytes(damaged)
    return log


@pytest.mark.parametrize(
    "words",
    [("dump", "--no-pager"), ("stat",), ("index",), ("verify",)],
)
def test_log_commands_fit_the_terminal(words: tuple[str, ...], files: Path, home: Path) -> None:
    targets = sorted(map(str, files.iterdir()))[: 2 if words[0] == "verify" else 1]
    command = ("pylogctl", "log", words[0], *targets, *words[1:])
    lines, _ = on_terminal(home, 80, *command)
    assert len(lines) > 2


@pytest.mark.parametrize("words", [("version",), ("doctor",), ("consume", "-X", "list")])
def test_commands_without_a_broker_fit_the_terminal(words: tuple[str, ...], home: Path) -> None:
    lines, _ = on_terminal(home, 80, "pylogctl", *words)
    assert len(lines) > 2


@pytest.mark.parametrize("what", ["list", "dump"])
def test_names_of_settings_are_whole_on_a_terminal_and_in_a_pipe(
    what: str, home: Path, invoke: Invoke
) -> None:
    kinds = (ProducerConfig, ConsumerConfig, BrokerConfig)
    names = {one.name for kind in kinds for one in kind.PROPERTIES}
    lines, _ = on_terminal(home, 80, "pylogctl", "-X", what)
    assert what == "dump" or "--output tsv shows all" in " ".join(lines)
    for shown in (lines, invoke("-X", what).text.splitlines()):
        assert names <= {line.partition(" ")[0] for line in shown}


TOPIC = "payments.settlement.eu-1.transactions-v2"
LIVE = [
    ("topic", "list"),
    ("topic", "describe", TOPIC),
    ("topic", "offsets", TOPIC),
    ("topic", "sample", TOPIC, "-n", "3"),
    ("topic", "count", TOPIC),
    ("broker", "list"),
    ("broker", "status", "0"),
    ("cluster", "describe"),
    ("config", "list", "--broker", "0"),
    ("group", "list"),
    ("group", "describe", "billing"),
    ("group", "lag", "billing"),
    ("group", "verify", "billing"),
    ("zk", "ls", "/brokers", "--long"),
    ("zk", "tree", "/brokers"),
    ("zk", "get", "-s", "/brokers/ids/0"),
]


@pytest.mark.zookeeper
def test_commands_with_a_broker_and_a_registry_fit_the_terminal(
    start_broker: Callable[..., Broker], zookeeper: str, session: Session, home: Path
) -> None:
    started = start_broker(zookeeper=zookeeper, num_partitions=3)
    for index in range(3):
        fill(started, TOPIC, [b"words " * 40] * 10, index=index)
    await_topic(session, TOPIC)
    session.create(f"/consumers/billing/offsets/{TOPIC}/0-0", b"4814207331208")
    for words in LIVE:
        lines, status = on_terminal(home, 80, "pylogctl", *words, "-Z", zookeeper)
        assert status in (0, 8), lines
        assert lines, words


def _write_anew() -> None:
    SCREENS.mkdir(exist_ok=True)
    for path in SCREENS.iterdir():
        path.unlink()
    for name in LISTINGS:
        _file_of(name).write_text(golden(name, Path.home()))


if __name__ == "__main__":
    _write_anew()

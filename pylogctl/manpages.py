"""Where the manual pages are, and which one explains what."""

from __future__ import annotations

import site
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pylogctl.errors import CliError, did_you_mean
from pylogctl.exit_status import ExitStatus

TOPICS = {
    "offsets": "pylogctl-offsets.7",
    "formats": "pylogctl-formats.7",
    "framing": "pylogctl-framing.7",
    "exit-codes": "pylogctl-exit-codes.7",
    "environment": "pylogctl-environment.7",
    "config": "pylogctl-config.5",
    "segment": "pylogctl-segment.5",
}


def find_page(words: Sequence[str]) -> Path:
    """Return the page that explains a command or topic.

    Args:
        words: a command such as `log verify`, or one of `TOPICS`; none for the program itself.

    Raises:
        CliError: there is no such page, or the pages are not installed.
    """
    wanted = [word for word in words if word != "pylogctl"]
    name = TOPICS.get(wanted[0]) if len(wanted) == 1 else None
    name = name or "-".join(["pylogctl", *wanted[:1]]) + ".1"
    directories = list(_directories())
    for directory in directories:
        path = directory / f"man{name[-1]}" / name
        if path.exists():
            return _followed(path, directory)
    known = sorted({*TOPICS, *_commands(directories)})
    if not known:
        raise CliError(ExitStatus.CONFIG, "the manual pages are not installed")
    raise CliError(
        ExitStatus.NOT_FOUND,
        f"no manual page for '{' '.join(words)}'{did_you_mean(wanted[0], known)}",
        hints=[f"topics: {', '.join(TOPICS)}", "try: pylogctl --help"],
    )


def _directories() -> Iterator[Path]:
    """Yield where pages can be: beside the sources, then where packages put them."""
    checkout = Path(__file__).resolve().parents[1] / "man"
    if checkout.is_dir():
        yield checkout
    for prefix in (sys.prefix, site.getuserbase()):
        yield Path(prefix) / "share" / "man"


def _followed(path: Path, directory: Path) -> Path:
    """Return the page an alias page points to."""
    text = path.read_text(encoding="utf-8")
    return directory / text[4:].strip() if text.startswith(".so ") else path


def _commands(directories: Sequence[Path]) -> Iterator[str]:
    for directory in directories:
        for path in directory.glob("man1/pylogctl-*.1"):
            yield path.name.removeprefix("pylogctl-").removesuffix(".1")

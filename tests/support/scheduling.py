"""Which process of pytest-xdist runs which tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler.loadscope import LoadScopeScheduling

REPOSITORY = Path(__file__).parents[2]


class FilesInOrder(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Each file goes as a whole to the next process that is free, in the order of collection.

    So long files of integration tests come first, and short ones of unit tests fill up the end.
    Files that share a Spark session go to one process: another session costs more than it brings.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if shares_spark(nodeid) else _path_of(nodeid)


def shares_spark(nodeid: str) -> bool:
    """Return whether tests of the same file ask for the fixture `spark`."""
    return _asks_for_spark(_path_of(nodeid))


@cache
def _asks_for_spark(path: str) -> bool:
    return "spark: SparkSession" in (REPOSITORY / path).read_text(encoding="utf-8")


def _path_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]

"""A stand-in for a Spark session that does tasks one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Tasks:
    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def map(self, work: Callable[[Any], Any]) -> _Tasks:
        return _Tasks([work(item) for item in self._items])

    def collect(self) -> list[Any]:
        return list(self._items)


class _Tracker:
    def getJobIdsForGroup(self, _: str) -> list[int]:  # noqa: N802 - Spark's name
        return []


class _Context:
    def statusTracker(self) -> _Tracker:  # noqa: N802 - Spark's name
        return _Tracker()

    def setJobGroup(self, *_: object, **__: object) -> None:  # noqa: N802 - Spark's name
        pass

    def setLocalProperty(self, *_: object) -> None:  # noqa: N802 - Spark's name
        pass

    def cancelJobGroup(self, *_: object) -> None:  # noqa: N802 - Spark's name
        pass

    def parallelize(self, items: Sequence[Any], _: int) -> _Tasks:
        return _Tasks(items)


class _Session:
    sparkContext = _Context()  # noqa: N815 - Spark's name


def inline_spark() -> SparkSession:
    return cast("SparkSession", _Session())

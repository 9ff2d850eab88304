"""What Spark's plan of a query tells: the columns it reads, and whether an observation is whole.

Reaches into the JVM, as PySpark has no names for plans. With Spark Connect, or another version of
Spark, the answer is that nothing is known.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, Observation

_NAMING_NODES = {
    "Aggregate", "Filter", "GlobalLimit", "Join", "LocalLimit", "Project", "Sort", "SubqueryAlias",
}  # fmt: skip
"""Nodes of a plan that need only the columns that they or their parents name."""
_WHOLE_NODES = {"Aggregate", "CollectMetrics", "Filter", "Project", "Sort", "Union", "Window"}
"""Nodes of a plan that read all rows of their children."""
_METRICS_DEADLINE_S = 60.0
_POLL_S = 0.02


def used_columns(table: DataFrame) -> frozenset[str] | None:
    """Return the columns of messages that a query reads; None if none or unknown.

    Taken from Spark's optimized plan, as Spark does not tell a Python data source.
    """
    from py4j.protocol import Py4JError

    try:
        plan = table._jdf.queryExecution().optimizedPlan()
        return _used_in([plan, *_items(plan.subqueriesAll())])
    except (AttributeError, PySparkException, Py4JError):
        return None  # Spark Connect, or an expression that fails before anything is read


def _used_in(plans: list[JavaObject]) -> frozenset[str] | None:
    names: dict[int, str] = {}
    used: set[int] = set()
    for plan in plans:
        used |= _ids(plan.output())
    nodes = list(plans)
    while nodes:
        node = nodes.pop()
        children = _items(node.children())
        if children:
            used |= _ids(node.references().toSeq())
        elif _kind(node) == "DataSourceV2ScanRelation":
            names |= {one.exprId().id(): one.name() for one in _items(node.output())}
        if _kind(node) not in _NAMING_NODES:
            for child in children:
                used |= _ids(child.output())
        nodes += children
    return frozenset(names[one] for one in used if one in names) if names else None


def _kind(node: JavaObject) -> str:
    return str(node.getClass().getSimpleName())


def _items(sequence: JavaObject) -> list[JavaObject]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _ids(attributes: JavaObject) -> set[int]:
    return {one.exprId().id() for one in _items(attributes)}


def observed_misfits(
    result: DataFrame, observation: Observation, *, is_written: bool
) -> int | None:
    """Return the number of `count_misfits`, as counted by the job that has computed a result.

    `observation` is that of the table from `with_json`. With `is_written`, Spark wrote the result,
    else its rows were fetched. None if the job may have read only some of the messages, or if Spark
    does not report the number.
    """
    from py4j.protocol import Py4JError

    try:
        name = _java(observation).name()
        plans = result._jdf.queryExecution()
        if _wholly_observed(plans.optimizedPlan()).count(name) != 1:
            return None
        if is_written:
            row = _told_of(observation)
        else:
            found = plans.observedMetrics().get(name)
            row = found.get() if found.isDefined() else None
        return None if row is None else int(row.getLong(0))
    except (AttributeError, Py4JError):
        return None  # Spark Connect, or another version


def _java(observation: Observation) -> JavaObject:
    assert observation._jo is not None, "with_json gives it to Spark"
    return observation._jo


def _told_of(observation: Observation) -> JavaObject | None:
    """Return the row of an observation, which Spark reports some time after the end of the job."""
    deadline_s = time.monotonic() + _METRICS_DEADLINE_S
    future = _java(observation).future()
    while not future.isCompleted():
        if time.monotonic() > deadline_s:
            return None
        time.sleep(_POLL_S)
    told = future.value().get()
    return told.get() if told.isSuccess() else None


def _wholly_observed(plan: JavaObject) -> list[str]:
    """Return the names of the observations in a plan that see all rows."""
    found, nodes = [], [plan]
    while nodes:
        node = nodes.pop()
        if _kind(node) in _WHOLE_NODES:
            nodes += _items(node.children())
        if _kind(node) == "CollectMetrics":
            found.append(str(node.name()))
    return found


def is_observed(result: DataFrame, observation: Observation) -> bool:
    """Return whether a query names, or may name, a table that `with_json` observes."""
    from py4j.protocol import Py4JError

    try:
        return str(_java(observation).name()) in str(result._jdf.queryExecution().analyzed())
    except (AttributeError, Py4JError):
        return True

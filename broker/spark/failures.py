"""What failed in Spark, in one line: errors of ours out of Java and Python stack traces."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from broker import errors
from broker.errors import BrokerError, QueryError
from broker.spark.report import DataLossError

_OURS = re.compile(r"^(?:broker\.[a-z_.]+\.)(\w+): (.+)$", re.MULTILINE)
_LAST_LINE = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception): (.+)$", re.MULTILINE)
_CLASSES = {"DataLossError": DataLossError}
_OF_THE_QUERY = ("0A", "22", "42")
"""Classes of SQL states: what Spark does not do; data that an expression cannot take; syntax."""
_CODE = re.compile(r"^\s*\[[A-Z0-9_.]+\] ")
_STATE = re.compile(r" SQLSTATE: \w+")
_POSITION = re.compile(r"\bline (\d+),? (pos|position) (\d+)")


def cause_of(failure: BaseException) -> BrokerError:
    """Return what went wrong as an error of ours.

    Args:
        failure: what Spark raised: an error in planning, in a task, or in a streaming query.

    Returns:
        The error that a task or the planning raised, with its class and its words; a
        `QueryError` if what was asked for cannot be; else a `SparkFailedError` with Spark's first
        line. An error of ours is returned as it is.
    """
    if isinstance(failure, BrokerError):
        return failure
    text = str(failure)
    for name, message in reversed(_OURS.findall(text)):
        kind = _CLASSES.get(name) or getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, BrokerError):
            return kind(message.strip())
    if isinstance(failure, PySparkException) and (failure.getSqlState() or "").startswith(
        _OF_THE_QUERY
    ):
        return QueryError(_located(text))
    if found := _LAST_LINE.findall(text):
        return SparkFailedError(found[-1].strip())
    return SparkFailedError(text.strip().partition("\n")[0] or type(failure).__name__)


def _located(text: str) -> str:
    """Return the first line of what Spark says of a query, and where in the query that is."""
    first = _STATE.sub("", _CODE.sub("", text)).strip().partition("\n")[0]
    sentence = _POSITION.sub("", first).rstrip(" .;,()")
    found = _POSITION.search(text)
    if found is None:
        return sentence
    column = int(found[3]) + (found[2] == "pos")  # one counts from 0, the other from 1
    return f"line {found[1]}, column {column}: {sentence}"


class SparkFailedError(BrokerError):
    """Spark gave up for a reason of its own."""

"""What failed in Spark, in one line: errors of ours out of Java and Python stack traces."""

from __future__ import annotations

import re

from broker import errors
from broker.errors import BrokerError
from broker.spark.report import DataLossError

_OURS = re.compile(r"^(?:broker\.[a-z_.]+\.)(\w+): (.+)$", re.MULTILINE)
_LAST_LINE = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception): (.+)$", re.MULTILINE)
_CLASSES = {"DataLossError": DataLossError}


def cause_of(failure: BaseException) -> BrokerError:
    """Return what went wrong as an error of ours.

    Args:
        failure: what Spark raised: an error in planning, in a task, or in a streaming query.

    Returns:
        The error that a task or the planning raised, with its class and its words; a
        `SparkFailedError` with Spark's first line if none of ours is the cause.
    """
    text = str(failure)
    for name, message in reversed(_OURS.findall(text)):
        kind = _CLASSES.get(name) or getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, BrokerError):
            return kind(message.strip())
    if found := _LAST_LINE.findall(text):
        return SparkFailedError(found[-1].strip())
    return SparkFailedError(text.strip().partition("\n")[0] or type(failure).__name__)


class SparkFailedError(BrokerError):
    """Spark gave up for a reason of its own."""

"""Python workers of Spark, in which the data source runs: what they keep between tasks."""

from __future__ import annotations

import gc
import os
import sys

_REUSED = "SPARK_REUSE_WORKER"
"""An environment variable that Spark sets for workers that run one task after the other."""

_kept_modules = 0


def keep_imports() -> None:
    """Exempt imported modules from garbage collection, if this process is a worker of Spark.

    A worker that Spark keeps collects garbage after each task. Walking all that PySpark, PyArrow
    and this package have imported takes longer than to plan a read, or to read 100,000 messages.
    """
    global _kept_modules
    if _REUSED in os.environ and len(sys.modules) != _kept_modules:
        _kept_modules = len(sys.modules)
        gc.freeze()

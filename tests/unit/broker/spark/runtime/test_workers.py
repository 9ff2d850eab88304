from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from broker.spark.runtime.workers import keep_imports


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_imports_when_in_a_worker_that_is_kept_then_are_not_collected_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    monkeypatch.setitem(sys.modules, "pylog_first", ModuleType("pylog_first"))
    keep_imports()
    kept = gc.get_freeze_count()
    assert kept > 0

    gc.unfreeze()
    keep_imports()
    assert gc.get_freeze_count() == 0, "without another import nothing is kept: it may be garbage"

    monkeypatch.setitem(sys.modules, "pylog_second", ModuleType("pylog_second"))
    keep_imports()
    assert gc.get_freeze_count() > 0


def test_imports_when_in_another_process_then_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARK_REUSE_WORKER", raising=False)
    monkeypatch.setitem(sys.modules, "pylog_third", ModuleType("pylog_third"))

    keep_imports()

    assert gc.get_freeze_count() == 0

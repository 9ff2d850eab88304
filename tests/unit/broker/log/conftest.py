from __future__ import annotations

import inspect
import os
from collections.abc import Sequence

import pytest

from tests.support.kafka_files import copy_partition as copy_partition
from tests.support.log_fixtures import clock as clock
from tests.support.log_fixtures import faulty_disk as faulty_disk
from tests.support.log_fixtures import log_format as log_format
from tests.support.log_fixtures import make_log as make_log
from tests.support.log_fixtures import make_manager as make_manager
from tests.support.log_fixtures import schedule as schedule
from tests.support.log_formats import EXAMPLES


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that takes a `log_format` for both."""
    if "log_format" in inspect.signature(metafunc.function).parameters:
        metafunc.parametrize("log_format", EXAMPLES, indirect=True)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the size of each read from a file is added."""
    sizes: list[int] = []
    pread, preadv = os.pread, os.preadv

    def counted_pread(fd: int, size: int, position: int) -> bytes:
        sizes.append(size)
        return pread(fd, size, position)

    def counted_preadv(fd: int, views: Sequence[memoryview], position: int) -> int:
        sizes.append(sum(map(len, views)))
        return preadv(fd, views, position)

    monkeypatch.setattr(os, "pread", counted_pread)
    monkeypatch.setattr(os, "preadv", counted_preadv)
    return sizes

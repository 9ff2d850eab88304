from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.integration.process.broker_process import BrokerProcess

ProcessFactory = Callable[..., BrokerProcess]


@pytest.fixture
def start_process(tmp_path: Path) -> Iterator[ProcessFactory]:
    """Start brokers on `tmp_path/data` unless told otherwise; killed at the end."""
    processes: list[BrokerProcess] = []

    def start(
        *arguments: str, data: Path = tmp_path / "data", prefix: Sequence[str] = ()
    ) -> BrokerProcess:
        process = BrokerProcess(data, *arguments, prefix=prefix)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()

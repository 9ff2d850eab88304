from __future__ import annotations

import pytest

from broker import Broker
from tests.integration.pylogctl.proxies import at
from tests.support.command_line import Invoke, Result


@pytest.fixture
def perf(running_broker: Broker, invoke: Invoke) -> Invoke:
    """Run `perf` on topic t of `running_broker`, the result as JSON unless something else."""

    def run(command: str, *args: str, output: str = "json") -> Result:
        form = ["--output", output] if output else []
        result: Result = invoke("perf", command, "t", "-b", at(running_broker), *form, *args)
        return result

    return run

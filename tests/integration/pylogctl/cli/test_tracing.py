"""What `-vv` and `-vvv` tell of requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import Broker
from pylogctl.cli.tracing import hex_rows
from tests.support.command_line import Invoke


def test_verbose_twice_tells_requests_and_answers(invoke: Invoke, running_broker: Broker) -> None:
    address = f"127.0.0.1:{running_broker.port}"
    lines = invoke("broker", "status", "-b", address, "-vv").stderr.splitlines()
    assert f"-> {address}: hello, 22 bytes" in lines
    assert any(line.startswith(f"<- broker 0 at {address}: response of ") for line in lines)
    assert not any(line.startswith("  000000") for line in lines)


def test_verbose_thrice_shows_the_bytes(invoke: Invoke, running_broker: Broker) -> None:
    address = f"127.0.0.1:{running_broker.port}"
    stderr = invoke("broker", "status", "-b", address, "-vvv").stderr
    assert "  000000  00 00 00 12 00 40" in stderr


@pytest.mark.parametrize("flags", [[], ["-v"], ["-vvv", "-q"]])
def test_less_verbose_tells_nothing(
    invoke: Invoke, running_broker: Broker, flags: list[str]
) -> None:
    result = invoke("broker", "status", "-b", f"127.0.0.1:{running_broker.port}", *flags)
    assert (result.status, result.stderr) == (0, "")


@given(st.binary(max_size=100), st.integers(0, 60))
def test_hex_rows_show_every_byte_up_to_the_limit(data: bytes, limit: int) -> None:
    rows = list(hex_rows(data, limit))
    shown = bytes.fromhex("".join(row[10:57] for row in rows if "more" not in row))
    assert shown == data[:limit]
    assert any("more bytes" in row for row in rows) == (len(data) > limit)

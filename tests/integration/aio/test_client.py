"""The client for asyncio as an object: its loop, its end, and that it has what `Client` has."""

from __future__ import annotations

import asyncio
import gc
import inspect
import socket
import threading

import pytest

import pylogctl
from pylogctl.testing import Broker
from tests.support.waiting import wait_until


def shape_of(call: object) -> list[tuple[str, object, object]]:
    parameters = inspect.signature(call).parameters  # type: ignore[arg-type]  # a function
    return [(one.name, one.kind, one.default) for one in parameters.values()]


def calls_of(kind: type) -> dict[str, list[tuple[str, object, object]]]:
    return {
        name: shape_of(one)
        for name, one in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def await_threads() -> None:
    wait_until(
        lambda: not any("pylogctl-aio" in one.name for one in threading.enumerate()),
        "the end of the threads",
    )


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (pylogctl.AsyncClient, pylogctl.Client),
        (pylogctl.AsyncReader, pylogctl.Reader),
        (pylogctl.AsyncGroup, pylogctl.Group),
        (pylogctl.AsyncProducer, pylogctl.Producer),
    ],
)
def test_class_when_compared_with_the_one_for_threads_then_has_the_same_calls(
    here: type, there: type
) -> None:
    # a property there that asks brokers is a call here; batches are one of the client; some are
    # for other classes
    own = {"cluster_id", "next_batch", "end"}
    missing = {"batches", "run"}
    found = {name: shape for name, shape in calls_of(here).items() if name not in own}

    assert found == {name: shape for name, shape in calls_of(there).items() if name not in missing}


def test_aconnect_when_compared_with_connect_then_has_the_same_arguments() -> None:
    assert shape_of(pylogctl.aconnect) == shape_of(pylogctl.connect)


def test_aconnect_when_awaited_then_gives_a_client_that_closes(pylog_address: str) -> None:
    async def main() -> None:
        client = await pylogctl.aconnect(pylog_address)
        assert isinstance(await client.topics(), list)
        assert not client.closed
        await client.close()
        await client.close()
        assert client.closed

    asyncio.run(main())


def test_aconnect_when_nobody_listens_then_raises_and_leaves_nothing_open() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{holder.getsockname()[1]}"

        async def main() -> None:
            async with pylogctl.aconnect(address, timeout=5):
                pass

        with pytest.raises(pylogctl.Unreachable):
            asyncio.run(main())
        gc.collect()


def test_aconnect_when_cancelled_then_what_it_connects_later_is_closed(
    pylog_broker: Broker,
) -> None:
    async def main() -> None:
        for turns in range(4):
            connecting = asyncio.create_task(connect())
            for _ in range(turns):
                await asyncio.sleep(0)
            connecting.cancel()
            await asyncio.wait([connecting])
            if not connecting.cancelled():  # it was quicker
                await connecting.result().close()

    async def connect() -> pylogctl.AsyncClient:
        return await pylogctl.aconnect(pylog_broker.address)

    asyncio.run(main())
    await_threads()
    gc.collect()


def test_client_when_used_in_another_loop_then_raises(pylog_address: str) -> None:
    async def connect() -> pylogctl.AsyncClient:
        return await pylogctl.aconnect(pylog_address)

    async def use(client: pylogctl.AsyncClient) -> None:
        with pytest.raises(RuntimeError, match=r"the client belongs to <.*>, and <.*> is running"):
            await client.topics()
        with pytest.raises(RuntimeError, match="the client belongs to"):
            client.read("t")
        with pytest.raises(RuntimeError, match="the client belongs to"):
            await client.close()

    with asyncio.Runner() as first, asyncio.Runner() as second:
        client = first.run(connect())
        second.run(use(client))
        first.run(client.close())


def test_client_when_not_closed_then_warns(pylog_address: str) -> None:
    async def main() -> None:
        await pylogctl.aconnect(pylog_address)

    with pytest.warns(ResourceWarning, match="AsyncClient object .* was not closed"):
        asyncio.run(main())
        gc.collect()
    await_threads()


def test_call_when_its_task_is_cancelled_then_the_client_is_of_use(pylog_address: str) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(pylog_address) as client:
            for turns in range(5):
                call = asyncio.create_task(client.topics())
                for _ in range(turns):
                    await asyncio.sleep(0)
                call.cancel()
                await asyncio.wait([call])
            assert isinstance(await client.topics(), list)

    asyncio.run(main())

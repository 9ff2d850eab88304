"""Calls of the JVM that a signal handler can interrupt.

Py4J waits for responses on the calling thread. A signal handler that raises there leaves the
connection in the middle of a response, and the next calls, which clean up, would read the rest of
it. So the main thread makes its calls through the thread `spark-calls`. A signal only interrupts
the wait for that thread; the next calls use another thread and connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from py4j.clientserver import JavaClient
    from py4j.java_gateway import JavaGateway

_Result = TypeVar("_Result")


def make_interruptible(gateway: JavaGateway, on_thread: Callable[[], None]) -> None:
    """Let a signal handler that raises end all calls of the main thread through a gateway.

    The JVM continues with the interrupted call; the caller has to cancel it. `on_thread` is called
    first on each thread that calls for the main one, as the JVM keeps some state for each thread.
    It must not raise.
    """
    client = gateway._gateway_client
    client.send_command = _Caller(client, on_thread)


def finished(work: Callable[[], _Result], undo: Callable[[_Result], None]) -> _Result:
    """Run work to its end on a new thread, even if the caller is interrupted; return the result.

    `undo` reverts the result of an interrupted call.
    """
    doing: Future[_Result] = Future()

    def do(doing: Future[_Result]) -> None:
        if not doing.set_running_or_notify_cancel():
            return
        try:
            doing.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            doing.set_exception(error)
        finally:
            del doing  # else an error and this frame would refer to each other

    try:
        threading.Thread(target=do, args=(doing,), name="spark-start").start()
        return doing.result()
    except Exception:
        raise
    except BaseException:
        if not doing.cancel():
            undo(doing.result())
        raise
    finally:
        del doing  # likewise


class _Caller:
    """Calls the JVM: on the calling thread, or for the main thread on another one."""

    def __init__(self, client: JavaClient, on_thread: Callable[[], None]) -> None:
        self._client = client
        self._send: Callable[..., Any] = client.send_command
        self._on_thread = on_thread
        self._connection: object = None
        self._thread = self._new_thread()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return self._send(*args, **kwargs)
        try:
            return self._thread.submit(self._call, *args, **kwargs).result()
        except Exception:
            raise
        except BaseException:
            self._thread.shutdown(wait=False)  # busy until the JVM responds
            self._thread = self._new_thread()
            raise

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._send(*args, **kwargs)
        finally:
            # Py4J holds the connection for as long as the thread lives. A forked child has no
            # other thread: it would shut down the connection, which is its parent's, too.
            self._connection = self._client.get_thread_connection()

    def _new_thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "spark-calls", initializer=self._on_thread)

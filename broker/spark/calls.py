"""Calls into the JVM that a signal can interrupt.

Py4J waits for answers on the thread that asks. A signal handler that raises there leaves the
connection in the middle of an answer, and the calls that would clean up read the rest of it. Here a
thread beside the main one asks and waits; the main thread waits for that, which a signal ends at
once, and its next calls take another thread with a connection of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from py4j.clientserver import JavaClient
    from py4j.java_gateway import JavaGateway

Result = TypeVar("Result")


def make_interruptible(gateway: JavaGateway, on_thread: Callable[[], None]) -> None:
    """Have all calls of the main thread through a gateway end when a signal handler raises.

    What the JVM was asked to do goes on there; whoever interrupts has to cancel it.

    Args:
        gateway: to the JVM.
        on_thread: called on each thread that asks for the main one, before it does: the JVM keeps
            some things for each thread. It must not raise.
    """
    client = gateway._gateway_client
    client.send_command = _Calls(client, on_thread)


def finished(work: Callable[[], Result], undo: Callable[[Result], None]) -> Result:
    """Return the result of work that is not to be left half done.

    Args:
        work: done on a thread of its own, to its end even if the caller is interrupted.
        undo: takes the result back then.
    """
    doing: Future[Result] = Future()

    def do(doing: Future[Result]) -> None:
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


class _Calls:
    """Asks the JVM: on the thread that calls, or for the main thread on one beside it.

    Args:
        client: Py4J's, which has a connection for each thread.
        on_thread: called first on each thread beside.
    """

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
            return self._thread.submit(self._ask, *args, **kwargs).result()
        except Exception:
            raise
        except BaseException:
            self._thread.shutdown(wait=False)  # it is busy for who knows how long
            self._thread = self._new_thread()
            raise

    def _ask(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._send(*args, **kwargs)
        finally:
            # Py4J holds it for as long as the thread lives. In a child that is forked no other
            # thread lives: the child would shut down the connection that is its parent's, too.
            self._connection = self._client.get_thread_connection()

    def _new_thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "spark-calls", initializer=self._on_thread)

"""The process that sends for `perf e2e`: started, told to begin and to stop, asked what it sent."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

from pylogctl.errors import CliError
from pylogctl.exit_status import ExitStatus
from pylogctl.perf.measure import Halt
from pylogctl.perf.open_loop import GO, NOTHING_SENT, STOP, LoopPlan, Sent

_LOOK_S = 0.1
_PROGRAM = "from pylogctl.perf.open_loop import main; main()"


class Sender:
    """Another process that sends; it is gone at the end of the block.

    Args:
        order: what it is to send.
    """

    def __init__(self, order: LoopPlan) -> None:
        self.is_done = False
        self.sent = NOTHING_SENT
        """What became of the order, once it is done."""
        self._pipe, theirs = multiprocessing.Pipe()
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(descriptor)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL,
                pass_fds=[descriptor],
            )
        self._pipe.send(order)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def run(self, halt: Halt) -> None:
        """Have it send until all is sent, or until it is time to stop.

        Raises:
            BrokerError: a message could not be delivered.
            CliError: it ended before its time.
        """
        try:
            self._answer(halt)
            if not halt():
                self._pipe.send(GO)
                self.sent = self._answer(halt)
        except (EOFError, OSError) as error:
            status = self._process.wait()
            raise CliError(
                ExitStatus.FAILED, f"the process that sends ended with status {status}"
            ) from error
        finally:
            self.is_done = True
        if self.sent.error is not None:
            raise self.sent.error

    def _answer(self, halt: Halt) -> Sent:
        """Return what it says next; it is told to stop meanwhile when it is time to."""
        is_told = False
        while not self._pipe.poll(_LOOK_S):
            if halt() and not is_told:
                self._pipe.send(STOP)
                is_told = True
        answer: Sent = self._pipe.recv()
        return answer

"""Entry point: fast paths, and how signals, broken pipes and errors end the process."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from pylogctl.cli.signals import install

PROGRAM = "pylogctl"
_GARBAGE_THRESHOLD = 50_000
"""New objects until a garbage collection: most are made by imports and stay, so fewer runs help."""


class _Terminated(BaseException):
    """Raised by SIGTERM and SIGHUP, as KeyboardInterrupt is by SIGINT."""


def _raise_terminated(signum: int, frame: FrameType | None) -> NoReturn:
    raise _Terminated


def main() -> NoReturn:
    """Run the command line of this process and exit with its status."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    args = sys.argv[1:]
    if args == ["--version"]:
        from pylogctl import __version__

        _finish(_print(f"{PROGRAM} {__version__}"))
    if args[:1] == ["__complete"]:
        from pylogctl.cli.complete import complete

        complete(args[1:])
        _finish(0)
    install({signal.SIGTERM: _raise_terminated, signal.SIGHUP: _raise_terminated})
    _finish(run(args))


def run(args: list[str]) -> int:
    """Run a command line, without the program's name; return its exit status, 141 for SIGPIPE."""
    try:
        status = _run_command(args)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except (KeyboardInterrupt, _Terminated) as signalled:
        return _status_of(signalled)
    except BrokenPipeError:
        return 141
    except Exception as error:  # noqa: BLE001 - every unexpected error ends here
        from pylogctl.cli.report import report

        return _status_of(error) or report(error, args)


def _status_of(error: BaseException | None) -> int:
    """Return the exit status if a signal raised an error, or the context of an error; else 0."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return 130
        if isinstance(error, _Terminated):
            return 143
        error = error.__context__  # an error while a signal is handled does not replace it
    return 0


def _run_command(args: list[str]) -> int:
    from pylogctl.cli import tree
    from pylogctl.cli.app import root
    from pylogctl.cli.environment import Streams

    return tree.run(root(), args, Streams.of_process())


def _print(text: str) -> int:
    """Write a line to standard output; return the exit status."""
    try:
        os.write(1, f"{text}\n".encode())
    except BrokenPipeError:
        return 141
    except OSError as error:
        from pylogctl.cli.report import report

        return report(error, [])
    return 0


def _finish(status: int) -> NoReturn:
    """End the process: by SIGPIPE after a broken pipe, as filters do, else with a status."""
    if status == 141 or not _flushed():
        # The interpreter flushes again at shutdown and would report the same error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = status or 1
    if status == 141:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    gc.freeze()  # the system takes all memory back; a collection at exit would only take time
    sys.exit(status)


def _flushed() -> bool:
    """Flush standard output; return False if that fails, as it did before."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()

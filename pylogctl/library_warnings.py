"""What the library has to say while a command runs, told as the command tells its own warnings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pylogctl.context import Environment


@contextmanager
def library_warnings(env: Environment) -> Iterator[None]:
    """Tell warnings of the library on standard error, unless `--quiet`; its news with `-v`."""
    handler = _Teller(env)
    library = logging.getLogger("broker")
    former_level = library.level
    library.addHandler(handler)
    library.setLevel(logging.INFO if env.settings.verbosity else logging.WARNING)
    try:
        yield
    finally:
        library.setLevel(former_level)
        library.removeHandler(handler)


class _Teller(logging.Handler):
    def __init__(self, env: Environment) -> None:
        super().__init__()
        self._env = env

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self._env.warn(record.getMessage())
        else:
            self._env.trace(1, record.getMessage())

"""A pager for long text on a terminal; in a pipe, or without one, text goes straight out."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import BinaryIO, cast

from pylogctl.cli.context import Environment

DEFAULT_PAGER = "less -FRX"


def pager_command(env: Environment) -> list[str]:
    """Return the pager to start, empty for none."""
    if not env.streams.stdout_is_tty or not env.settings.pager:
        return []
    text = env.environ.get("PYLOGCTL_PAGER") or env.environ.get("PAGER") or DEFAULT_PAGER
    words = shlex.split(text)
    return words if words and shutil.which(words[0]) else []


@contextmanager
def paged(env: Environment) -> Iterator[Environment]:
    """Give an environment whose standard output goes through the pager where there is one.

    Leaving the pager early is not an error: the rest of the block ends quietly.
    """
    command = pager_command(env)
    if not command:
        yield env
        return
    env.flush()
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        stdin = cast(BinaryIO, process.stdin)
        paged_env = replace(env, streams=replace(env.streams, stdout=stdin))
        with suppress(BrokenPipeError):
            yield paged_env
            stdin.close()

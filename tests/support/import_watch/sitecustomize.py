"""Writes which modules a broker's threads import; found by Python in `PYTHONPATH` at each start."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from pathlib import Path


def note(line: str) -> None:
    with Path(os.environ["IMPORT_WATCH"]).open("a") as file:
        file.write(f"{line}\n")


class ImportWatch:
    """A finder that finds nothing, and notes what other threads than the main one look for."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        thread = threading.current_thread()
        if thread is not threading.main_thread():
            frames = [
                one for one in traceback.extract_stack()[:-1] if "importlib" not in one.filename
            ]
            note(f"{thread.name} imports {name} at {frames[-1].filename}:{frames[-1].lineno}")


if {"start", "bench.serve"}.intersection(sys.orig_argv):
    sys.meta_path.insert(0, ImportWatch())
    note("watched")

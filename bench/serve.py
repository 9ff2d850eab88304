"""A broker as `pylogctl broker start` runs it, for benchmarks: `python -m bench.serve FILE`.

FILE is a `.properties` file. It stops when its stdin ends, also because its parent process has
ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from broker.config import load_file
from pylogctl.__main__ import main


def _stop_at_end_of_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_stop_at_end_of_input, name="input", daemon=True).start()
    settings = sys.argv[1]
    sys.argv = ["pylogctl", "broker", "start", "--output", "json", "--config", settings]
    if "zk.connect" not in load_file(Path(settings)):
        sys.argv.append("--no-zookeeper")
    main()

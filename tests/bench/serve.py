"""A broker as `pylogctl broker start` runs it, for benchmarks: `python -m tests.bench.serve FILE`.

FILE is a `.properties` file. It stops when its stdin ends, which it also does when whoever started
it is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from pylogctl.__main__ import main


def _stop_at_end_of_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_stop_at_end_of_input, name="input", daemon=True).start()
    sys.argv = ["pylogctl", "broker", "start", "--config", sys.argv[1], "--no-zookeeper"]
    sys.argv += ["--output", "json"]
    main()

"""A broker in a process of its own, for the benchmarks: `python -m tests.bench.serve FILE`.

FILE is a `.properties` file. It prints its port when it serves, and stops when its stdin ends,
which it also does when whoever started it is gone.
"""

from __future__ import annotations

import sys
from pathlib import Path

from broker.config import BrokerConfig
from broker.config_file import load_file
from broker.server.lifecycle import Broker


def main() -> None:
    """Serve until stdin ends."""
    broker = Broker(BrokerConfig.from_properties(load_file(Path(sys.argv[1]))))
    broker.start()
    print(broker.port, flush=True)
    sys.stdin.buffer.read()
    broker.stop()


if __name__ == "__main__":
    main()

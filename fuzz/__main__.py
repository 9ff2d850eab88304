"""Fuzzing of the codec's two engines, held against each other, and of a login: `python -m fuzz`.

With a build of the compiled engine that has sanitizers, this also finds reads and writes beyond a
buffer, undefined behaviour and leaks.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import broker.protocol


def main() -> int:
    """Run cases until the time is up or one fails; return the exit status."""
    arguments = _parse_arguments()
    if arguments.build is not None:
        broker.protocol.__path__.insert(0, str(arguments.build))

    # Only now, as these decide which build of the codec is imported.
    from broker.protocol import _codec
    from fuzz.cases import run

    print(f"{_codec.__file__}, CRC-32 by {_codec.CRC_ENGINE}")
    if arguments.build not in (None, Path(_codec.__file__).parent):
        raise SystemExit(f"there is no build of the codec in {arguments.build}")
    return run(arguments.seconds, arguments.seed)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--build", type=_folder, help="the folder of a build of the compiled codec")
    return parser.parse_args()


def _folder(text: str) -> Path:
    return Path(text).resolve()


if __name__ == "__main__":
    sys.exit(main())

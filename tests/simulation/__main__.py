"""Run clusters in simulated time: `make simulate`, or `python -m tests.simulation --seed N`."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from itertools import count

from tests.simulation.checker import ViolationError
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.run import Simulation

_TRACED_LINES = 200
_RUNS_FOR_A_FAULT = 3000


def main() -> int:
    logging.getLogger("broker").addHandler(logging.NullHandler())  # clocks jump all the time
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="one run, with its trace if it fails")
    parser.add_argument("--trace", action="store_true", help="with --seed: its trace in any case")
    parser.add_argument("--first", type=int, help="the first seed of many; the time if not given")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to run")
    parser.add_argument("--runs", type=int, help="how often to run at most")
    parser.add_argument("--fault", choices=FAULTS, help="with a deliberate defect")
    parser.add_argument("--faults", action="store_true", help="a table: each defect until found")
    options = parser.parse_args()
    if options.faults:
        return show_faults()
    fault = FAULTS[options.fault] if options.fault else None
    if options.seed is not None:
        return run_one(options.seed, fault, traces=options.trace)
    first = int(time.time() * 1000) if options.first is None else options.first
    return run_many(first, options.seconds, options.runs, options.fault)


def run_one(seed: int, fault: Fault | None, *, traces: bool) -> int:
    simulation = Simulation(seed, fault, traces=True)
    trace = simulation.scheduler.trace
    assert trace is not None
    try:
        checker = simulation.run()
    except ViolationError as violation:
        print(*trace[-_TRACED_LINES:], sep="\n")
        print(f"seed {seed}: {violation}")
        return 1
    if traces:
        print(*trace, sep="\n")
    print(
        f"seed {seed}: {simulation.scheduler.step_count} steps, all invariants held, "
        f"{checker.committed_count} messages committed"
    )
    return 0


def run_many(first: int, seconds: float, runs: int | None, name: str | None) -> int:
    fault = FAULTS[name] if name else None
    began = time.monotonic()
    steps = committed = acknowledged = 0
    simulated_s = 0.0
    done = 0
    counts: Counter[str] = Counter()
    runs_with: Counter[str] = Counter()
    for seed in count(first):
        if time.monotonic() - began > seconds or done == runs:
            break
        simulation = Simulation(seed, fault)
        try:
            checker = simulation.run()
        except BaseException as error:
            print(
                f"seed {seed} after {done} good runs: {error}\n"
                f"again, with its trace: python -m tests.simulation --seed {seed}"
                + (f" --fault {name}" if name else ""),
                file=sys.stderr,
            )
            if isinstance(error, ViolationError):
                return 1
            raise
        done += 1
        steps += simulation.scheduler.step_count
        simulated_s += simulation.scheduler.now
        counts.update(checker.counts)
        runs_with.update(name for name, count in checker.counts.items() if count)
        committed += checker.committed_count
        acknowledged += sum(map(len, checker.acknowledged.values()))
    for situation in sorted(runs_with):
        print(f"{counts[situation]:9} in {runs_with[situation]:7} runs: {situation}")
    print(
        f"{done} runs from seed {first} on: {steps} steps, {simulated_s / 3600:.1f} hours of "
        f"clusters, {committed} messages committed, {acknowledged} acknowledged; all invariants "
        f"held ({time.monotonic() - began:.0f} s)"
    )
    return 0


def find(fault: Fault, first: int, runs: int) -> tuple[int, str] | None:
    """Run with a defect; return the first seed that shows it, and how; None if none does."""
    for seed in range(first, first + runs):
        try:
            Simulation(seed, fault).run()
        except ViolationError as violation:
            return seed, str(violation)
    return None


def show_faults() -> int:
    missed = 0
    for name, fault in FAULTS.items():
        found = find(fault, 0, _RUNS_FOR_A_FAULT)
        if found is None:
            missed += 1
            print(f"{name:30} NOT FOUND in {_RUNS_FOR_A_FAULT} runs: {fault.text}", flush=True)
        else:
            seed, text = found
            print(f"{name:30} {seed + 1:5} runs  {text[:120]}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

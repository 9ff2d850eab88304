"""Whole clusters in simulated time keep their promises; with a defect built in, it is found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from broker.topic import FORMAT_07
from tests.simulation.__main__ import find, main
from tests.simulation.faults import FAULTS
from tests.simulation.run import Simulation

FIRST_SEEDS = range(300, 400, 50)
"""Those below are run for their situations, and fail as well if a promise is broken."""
SEEDS_THAT_FAILED = {
    30002379: "a change of replicas outlived its topic, whose deletion was interrupted",
    30009119: "the same",
}
"""They show a defect only while the simulation makes the same choices; unit tests hold them too."""
SITUATIONS = (
    "answers of ZooKeeper lost",
    "brokers taken for dead",
    "brokers taken for dead that answer again",
    "changes of in-sync replicas that met an election",
    "changes of in-sync replicas that met another",
    "changes of replicas begun",
    "changes of replicas cancelled",
    "changes of replicas ended",
    "clocks that differ",
    "controllers fenced",
    "controllers not known to ZooKeeper",
    "cuts of epochs without data",
    "disks emptied",
    "elections",
    "fetches discarded",
    "fetches of another session refused",
    "fetches refused: FencedEpochError",
    "fetches refused: UnknownEpochError",
    "fetches restarted",
    "fetches that wait for the throttle",
    "in-sync replicas grow",
    "in-sync replicas shrink",
    "indexes that lie",
    "late orders refused",
    "latest offsets not known yet",
    "leaderships given up for a failed disk",
    "left without a leader",
    "logs given up and fetched again",
    "logs of a former creation set aside",
    "logs that lost their end",
    "losses of the registry's data",
    "messages kept",
    "messages past retention",
    "messages twice in a log",
    "next epoch of the same leader",
    "offices taken over",
    "orders of earlier leader epochs skipped",
    "orders that the disk refused",
    "outcomes unknown: NotEnoughReplicasAfterAppendError",
    "outcomes unknown: NotLeaderError",
    "partitions added",
    "partitions restored",
    "producers that take another id",
    "publishes refused: NotEnoughReplicas",
    "publishes refused: OutOfOrderSequenceError",
    "publishes refused: StorageError",
    "repeated batches found",
    "requests repeated late",
    "retention held back",
    "sessions ended",
    "settings changed",
    "snapshots of producers lost",
    "starts that may have lost messages",
    "stops in good order",
    "terms of controllers",
    "topics created again under a consumer",
    "topics deleted",
    "truncations",
    "truncations below the high watermark",
    "unclean elections",
)


@pytest.mark.parametrize("first", FIRST_SEEDS)
def test_cluster_when_all_goes_wrong_then_keeps_its_promises(first: int) -> None:
    for seed in range(first, first + 50):
        try:
            Simulation(seed).run()
        except AssertionError as error:
            pytest.fail(f"python -m tests.simulation --seed {seed}: {error}")


@pytest.mark.parametrize("seed", SEEDS_THAT_FAILED)
def test_cluster_when_it_broke_a_promise_once_then_keeps_it(seed: int) -> None:
    Simulation(seed, formats=(FORMAT_07,)).run()


def test_runs_when_many_then_every_situation_comes_up() -> None:
    met: Counter[str] = Counter()
    for seed in range(300):
        met.update(Simulation(seed).run().counts)
    assert [one for one in SITUATIONS if not met[one]] == []


@pytest.mark.parametrize("name", FAULTS)
def test_defect_when_built_in_then_is_found(name: str) -> None:
    assert find(FAULTS[name], 0, 600) is not None


def test_run_when_repeated_in_another_process_then_is_the_same_to_the_last_step() -> None:
    traces = {
        subprocess.run(
            [sys.executable, "-m", "tests.simulation", "--seed", "12", "--trace"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert len(traces) == 1
    assert traces.pop().count(b"\n") > 100


def test_program_when_a_run_fails_then_names_the_seed_and_shows_its_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = "acknowledge-before-flush"
    arguments = ["simulation", "--fault", fault, "--first", "0", "--runs", "50"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert main() == 1
    seed = capsys.readouterr().err.split()[1]

    monkeypatch.setattr(sys, "argv", ["simulation", "--fault", fault, "--seed", seed])
    assert main() == 1
    shown = capsys.readouterr().out
    assert "loses power" in shown
    assert f"seed {seed}: I" in shown

"""The comparison with other brokers, where some of them cannot be measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import ours, peers
from bench.measure import Plan

HARNESS = """
import json, sys, time
name, out = (sys.argv[sys.argv.index(word) + 1] for word in ("--peers", "--out"))
if name == "broken":
    sys.exit("no compiler")
if name == "hanging":
    open(out, "w").write('{"rows": [')
    time.sleep(600)
row = {"test": "produce", "mode": "b1-ack", "msgs_per_s": 10.0}
if name == "failing":
    row = {"test": "produce", "mode": "b1-ack", "error": "it does not start"}
with open(out, "w") as file:
    json.dump({"rows": [row] if name != "empty" else []}, file)
"""


def test_peer_that_cannot_be_measured_is_left_out_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench_peers.py").write_text(HARNESS)
    needs = {
        "broken": "sh",
        "failing": "sh",
        "hanging": "sh",
        "empty": "sh",
        "absent": "no-such-broker",
        "ok": "sh",
    }
    rows = [ours.Row(one.mode, 20.0, 1.0, 100.0, 210.0) for one in peers.FIGURES]
    monkeypatch.setattr(peers, "PEERS", {name: peers.Peer(one, 1) for name, one in needs.items()})
    monkeypatch.setattr(peers, "HARNESS", tmp_path)
    monkeypatch.setattr(peers, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(peers, "_RUN_TIMEOUT_S", 3)
    monkeypatch.setattr(ours, "measure", lambda *_: rows)
    figures = {one.name: one for one in peers.run(Plan(True, 1, tmp_path, 1))}
    assert figures["produce batch 1, acknowledged: pylogctl / ok"].values == [2.0] * 3
    told = [
        line.partition(":")[0] for line in capfd.readouterr().err.splitlines() if "left out" in line
    ]
    assert told == ["broken", "failing", "hanging", "empty", "absent"]

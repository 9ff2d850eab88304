"""Undo files: what a command changed, as it was, and the command that restores it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pylogctl.cli.environment import Environment


def new_undo_file(env: Environment, name: str) -> Path:
    """Return the path of a new undo file, whose directory exists; `name` says what is changed."""
    directory = env.state_dir / "undo"
    directory.mkdir(parents=True, exist_ok=True)
    time_ms = env.clock.time_ms()
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    time = f"{moment:%Y%m%dT%H%M%S}{time_ms % 1000:03d}"
    return directory / f"{name}-{time}-{os.getpid()}.jsonl"


def tell_undo(env: Environment, path: Path, command: Sequence[str]) -> None:
    """Print the command that restores what an undo file has."""
    words = ["pylogctl", *command, "--file", str(path), "--execute"]
    if env.settings.zookeeper:
        words += ["--zookeeper", env.settings.zookeeper]
    env.note(f"undo: {shlex.join(words)}")

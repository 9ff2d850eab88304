"""Executors without the package get it; those that have it use theirs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import py4j
import pyarrow
import pyspark
import pytest

from broker.server.broker import Broker
from broker.spark.session import package_zip
from tests.support.spark_session import REPOSITORY, SHORT_LIVED_JVM, publish

_NEEDED = (py4j, pyarrow, pyspark)


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python that has what executors need, and not the package."""
    site = tmp_path / "site"
    site.mkdir()
    for module in _NEEDED:
        (site / module.__name__).symlink_to(Path(str(module.__file__)).parent)
    program = tmp_path / "python"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site}" exec {shlex.quote(sys.executable)} -S "$@"\n'
    )
    program.chmod(0o755)
    return program


def location_of_codec(python: Path, *path: Path) -> str:
    program = "import broker.protocol.codec as c; print(c.__file__)"
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    return subprocess.run(
        [python, "-c", program], env=environ, cwd="/", capture_output=True, text=True, check=True
    ).stdout.strip()


def test_zip_when_the_package_is_installed_too_then_the_installed_one_is_used(
    bare_python: Path, tmp_path: Path
) -> None:
    archive = package_zip(tmp_path)

    assert location_of_codec(bare_python, archive).startswith(str(archive))
    assert location_of_codec(bare_python, archive, REPOSITORY).startswith(str(REPOSITORY))


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_executors_when_they_lack_the_package_then_load_and_read_with_the_one_they_are_sent(
    running_broker: Broker, bare_python: Path, tmp_path: Path
) -> None:
    publish(running_broker, "events", [b"%04d" % number for number in range(100)])
    environ = os.environ | SHORT_LIVED_JVM | {"PYTHONPATH": "", "TMPDIR": str(tmp_path)}
    program = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
    program += "from tests.integration.broker.spark.cluster_job import main; main(*sys.argv[1:])"
    address = f"127.0.0.1:{running_broker.port}"

    job = subprocess.run(
        [sys.executable, "-c", program, bare_python, tmp_path / "lake", address],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert job.returncode == 0, job.stderr
    assert json.loads(job.stdout) == [100, 100]

"""Declarative pipelines of Spark with topics as their input."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from broker.server.broker import Broker
from tests.support.spark_session import REPOSITORY, SHORT_LIVED_JVM, publish

pytest.importorskip("grpc", reason="Spark Connect is not installed")
pytest.importorskip("yaml", reason="the extra pipelines of PySpark is not installed")
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def run_pipeline(folder: Path) -> None:
    """Run the pipeline of the folder once."""
    job = subprocess.run(
        [
            Path(sys.executable).with_name("spark-pipelines"),
            "run",
            *("--conf", "spark.sql.catalogImplementation=hive"),
            *("--conf", "spark.sql.shuffle.partitions=2"),
            *("--conf", f"spark.sql.warehouse.dir={folder / 'data' / 'tables'}"),
        ],
        cwd=folder,
        env=os.environ
        | SHORT_LIVED_JVM
        | {
            "PYTHONPATH": str(REPOSITORY),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_TESTING": "1",  # the server of Spark Connect gets a free port
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert job.returncode == 0, job.stdout + job.stderr


def test_pipeline_when_run_twice_then_its_tables_have_each_message_once(
    shared_data: Path, running_broker: Broker, tmp_path: Path
) -> None:
    lines = (shared_data / "logs" / "OpenSSH_2k.log").read_bytes().splitlines()
    folder = tmp_path / "pipeline"
    shutil.copytree(REPOSITORY / "examples" / "spark_pipeline", folder)
    spec = folder / "spark-pipeline.yml"
    text = spec.read_text().replace("localhost:9092", f"127.0.0.1:{running_broker.port}")
    spec.write_text(text.replace("/tmp/pylog-pipeline", str(folder / "data")))

    publish(running_broker, "ssh", lines[:1500])
    run_pipeline(folder)
    publish(running_broker, "ssh", lines[1500:])
    run_pipeline(folder)

    tables = folder / "data" / "tables"
    stored = ds.dataset(tables / "ssh_lines").to_table().column("line").to_pylist()
    assert Counter(stored) == Counter(line.decode() for line in lines)
    counts = ds.dataset(tables / "failed_logins").to_table().to_pylist()
    found = re.findall(rb"Failed password for .* from (\S+) port", b"\n".join(lines))
    wanted = Counter(source.decode() for source in found)
    assert {row["source"]: row["count"] for row in counts} == wanted

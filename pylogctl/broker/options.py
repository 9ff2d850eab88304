"""The options of `broker start`; `service` runs the broker by them."""

from __future__ import annotations

from pathlib import Path

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import Choice, flag, option


class StartOptions(Choice):
    """The broker and its settings; None for an option that is not given."""

    config_file: Path | None = option(
        "--config FILE", "Settings: Java properties, or TOML (*.toml)."
    )
    broker_id: int | None = option("--id N", "Number in the cluster. Default: 0.", min=0)
    host: str | None = option("--host HOST", "Address to listen on. Default: 127.0.0.1.")
    port: int | None = option(
        "--port PORT",
        "Port to listen on; 0 picks a free one, -1: only --listen. Default: 9092.",
        min=-1,
        max=65535,
    )
    listen: list[str] | None = option(
        "--listen NAME=tls://HOST:PORT", "Listen there as well; or plain://. Repeatable."
    )
    data_dir: Path | None = option(
        "--data DIR", "Data directory, or several: DIR,DIR.. Default: data."
    )
    no_zookeeper: bool = flag("--no-zookeeper", "Run without ZooKeeper.")
    zookeeper_port: int | None = option(
        "--zookeeper-port PORT",
        "Port of the embedded ZooKeeper; 0 picks a free one. Default: 2181.",
        min=0,
        max=65535,
    )
    metrics_port: shared.MetricsPortOption = None
    metrics_no_partitions: bool = flag(
        "--metrics-no-partitions", "Serve no metrics of single partitions."
    )
    ephemeral: bool = flag(
        "--ephemeral", "A temporary directory, no ZooKeeper, a free port; deleted at the end."
    )


class ProcessOptions(Choice):
    """The process, and how it says that it is ready."""

    check_config: bool = flag("--check-config", "Validate the settings and their files, and end.")
    ready_file: Path | None = option("--ready-file FILE", "Write the READY line there too.")
    ready_fd: int | None = option("--ready-fd N", "And to this open descriptor.", min=0)
    daemon: bool = flag("--daemon", "Go to the background once ready.")
    pid_file: Path | None = option("--pid-file FILE", "Keep the process id there.")
    log_file: Path | None = option("--log-file FILE", "Write the log there, not to stderr.")

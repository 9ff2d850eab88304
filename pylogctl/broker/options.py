"""The options of `broker start`; `service` runs the broker by them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The broker and its settings; None for an option that is not given."""

    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Settings: Java properties, or TOML (*.toml)."
        ),
    ] = None
    broker_id: Annotated[
        int | None,
        typer.Option("--id", metavar="N", min=0, help="Number in the cluster. Default: 0."),
    ] = None
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="HOST", help="Address to listen on. Default: 127.0.0.1."),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="PORT",
            min=0,
            max=65535,
            help="Port to listen on; 0 picks a free one. Default: 9092.",
        ),
    ] = None
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="DIR", help="Data directory, or several: DIR,DIR.. Default: data."
        ),
    ] = None
    no_zookeeper: Annotated[bool, typer.Option("--no-zookeeper", help="Run without ZooKeeper.")] = (
        False
    )
    zookeeper_port: Annotated[
        int | None,
        typer.Option(
            "--zookeeper-port",
            metavar="PORT",
            min=0,
            max=65535,
            help="Port of the embedded ZooKeeper; 0 picks a free one. Default: 2181.",
        ),
    ] = None
    ephemeral: Annotated[
        bool,
        typer.Option(
            "--ephemeral",
            help="A temporary directory, no ZooKeeper, a free port; deleted at the end.",
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """The process, and how it says that it is ready."""

    check_config: Annotated[
        bool, typer.Option("--check-config", help="Validate the settings and end.")
    ] = False
    ready_file: Annotated[
        Path | None,
        typer.Option("--ready-file", metavar="FILE", help="Write the READY line there too."),
    ] = None
    ready_fd: Annotated[
        int | None,
        typer.Option("--ready-fd", metavar="N", min=0, help="And to this open descriptor."),
    ] = None
    daemon: Annotated[bool, typer.Option("--daemon", help="Go to the background once ready.")] = (
        False
    )
    pid_file: Annotated[
        Path | None,
        typer.Option("--pid-file", metavar="FILE", help="Keep the process id there."),
    ] = None
    log_file: Annotated[
        Path | None,
        typer.Option("--log-file", metavar="FILE", help="Write the log there, not to stderr."),
    ] = None

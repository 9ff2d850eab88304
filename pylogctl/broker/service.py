"""Runs a broker for `broker start`: its settings by source, the embedded ZooKeeper, its end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from broker.config import BrokerConfig, load_file
from broker.errors import ConfigError, CoordinationError
from broker.log.data_directory import ZOOKEEPER_NAME
from broker.server.acceptor import AddressInUseError
from broker.server.broker import Broker
from broker.zk.paths import DEFAULT_PORT
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.process import StopRequest, freeze_garbage
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.properties import Layer, given_layers
from pylogctl.cli.render import Column, Document, Kind
from pylogctl.cli.service import ReadyTargets, announce_ready, leave_terminal

EMBEDDED = "embedded"
_POLL_S = 0.1

READY = Document(
    "broker.start/1",
    (
        Column("broker", "id of the broker", Kind.INTEGER),
        Column("host", "address for clients"),
        Column("port", "port listened on", Kind.INTEGER),
        Column("zookeeper", "connect string of ZooKeeper, if any"),
        Column("pid", "process id", Kind.INTEGER),
        Column("data", "data directory"),
    ),
    empty="not started",
)


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The options of `broker start`; None for one that is not given."""

    config_file: Path | None = None
    broker_id: int | None = None
    host: str | None = None
    port: int | None = None
    data_dir: Path | None = None
    no_zookeeper: bool = False
    zookeeper_port: int | None = None
    ephemeral: bool = False


def config_layers(env: Environment, options: StartOptions) -> list[Layer]:
    """Return the layers of settings: file, PYLOGCTL_X, `-X`, options; a later one overrides.

    `zk.connect` is empty for no ZooKeeper, and `embedded` if one is to be started.

    Raises:
        ConfigError: the file is wrong.
        UsageError: options contradict each other.
    """
    zookeeper = _zookeeper_option(env, options)
    file = options.config_file
    return [
        Layer("default", {"zk.connect": EMBEDDED}),
        Layer(str(file), {} if file is None else load_file(file)),
        *given_layers(env),
        Layer("option", _as_properties(options, zookeeper)),
    ]


def broker_config(layers: Sequence[Layer]) -> BrokerConfig:
    """Return the settings of all layers.

    Raises:
        CliError: a property is unknown or malformed.
    """
    try:
        return BrokerConfig.from_properties(*(layer.properties for layer in layers))
    except ConfigError as error:
        raise CliError(
            ExitStatus.CONFIG, str(error), hints=["try: pylogctl broker start -X list"]
        ) from error


def _zookeeper_option(env: Environment, options: StartOptions) -> str | None:
    """Return `zk.connect` by the options: empty for no ZooKeeper, None if they do not set it."""
    given = env.settings.zookeeper
    stands_alone = options.no_zookeeper or options.ephemeral
    brings_one = options.zookeeper_port is not None
    if given is not None and given == env.environ.get("PYLOGCTL_ZOOKEEPER"):
        # The variable is meant for clients: other options override it here.
        given = None if stands_alone or brings_one else given
    if options.no_zookeeper and given is not None:
        raise UsageError("--zookeeper cannot be used with --no-zookeeper")
    if brings_one and given != EMBEDDED and (given is not None or stands_alone):
        raise UsageError("--zookeeper-port is for the embedded ZooKeeper, which is not used here")
    if options.ephemeral and options.data_dir is not None:
        raise UsageError("--data cannot be used with --ephemeral, which makes a directory")
    if given is None and stands_alone:
        return ""
    return EMBEDDED if brings_one else given


def _as_properties(options: StartOptions, zookeeper: str | None) -> dict[str, str]:
    port = 0 if options.ephemeral and options.port is None else options.port
    named = {
        "brokerid": options.broker_id,
        "host": options.host,
        "port": port,
        "log.dir": options.data_dir,
        "zk.connect": zookeeper,
    }
    return {name: str(value) for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class OnReady:
    """Where readiness is announced, and what stops the broker."""

    stop: StopRequest
    targets: ReadyTargets
    background_log: Path | None = None
    is_background: bool = False


def serve(env: Environment, options: StartOptions, config: BrokerConfig, on_ready: OnReady) -> None:
    """Start a broker, announce that it is ready, and stop it on a signal or a shutdown request.

    Raises:
        BrokerError: it cannot be started.
        CliError: its port, or that of ZooKeeper, is in use.
    """
    with ExitStack() as closing:
        if options.ephemeral:
            directory = tempfile.TemporaryDirectory(prefix="pylogctl-")
            config = replace(config, data_dir=Path(closing.enter_context(directory)) / "data")
        if config.zookeeper_connect == EMBEDDED:
            embedded = _embedded_zookeeper(env, config, options.zookeeper_port)
            config = replace(config, zookeeper=closing.enter_context(embedded))
        broker = Broker(config, env.clock)
        try:
            with announced_wait(env, f"the broker to open {config.data_dir} and register"):
                broker.start()
        except AddressInUseError as error:
            raise CliError(ExitStatus.CONFLICT, str(error)) from error
        try:
            freeze_garbage()
            announce_ready(env, READY, _ready_record(broker), on_ready.targets)
            if on_ready.is_background:
                leave_terminal(on_ready.background_log)
            while not on_ready.stop.is_set and not broker.wait_for_shutdown_request(_POLL_S):
                pass
        finally:
            broker.stop()


def _ready_record(broker: Broker) -> Mapping[str, Any]:
    """Return the fields of the READY line."""
    address = broker.address()
    return {
        "broker": address.id,
        "host": address.host,
        "port": address.port,
        "zookeeper": broker.config.zookeeper_connect or None,
        "pid": os.getpid(),
        "data": str(broker.config.data_dir.absolute()),
    }


@contextmanager
def _embedded_zookeeper(
    env: Environment, config: BrokerConfig, wanted_port: int | None
) -> Iterator[str]:
    """Yield the address of the data directory's own ZooKeeper; start it unless it runs already.

    Raises:
        CliError: the port is in use.
        BrokerError: it cannot be started.
    """
    from broker.zk.embedded import EmbeddedZooKeeper

    directory = config.data_dir / ZOOKEEPER_NAME
    running = EmbeddedZooKeeper.running(directory)
    if running is not None:
        yield running
        return
    port = DEFAULT_PORT if wanted_port is None else wanted_port
    server = EmbeddedZooKeeper(directory, port=port, is_kept_up=True)
    try:
        with announced_wait(env, "the embedded ZooKeeper to start"):
            server.start()
    except CoordinationError as error:
        if "port is in use" not in str(error):
            raise
        raise CliError(
            ExitStatus.CONFLICT,
            str(error),
            hints=[
                f"to use what listens there: --zookeeper 127.0.0.1:{port}",
                "--zookeeper-port 0 picks a free port, --no-zookeeper does without",
            ],
        ) from error
    try:
        yield server.connect
    finally:
        server.stop()

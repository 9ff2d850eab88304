"""Runs a broker for `broker start`: its settings by source, the embedded ZooKeeper, its end."""

from __future__ import annotations

import os
import signal
import ssl
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from broker.config import BrokerConfig, load_file
from broker.errors import ConfigError, CoordinationError
from broker.log.data_directory import ZOOKEEPER_NAME
from broker.log.policies import plugged_policies
from broker.metrics_server import served_metrics
from broker.security.client_tls import context_of
from broker.security.tls import load_context
from broker.server.broker import Broker
from broker.zk.paths import DEFAULT_PORT, parse_connect_string
from broker.zk.security import SECRET_NAME, found_security, read_credential, tls_files_of
from pylogctl.broker.document import READY, ReadyRow
from pylogctl.broker.options import ProcessOptions, StartOptions
from pylogctl.cli import service
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.logs import set_up_logging
from pylogctl.cli.process import StopRequest, freeze_garbage, graceful_stop, leave_no_core_file
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.properties import BROKER, Layer, dump_properties, given_layers
from pylogctl.cli.security import zookeeper_properties
from pylogctl.cli.signals import install


def problems_of(config: BrokerConfig) -> Iterator[str]:
    """Yield what is wrong with certificates, keys and credentials, a sentence for each."""
    if any(one.is_tls for one in config.endpoints):
        yield from _problem(lambda: _validate_dates(config))
    if (credential := config.zk_credential_file) is not None:
        yield from _problem(lambda: read_credential(credential))
    yield from _problem(lambda: _check_zookeeper(config))


def _problem(check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except ConfigError as error:
        yield str(error)


def _check_zookeeper(config: BrokerConfig) -> None:
    files = tls_files_of(config)
    if files is not None:
        context_of(files)
        _validate_dates(
            BrokerConfig(ssl_certificate=files.cert, ssl_key=files.key, ssl_ca=files.ca)
        )


def _validate_dates(config: BrokerConfig) -> None:
    if config.ssl_certificate is not None:
        _check_end(config.ssl_certificate, load_context(config).not_after_s)
    if config.ssl_ca is not None:
        authorities = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authorities.load_verify_locations(config.ssl_ca)
        known = authorities.get_ca_certs()
        ends = [ssl.cert_time_to_seconds(str(one["notAfter"])) for one in known]
        if ends:  # one that is valid is enough
            _check_end(config.ssl_ca, max(ends))


def _check_end(path: Path, not_after_s: float) -> None:
    if not_after_s <= time.time():
        end = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(not_after_s))
        raise ConfigError(f"the certificate of {path} expired at {end}")


EMBEDDED = "embedded"
_LOOK_S = 1.0  # for a signal that came just before the wait, or to another thread
_WHAT_TO_INSTALL = "pip install 'pylogctl[spark]' brings what they need"


def run(env: Environment, options: StartOptions, process: ProcessOptions) -> int:
    """Run a broker until a signal or a shutdown request; return the exit status."""
    layers = _config_layers(env, options)
    if options.ephemeral:
        _tell_unused_directories(env, layers)
    config = _broker_config(layers)
    if "dump" in env.settings.properties:
        dump_properties(env, BROKER, layers)
        return 0
    if process.check_config:
        _check_files(env, config)
        return 0
    leave_no_core_file()
    if process.daemon:
        status = service.go_to_background(process.log_file)
        if status is not None:
            return status
    set_up_logging(env, process.log_file, broker=config.broker_id)
    given = {BrokerConfig.name_in_07(name) for layer in layers[1:] for name in layer.properties}
    with service.pid_file(process.pid_file), graceful_stop() as stop:
        _serve(env, options, config, process, stop, given)
    return 0


def _config_layers(env: Environment, options: StartOptions) -> list[Layer]:
    """Return the layers of settings: file, PYLOGCTL_X, `-X`, options; a later one overrides."""
    if options.metrics_no_partitions and options.metrics_port is None:
        raise UsageError("--metrics-no-partitions is for --metrics-port, which is not given")
    zookeeper = _zookeeper_option(env, options)
    file = options.config_file
    return [
        Layer("default", {"zk.connect": EMBEDDED}),
        Layer(str(file), {} if file is None else load_file(file)),
        *given_layers(env, BrokerConfig),
        Layer("option", _as_properties(options, zookeeper) | _zookeeper_files(env, zookeeper)),
    ]


def _tell_unused_directories(env: Environment, layers: Sequence[Layer]) -> None:
    """Refuse directories of `-X` with `--ephemeral`; warn of those of files."""
    for layer in layers:
        for name in layer.properties:
            if BrokerConfig.name_in_07(name) != "log.dir":
                continue
            if layer.origin == "-X":
                raise UsageError(
                    f"-X {name} cannot be used with --ephemeral, which makes a directory"
                )
            env.warn(f"{layer.origin}: {name} is not used, as --ephemeral makes a directory")


def _broker_config(layers: Sequence[Layer]) -> BrokerConfig:
    try:
        return BrokerConfig.from_properties(*(layer.properties for layer in layers))
    except ConfigError as error:
        raise CliError(
            ExitStatus.CONFIG, str(error), "try: pylogctl broker start -X list"
        ) from error


def _check_files(env: Environment, config: BrokerConfig) -> None:
    from broker.security.warnings import warnings_of  # late: for this option only

    for text in warnings_of(config, None):
        env.warn(text)
    problems = list(problems_of(config))
    for text in problems[:-1]:
        env.error(text)
    if problems:
        raise CliError(ExitStatus.CONFIG, problems[-1])
    plugged_policies(config)
    env.note("the configuration is valid")


def _zookeeper_option(env: Environment, options: StartOptions) -> str | None:
    """Return `zk.connect` by the options: empty for no ZooKeeper, None if they do not set it."""
    given = env.settings.zookeeper
    stands_alone = options.no_zookeeper or options.ephemeral
    brings_one = options.zookeeper_port is not None
    is_by_context = env.context is not None and not env.context.is_named
    if is_by_context or given == env.environ.get("PYLOGCTL_ZOOKEEPER"):
        # These are meant for clients: other options override them here.
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
        "listeners": ",".join(options.listen or ()) or None,
        "log.dir": options.data_dir,
        "zk.connect": zookeeper,
    }
    return {name: str(value) for name, value in named.items() if value is not None}


def _zookeeper_files(env: Environment, zookeeper: str | None) -> dict[str, str]:
    """Return the properties of the options for a ZooKeeper that the broker does not bring."""
    is_given = not env.given.isdisjoint(("zk_credential", "zk_tls_config"))
    if zookeeper in ("", EMBEDDED) or (zookeeper is None and not is_given):
        return {}
    return zookeeper_properties(env)


def _serve(
    env: Environment,
    options: StartOptions,
    config: BrokerConfig,
    process: ProcessOptions,
    stop: StopRequest,
    given: Collection[str],  # names of properties that are set
) -> None:
    """Start a broker, announce that it is ready, and stop it on a signal or a shutdown request."""
    with ExitStack() as closing:
        if options.ephemeral:
            directory = tempfile.TemporaryDirectory(prefix="pylogctl-")
            data_dir = Path(closing.enter_context(directory)) / "data"
            config = replace(config, data_dirs=(data_dir,))
        runs_zookeeper = False
        if config.zookeeper_connect == EMBEDDED:
            port = options.zookeeper_port
            is_needed = port is not None or "zk.connect" in given
            embedded = _embedded_zookeeper(env, config, port, is_needed=is_needed)
            address, runs_zookeeper = closing.enter_context(embedded)
            config = _with_embedded(config, address, says_acl="zookeeper.set.acl" in given)
        broker = Broker(
            config, env.clock, runs_zookeeper=runs_zookeeper, on_shutdown_request=stop.wake
        )
        where = ", ".join(map(str, config.data_dirs))
        with announced_wait(env, f"the broker to open {where} and register"):
            broker.start()
        if any(one.is_tls for one in config.endpoints):
            install({signal.SIGHUP: lambda _signum, _frame: broker.reload_certificates()})
        try:
            if options.metrics_port is not None:
                serving = served_metrics(
                    partial(broker.exposition, with_partitions=not options.metrics_no_partitions),
                    options.metrics_port,
                )
                env.note(f"metrics at {closing.enter_context(serving)}")
            freeze_garbage()
            row = _ready_row(broker)
            service.announce_ready(env, READY, row, process.ready_file, process.ready_fd)
            if process.daemon:
                service.leave_terminal(process.log_file)
            while not stop.wait(_LOOK_S):
                pass
        finally:
            service.notify_manager(env, "STOPPING=1")
            broker.stop()
        if broker.failure is not None:
            raise broker.failure


def _ready_row(broker: Broker) -> ReadyRow:
    address = broker.address()
    return ReadyRow(
        address.id,
        address.host,
        broker.port,
        broker.config.zookeeper_connect or None,
        os.getpid(),
        ",".join(str(path.absolute()) for path in broker.config.data_dirs),
    )


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a disk that fails
        return False


def _with_embedded(config: BrokerConfig, address: str, *, says_acl: bool) -> BrokerConfig:
    """Return the settings with the embedded ZooKeeper's address and credential.

    Its nodes are closed to other users of the machine if a command of this one finds the credential
    by itself, unless the settings say what to do.
    """
    if not address:
        return replace(config, zookeeper="")
    file = config.zk_credential_file or _zookeeper_directory(config) / SECRET_NAME
    is_closed = config.zk_set_acl
    if not says_acl and config.zk_credential_file is None:
        is_closed = found_security(parse_connect_string(address).hosts).credential is not None
    return replace(config, zookeeper=address, zk_credential_file=file, zk_set_acl=is_closed)


def _zookeeper_directory(config: BrokerConfig) -> Path:
    candidates = [path / ZOOKEEPER_NAME for path in config.data_dirs]
    return next(filter(_is_directory, candidates), candidates[0])


@contextmanager
def _embedded_zookeeper(
    env: Environment, config: BrokerConfig, wanted_port: int | None, *, is_needed: bool
) -> Iterator[tuple[str, bool]]:
    """Yield the address of the data directory's own ZooKeeper, and whether it was started here.

    The address is empty where none can run on this machine and none `is_needed`: no option asks for
    it, and the data directory never had one.
    """
    from broker.zk.embedded import EmbeddedZooKeeper

    directory = _zookeeper_directory(config)
    running = EmbeddedZooKeeper.running(directory)
    if running is not None:
        yield running, False
        return
    port = DEFAULT_PORT if wanted_port is None else wanted_port
    server = EmbeddedZooKeeper(directory, port=port, is_kept_up=True)
    try:
        with announced_wait(env, "the embedded ZooKeeper to start"):
            server.start()
    except ConfigError as error:
        if is_needed or _is_directory(directory):
            raise
        env.note(
            f"no ZooKeeper, so no groups and no replicas ({_WHAT_TO_INSTALL}); --no-zookeeper "
            "leaves this note out"
        )
        env.trace(1, str(error))
        yield "", False
        return
    except CoordinationError as error:
        if "port is in use" not in str(error):
            raise
        raise CliError(
            ExitStatus.CONFLICT,
            str(error),
            f"to use what listens there: --zookeeper 127.0.0.1:{port}",
            "--zookeeper-port 0 picks a free port, --no-zookeeper does without",
        ) from error
    try:
        yield server.connect, True
    finally:
        server.stop()

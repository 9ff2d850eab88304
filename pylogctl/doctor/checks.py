"""The checks of `pylogctl doctor`; none of them raises."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from broker.errors import BrokerError, ClusterAuthorizationError
from broker.units import format_size
from pylogctl.cli.connections import connector, zookeeper_session
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import CliError
from pylogctl.doctor import security
from pylogctl.doctor.finding import Finding, Verdict
from pylogctl.doctor.security import ClockReading

if TYPE_CHECKING:
    from broker.protocol.compression import Codec
    from broker.protocol.responses import BrokerAddress

_LIBRARIES = ("typer", "rich", "tabulate", "kazoo", "crcmod", "cramjam", "scramp", "google-re2")
_MIN_PYTHON = (3, 11)
_LOW_DISK_BYTES = 1 << 30
_LOW_FILE_LIMIT = 4096
_TIMEOUT_S = 5.0
_ACCESS_HINT = "close nodes with pylogctl zk secure, and look at the rules with pylogctl acl list"
_SAMPLE = b"pylogctl" * 100


def run_checks(env: Environment) -> Iterator[Finding]:
    """Run every check; ZooKeeper and brokers are those of the options."""
    yield check_python(sys.version_info[:2])
    yield _check_libraries()
    yield _check_codecs()
    yield _check_message_codec()
    yield _check_java()
    yield check_spark()
    yield check_contexts(env)
    yield _check_disk(Path.cwd())
    yield check_file_limit(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield from check_cluster(env)


def check_python(version: tuple[int, ...]) -> Finding:
    """Check the interpreter's version."""
    verdict = Verdict.OK if version >= _MIN_PYTHON else Verdict.FAIL
    return Finding(verdict, "python", platform.python_version(), "Python 3.11 or later is needed")


def check_contexts(env: Environment) -> Finding:
    """Check the configuration files, and say which context is current."""
    from pylogctl.cli.context import current_name, read_contexts

    found = read_contexts(env.environ)  # malformed ones ended the command before
    if found.warnings:
        return Finding(Verdict.WARN, "contexts", found.warnings[0], "mend the file")
    names = ", ".join(sorted(found.by_name)) or "none"
    current = current_name(env.environ, found)
    return Finding(Verdict.OK, "contexts", f"{names}; current: {current}" if current else names)


def _check_libraries() -> Finding:
    missing = [name for name in _LIBRARIES if not _is_installed(name)]
    if missing:
        hint = "install them with pip install pylogctl"
        return Finding(Verdict.FAIL, "libraries", f"missing: {', '.join(missing)}", hint)
    return Finding(Verdict.OK, "libraries", ", ".join(_LIBRARIES))


def _is_installed(library: str) -> bool:
    try:
        metadata.version(library)
    except metadata.PackageNotFoundError:
        return False
    return True


def _check_codecs() -> Finding:
    from broker.protocol.compression import Codec, compress, decompress

    def works(codec: Codec) -> bool:
        try:
            return not codec or decompress(codec, compress(codec, _SAMPLE)) == _SAMPLE
        except (BrokerError, ImportError):
            return False

    broken = [codec.name.lower() for codec in Codec if not works(codec)]
    if broken:
        return Finding(Verdict.FAIL, "codecs", f"not working: {', '.join(broken)}")
    return Finding(Verdict.OK, "codecs", ", ".join(codec.name.lower() for codec in Codec))


def _check_message_codec() -> Finding:
    from broker.protocol import codec

    verdict = Verdict.OK if codec.IS_COMPILED else Verdict.WARN
    hint = "unset PYLOGCTL_CODEC, or install where there is a C compiler"
    return Finding(verdict, "message codec", codec.describe(), hint)


def _check_java() -> Finding:  # for the embedded ZooKeeper
    from broker.zk.embedded import find_jars
    from broker.zk.java import find_java

    try:
        java = find_java()
        find_jars()
    except BrokerError as error:
        message, _, hint = str(error).partition("; ")
        return Finding(
            Verdict.WARN, "java", message, hint or "needed for the embedded ZooKeeper only"
        )
    return Finding(Verdict.OK, "java", f"{java.version} at {java.executable} ({java.source})")


def check_spark() -> Finding:
    """Check that pipelines can be run."""
    from broker.spark.runtime.requirements import check_requirements

    try:
        java = check_requirements()
    except BrokerError as error:
        message, _, hint = str(error).partition("; ")
        return Finding(Verdict.WARN, "spark", message, f"needed for `pipeline` only; {hint}")
    pyspark = metadata.version("pyspark")
    return Finding(Verdict.OK, "spark", f"pyspark {pyspark}, java {java.version} ({java.source})")


def _check_disk(directory: Path) -> Finding:
    free = shutil.disk_usage(directory).free
    detail = f"{format_size(free)} free at {directory}"
    if not os.access(directory, os.W_OK):
        return Finding(Verdict.WARN, "disk", f"{directory} is not writable")
    verdict = Verdict.OK if free >= _LOW_DISK_BYTES else Verdict.WARN
    return Finding(verdict, "disk", detail, "a segment alone can take 1 GiB")


def check_file_limit(soft_limit: int) -> Finding:
    """Check the limit of open files and connections, RLIMIT_NOFILE; -1 is none."""
    if soft_limit in (-1, resource.RLIM_INFINITY):
        return Finding(Verdict.OK, "open files", "unlimited")
    verdict = Verdict.OK if soft_limit >= _LOW_FILE_LIMIT else Verdict.WARN
    return Finding(verdict, "open files", str(soft_limit), f"ulimit -n {_LOW_FILE_LIMIT} or more")


def check_cluster(env: Environment) -> Iterator[Finding]:
    """Check the brokers of `--broker`, or else ZooKeeper and the brokers registered there."""
    from broker.admin.brokers import away_error, told_away
    from broker.client.connection import parse_broker_list

    away: dict[int, list[str]] = {}
    if env.settings.brokers:
        try:
            addresses = list(parse_broker_list(",".join(env.settings.brokers)))
        except BrokerError as error:
            yield Finding(Verdict.FAIL, "broker", str(error))
            return
        with suppress(BrokerError):  # those that do not respond are named below
            away = told_away(addresses, connector(env, timeout_s=_TIMEOUT_S))
    else:
        try:
            addresses, away = _registered_brokers(env)
        except BrokerError as error:
            yield Finding(Verdict.FAIL, "registry", str(error), _registry_hint())
            return
        except CliError as error:
            yield Finding(Verdict.FAIL, "registry", str(error), "; ".join(error.hints))
            return
        yield Finding(Verdict.OK, "registry", f"{env.zookeeper}, brokers: {len(addresses)}")
    clocks: list[ClockReading] = []
    for address in addresses:
        yield from _check_broker(env, address, clocks)
    for broker_id, topics in away.items():
        down = away_error(broker_id, topics)
        yield Finding(Verdict.FAIL, "broker", str(down), *down.hints)
    yield from security.check_clocks(clocks)


def _registry_hint() -> str:
    if _check_java().verdict is Verdict.OK:
        return "start one: pylogctl broker start"
    return (
        "none can be started here (java, above); name one that runs with -Z HOST:PORT, or do "
        "without: pylogctl broker start, then -b HOST:PORT"
    )


def _registered_brokers(env: Environment) -> tuple[list[BrokerAddress], dict[int, list[str]]]:
    """Return the live brokers, and the topics of each other one that has logs of some."""
    from broker.admin.brokers import away_brokers, registered_brokers
    from broker.protocol.responses import BrokerAddress

    with zookeeper_session(env) as session:
        live = [BrokerAddress(one.id, one.host, one.port) for one in registered_brokers(session)]
        return live, away_brokers(session)


def _check_broker(
    env: Environment, address: BrokerAddress, clocks: list[ClockReading]
) -> Iterator[Finding]:
    from broker.admin.brokers import request_status
    from broker.admin.cluster import access_problems_of, lost_logs_of
    from broker.protocol.extension_requests import StatusParts

    where = address.text
    asked_ms = env.clock.time_ms()
    connect = connector(env, timeout_s=_TIMEOUT_S)
    _, document, error = request_status(connect, address, StatusParts.SETTINGS)
    answered_ms = env.clock.time_ms()
    if isinstance(error, ClusterAuthorizationError):
        yield Finding(Verdict.OK, "broker", f"{where} answers, but does not show you its status")
    elif error is not None:
        yield Finding(Verdict.FAIL, "broker", str(error))
    elif document is None:
        yield Finding(Verdict.WARN, "broker", f"{where} speaks Kafka 0.7 only",
                       "no acknowledgements; produce polls at its end")  # fmt: skip
    else:
        broker = f"broker {document['broker']}"
        yield Finding(Verdict.OK, "broker", f"{where} answers as {broker}")
        for text in lost_logs_of(document["broker"], document):
            yield Finding(Verdict.FAIL, "lost by disks", text)
        for text in access_problems_of(document):
            yield Finding(Verdict.FAIL, "access", text, _ACCESS_HINT)
        settings = {name: one["value"] for name, one in document["settings"].items()}
        yield security.check_exposure(broker, settings)
        if problem := document["retention_waits"]:
            yield Finding(Verdict.WARN, "retention", f"{broker}: {problem}")
        if (certificate := document.get("certificate")) is not None:
            yield security.check_certificate(broker, certificate, answered_ms)
        yield from security.check_key_files(broker, security.key_files(document, settings))
        its_ms = document["started_ms"] + document["uptime_ms"]
        middle_ms = (asked_ms + answered_ms) / 2
        clocks.append(ClockReading(broker, its_ms - middle_ms, answered_ms - middle_ms))

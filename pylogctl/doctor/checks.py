"""The checks of `pylogctl doctor`; none of them raises.

Files of a broker are checked if they can be seen: it runs on this machine.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from broker.endpoints import PLAIN_LISTENER, is_loopback, parse_endpoints
from broker.errors import BrokerError, ClusterAuthorizationError
from broker.files import is_open_to_others
from broker.protocol.compression import Codec
from broker.protocol.responses import BrokerAddress
from broker.units import format_duration, format_size
from pylogctl.cli.columns import HIDDEN, Document, Fit, Text
from pylogctl.cli.connections import connector, zookeeper_session
from pylogctl.cli.environment import CliError, Environment


class Verdict(StrEnum):
    """FAIL if something required is missing, WARN if something optional is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """The result of a check."""

    status: Annotated[str, "ok, warn or fail", Fit.STATE]
    check: Annotated[str, "subject of the check", Fit.WHOLE]
    detail: Annotated[str, "result in detail", Fit.WRAP]
    hint: Annotated[Text, "how to mend it", Fit.WRAP, HIDDEN] = None


DOCTOR = Document("doctor/1", Finding, empty="no checks")
_ok, _warn, _fail = (partial(Finding, verdict) for verdict in Verdict)
_MAX_CLOCK_ERROR_MS = 1000
_DAY_MS = 86_400_000
_FEW_DAYS = 30
_KEY_SETTINGS = (
    ("ssl.key.location", "ssl.certificate.location"),
    ("zookeeper.ssl.key.location", "zookeeper.ssl.certificate.location"),
    ("zookeeper.credential.file",),
)
"""Files of a broker that have a key of it; the second one if there is no first one."""
CLUSTER_KEY = "cluster.key"


class ClockReading(NamedTuple):
    """How far a broker's clock is ahead of this machine's, and how exactly that is known."""

    broker: str
    ahead_ms: float
    error_ms: float


def check_exposure(broker: str, settings: Mapping[str, str]) -> Finding:
    """Check that a broker whose clients may do everything listens on loopback only."""
    if settings.get("acl.enable") == "true":
        if settings.get("zookeeper.set.acl") != "true":
            return _warn(
                "exposure",
                f"{broker} enforces rules, which whoever reaches ZooKeeper may change",
                "set zookeeper.credential.file and zookeeper.set.acl",
            )
        return _ok("exposure", f"{broker} enforces rules")
    hosts = _hosts(settings)
    if settings.get("authentication.required") == "true":
        optional = settings.get("authentication.optional.listeners", "").split(",")
        hosts = {name: hosts[name] for name in map(str.strip, optional) if name in hosts}
        if not hosts:
            return _ok("exposure", f"{broker} serves those who log in only")
    open_hosts = [host for host in hosts.values() if not is_loopback(host)]
    if not open_hosts:
        return _ok("exposure", f"{broker} serves strangers on loopback only")
    where = ", ".join(one or "all addresses" for one in open_hosts)
    return _warn(
        "exposure",
        f"{broker} listens on {where}, and whoever reaches it may do everything",
        "set acl.enable and super.users, or host=127.0.0.1",
    )


def _hosts(settings: Mapping[str, str]) -> dict[str, str]:
    """Return where each listener is, by its name."""
    found = {PLAIN_LISTENER: settings.get("host", "")} if settings.get("port") != "-1" else {}
    return found | {
        one.listener: one.host for one in parse_endpoints(settings.get("listeners", ""))
    }


def check_certificate(broker: str, certificate: Mapping[str, Any], now_ms: int) -> Finding:
    """Check how long the certificate of a broker's TLS listeners is valid, by its status."""
    left_days = (certificate["not_after_ms"] - now_ms) / _DAY_MS
    path = certificate["path"]
    if left_days <= 0:
        verdict, words = Verdict.FAIL, f"expired {-left_days:.0f} days ago"
    else:
        verdict = Verdict.WARN if left_days < _FEW_DAYS else Verdict.OK
        words = f"is valid for {left_days:.0f} days"
    return Finding(
        verdict,
        "certificate",
        f"{path} of {broker} {words}",
        "replace the file: the broker loads it while it runs",
    )


def check_clocks(readings: Iterable[ClockReading]) -> Iterator[Finding]:
    """Check that the clocks of brokers and of this machine agree."""
    found = list(readings)
    if not found:
        return
    # the time that the response took is the uncertainty
    worst = max(found, key=lambda one: abs(one.ahead_ms) - one.error_ms)
    off_ms = abs(worst.ahead_ms) - worst.error_ms
    if off_ms > _MAX_CLOCK_ERROR_MS:
        way = "ahead of" if worst.ahead_ms > 0 else "behind"
        yield _warn(
            "clocks",
            f"that of {worst.broker} is {format_duration(off_ms / 1000)} {way} this machine's",
            "synchronize them (NTP): certificates, retention and --since go by the clock",
        )
    else:
        yield _ok("clocks", "those of all brokers agree with this machine's")


def check_key_files(broker: str, paths: Iterable[Path]) -> Iterator[Finding]:
    """Check that nobody but their owner can read the files with keys; absent ones are skipped."""
    private = []
    for path in paths:
        try:
            found = path.stat()
        except OSError:  # of another machine, or of another user
            continue
        if is_open_to_others(path, found):
            yield _fail(
                "key file",
                f"{path} of {broker} can be read or changed by others: "
                f"mode {stat.S_IMODE(found.st_mode):04o}",
                f"chmod 600 {path}; if others had access, make a new key",
            )
        else:
            private.append(path.name)
    if private:
        yield _ok("key file", f"{', '.join(private)} of {broker}: for its user")


def key_files(document: Mapping[str, Any], settings: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files with keys that a broker's status names."""
    for names in _KEY_SETTINGS:
        named = next((path for name in names if (path := settings.get(name))), None)
        if named is not None:
            yield Path(named)
    for directory in document.get("directories", []):
        yield Path(directory["path"]) / CLUSTER_KEY


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
        return _warn("contexts", found.warnings[0], "mend the file")
    names = ", ".join(sorted(found.by_name)) or "none"
    current = current_name(env.environ, found)
    return _ok("contexts", f"{names}; current: {current}" if current else names)


def _check_libraries() -> Finding:
    missing = [name for name in _LIBRARIES if not _is_installed(name)]
    if missing:
        hint = "install them with pip install pylogctl"
        return _fail("libraries", f"missing: {', '.join(missing)}", hint)
    return _ok("libraries", ", ".join(_LIBRARIES))


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
        return _fail("codecs", f"not working: {', '.join(broken)}")
    return _ok("codecs", ", ".join(codec.name.lower() for codec in Codec))


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
        return _warn("java", message, hint or "needed for the embedded ZooKeeper only")
    return _ok("java", f"{java.version} at {java.executable} ({java.source})")


def check_spark() -> Finding:
    """Check that pipelines can be run."""
    from broker.spark.runtime.requirements import check_requirements

    try:
        java = check_requirements()
    except BrokerError as error:
        message, _, hint = str(error).partition("; ")
        return _warn("spark", message, f"needed for `pipeline` only; {hint}")
    pyspark = metadata.version("pyspark")
    return _ok("spark", f"pyspark {pyspark}, java {java.version} ({java.source})")


def _check_disk(directory: Path) -> Finding:
    free = shutil.disk_usage(directory).free
    detail = f"{format_size(free)} free at {directory}"
    if not os.access(directory, os.W_OK):
        return _warn("disk", f"{directory} is not writable")
    verdict = Verdict.OK if free >= _LOW_DISK_BYTES else Verdict.WARN
    return Finding(verdict, "disk", detail, "a segment alone can take 1 GiB")


def check_file_limit(soft_limit: int) -> Finding:
    """Check the limit of open files and connections, RLIMIT_NOFILE; -1 is none."""
    if soft_limit in (-1, resource.RLIM_INFINITY):
        return _ok("open files", "unlimited")
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
            yield _fail("broker", str(error))
            return
        with suppress(BrokerError):  # those that do not respond are named below
            away = told_away(addresses, connector(env, timeout_s=_TIMEOUT_S))
    else:
        try:
            addresses, away = _registered_brokers(env)
        except BrokerError as error:
            yield _fail("registry", str(error), _registry_hint())
            return
        except CliError as error:
            yield _fail("registry", str(error), "; ".join(error.hints) or None)
            return
        yield _ok("registry", f"{env.zookeeper}, brokers: {len(addresses)}")
    clocks: list[ClockReading] = []
    for address in addresses:
        yield from _check_broker(env, address, clocks)
    for broker_id, topics in away.items():
        down = away_error(broker_id, topics)
        yield _fail("broker", str(down), *down.hints)
    yield from check_clocks(clocks)


def _registry_hint() -> str:
    if _check_java().status is Verdict.OK:
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
        yield _ok("broker", f"{where} answers, but does not show you its status")
    elif error is not None:
        yield _fail("broker", str(error))
    elif document is None:
        hint = "no acknowledgements; produce polls at its end"
        yield _warn("broker", f"{where} speaks Kafka 0.7 only", hint)
    else:
        broker = f"broker {document['broker']}"
        yield _ok("broker", f"{where} answers as {broker}")
        for text in lost_logs_of(document["broker"], document):
            yield _fail("lost by disks", text)
        for text in access_problems_of(document):
            yield _fail("access", text, _ACCESS_HINT)
        settings = {name: one["value"] for name, one in document["settings"].items()}
        yield check_exposure(broker, settings)
        if problem := document["retention_waits"]:
            yield _warn("retention", f"{broker}: {problem}")
        if (certificate := document.get("certificate")) is not None:
            yield check_certificate(broker, certificate, answered_ms)
        yield from check_key_files(broker, key_files(document, settings))
        its_ms = document["started_ms"] + document["uptime_ms"]
        middle_ms = (asked_ms + answered_ms) / 2
        clocks.append(ClockReading(broker, its_ms - middle_ms, answered_ms - middle_ms))

"""What `pylogctl doctor` checks of a broker's security, by its status.

Files are checked if they can be seen: the broker runs on this machine.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from broker.endpoints import PLAIN_LISTENER, is_loopback, parse_endpoints
from broker.files import is_open_to_others
from broker.units import format_duration
from pylogctl.doctor.finding import Finding, Verdict

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
            return Finding(
                Verdict.WARN,
                "exposure",
                f"{broker} enforces rules, which whoever reaches ZooKeeper may change",
                "set zookeeper.credential.file and zookeeper.set.acl",
            )
        return Finding(Verdict.OK, "exposure", f"{broker} enforces rules")
    hosts = _hosts(settings)
    if settings.get("authentication.required") == "true":
        optional = settings.get("authentication.optional.listeners", "").split(",")
        hosts = {name: hosts[name] for name in map(str.strip, optional) if name in hosts}
        if not hosts:
            return Finding(Verdict.OK, "exposure", f"{broker} serves those who log in only")
    open_hosts = [host for host in hosts.values() if not is_loopback(host)]
    if not open_hosts:
        return Finding(Verdict.OK, "exposure", f"{broker} serves strangers on loopback only")
    where = ", ".join(one or "all addresses" for one in open_hosts)
    return Finding(
        Verdict.WARN,
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
        yield Finding(
            Verdict.WARN,
            "clocks",
            f"that of {worst.broker} is {format_duration(off_ms / 1000)} {way} this machine's",
            "synchronize them (NTP): certificates, retention and --since go by the clock",
        )
    else:
        yield Finding(Verdict.OK, "clocks", "those of all brokers agree with this machine's")


def check_key_files(broker: str, paths: Iterable[Path]) -> Iterator[Finding]:
    """Check that nobody but their owner can read the files with keys; absent ones are skipped."""
    private = []
    for path in paths:
        try:
            found = path.stat()
        except OSError:  # of another machine, or of another user
            continue
        if is_open_to_others(path, found):
            yield Finding(
                Verdict.FAIL,
                "key file",
                f"{path} of {broker} can be read or changed by others: "
                f"mode {stat.S_IMODE(found.st_mode):04o}",
                f"chmod 600 {path}; if others had access, make a new key",
            )
        else:
            private.append(path.name)
    if private:
        yield Finding(Verdict.OK, "key file", f"{', '.join(private)} of {broker}: for its user")


def key_files(document: Mapping[str, Any], settings: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files with keys that a broker's status names."""
    for names in _KEY_SETTINGS:
        named = next((path for name in names if (path := settings.get(name))), None)
        if named is not None:
            yield Path(named)
    for directory in document.get("directories", []):
        yield Path(directory["path"]) / CLUSTER_KEY

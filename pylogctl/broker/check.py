"""The files that settings name, read by `broker start --check-config`."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from broker.config import BrokerConfig
from broker.errors import ConfigError
from broker.security.client_tls import context_of
from broker.security.tls import load_context
from broker.zk.security import read_credential, tls_files_of


def problems_of(config: BrokerConfig) -> Iterator[str]:
    """Yield what is wrong with certificates, keys and credentials, a sentence for each."""
    if any(one.is_tls for one in config.endpoints):
        yield from _problems(lambda: _check_dates(config))
    if (credential := config.zk_credential_file) is not None:
        yield from _problems(lambda: read_credential(credential))
    yield from _problems(lambda: _check_zookeeper(config))


def _problems(check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except ConfigError as error:
        yield str(error)


def _check_zookeeper(config: BrokerConfig) -> None:
    files = tls_files_of(config)
    if files is not None:
        context_of(files)
        _check_dates(BrokerConfig(ssl_certificate=files.cert, ssl_key=files.key, ssl_ca=files.ca))


def _check_dates(config: BrokerConfig) -> None:
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

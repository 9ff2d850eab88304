"""Runs `pylogctl web`: listens, connects to the cluster, and serves until a signal."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable
from pathlib import Path

from broker.api.client import Client, connect
from broker.endpoints import is_loopback
from broker.errors import AddressInUseError
from broker.security.client_security import ClientSecurity
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, cluster_name
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.logs import set_up_logging
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.security import security_of
from pylogctl.cli.service import announce_ready
from pylogctl.web.app import make_app
from pylogctl.web.document import READY, WebReadyRow
from pylogctl.web.options import WebChoice
from pylogctl.web.security import TokenAuthentication
from pylogctl.web.server import serving
from pylogctl.web.site import Site

_TOKEN_VARIABLE = "PYLOGCTL_WEB_TOKEN"
_MIN_TOKEN = 16
_BACKLOG = 128


def run(env: Environment, choice: WebChoice) -> None:
    """Serve until a signal."""
    host, port = _address_of(choice.listen)
    token = None if choice.no_token else _token(env, choice.token_file)
    is_local = is_loopback(host)
    if choice.no_token and choice.token_file is not None:
        raise UsageError("--no-token and --token-file exclude each other")
    if choice.no_token and not is_local:
        raise UsageError(
            f"'{host}' is not of this machine only, so clients have to give a token",
            "without --no-token",
            "--listen 127.0.0.1:8080",
        )
    link_token = None
    if token is None and not choice.no_token:
        token = link_token = secrets.token_urlsafe(32)
    listener = _listen(host, port)
    with listener, _client(env) as client, graceful_stop() as stop:
        set_up_logging(env, None)
        name = f"[{host}]" if ":" in host else host
        port = listener.getsockname()[1]
        site = Site(client, choice.allow_changes, choice.hide_messages)
        hosts = _hosts(name, port, is_local, choice.public_host or ())
        authenticate = None if token is None else TokenAuthentication(token)
        site.sampler.start()
        with serving(make_app(site, hosts, authenticate), listener) as thread:
            url = f"http://{name}:{port}/" + (f"?token={link_token}" if link_token else "")
            if token is not None and link_token is None:
                env.note("the address has no token: browsers ask for it as a password")
            announce_ready(env, READY, WebReadyRow(url, os.getpid(), choice.allow_changes))
            while not stop.wait(0.5):
                if not thread.is_alive():
                    raise CliError(
                        ExitStatus.FAILED, f"the server at {name}:{port} ended by itself"
                    )
        site.sampler.close()
        site.pool.shutdown(wait=False, cancel_futures=True)


def _client(env: Environment) -> Client:
    brokers = list(env.settings.brokers)
    security = security_of(env) or ClientSecurity()
    with announced_wait(env, cluster_name(env)):
        return connect(
            brokers or None,
            zookeeper=None if brokers else env.zookeeper,
            zookeeper_credential=env.settings.zk_credential,
            zookeeper_tls_config=env.settings.zk_tls_config,
            timeout=env.timeout_s(REQUEST_TIMEOUT_S),
            client_id="pylogctl-web",
            tls=security.has_tls,
            tls_ca=security.tls_ca,
            tls_cert=security.tls_cert,
            tls_key=security.tls_key,
            user=security.user or None,
            password=security.password.reveal() or None,
        )


def _address_of(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"not an address: '{listen}'", "valid: 127.0.0.1:8080, localhost:0, [::1]:8080"
        )
    return host, int(port)


def _token(env: Environment, file: Path | None) -> str | None:
    if file is not None:
        token, origin = file.read_text(encoding="utf-8", errors="replace").strip(), str(file)
    elif (given := env.environ.get(_TOKEN_VARIABLE)) is not None:
        token, origin = given.strip(), _TOKEN_VARIABLE
    else:
        return None
    if len(token) < _MIN_TOKEN:
        raise UsageError(f"the token of {origin} has less than {_MIN_TOKEN} characters")
    if not token.isascii():
        raise UsageError(f"the token of {origin} has characters that are not ASCII")
    return token


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise AddressInUseError(
            f"cannot listen on {host}:{port}: {reason}", hints=["port 0 is any free one"]
        ) from error


def _hosts(name: str, port: int, is_local: bool, public: Iterable[str]) -> set[str]:
    names = ("127.0.0.1", "localhost", "[::1]", name) if is_local else (name,)
    hosts = {f"{one}:{port}".lower() for one in names}
    if port == 80:  # which browsers leave out
        hosts |= {one.lower() for one in names}
    return hosts | {one.lower() for one in public}

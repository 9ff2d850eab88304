"""How a command secures its connections to brokers: by its context, `-X` and options."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pylogctl.cli.environment import Context, Environment, SharedOptions, UsageError

if TYPE_CHECKING:
    from broker.security.client_security import ClientSecurity

_FILES = {
    "tls_ca": "ssl.ca.location",
    "tls_cert": "ssl.certificate.location",
    "tls_key": "ssl.key.location",
}
_PREFIXES = ("security.protocol", "ssl.", "sasl.")
_OTHERS_READ = 0o004


def security_of(env: Environment) -> ClientSecurity | None:
    """Return how connections to the brokers of an environment are secured; None if not at all."""
    context, options = security_layers(env)
    given = {
        name: text for name, text in env.settings.properties.items() if name.startswith(_PREFIXES)
    }
    if not context and not given and not options:
        return None
    from broker.security.client_security import ClientSecurity

    return ClientSecurity.from_properties(context, given, options)


def zookeeper_properties(env: Environment) -> dict[str, str]:
    """Return the properties of how to prove oneself to ZooKeeper, and of TLS with it."""
    credential, tls_config = env.settings.zk_credential, env.settings.zk_tls_config
    found = {} if credential is None else {"zookeeper.credential.file": credential}
    if tls_config is None:
        return found
    from broker.zk.security import read_tls_settings  # late: few runs give the file

    return found | read_tls_settings(Path(tls_config).expanduser())


def speaks_tls(env: Environment) -> bool:
    """Return whether connections are encrypted; it reads no password: that may not be there yet."""
    given = env.settings.properties.get("security.protocol", "")
    return _layers(env)[1].get("security.protocol", given).endswith("SSL")


def security_layers(env: Environment) -> tuple[dict[str, str], dict[str, str]]:
    """Return the properties of the context, and those of options, which `-X` stands between."""
    context, options = _layers(env)
    given = env.settings.properties.get("security.protocol", "")
    password = _password_of(env) if "SASL" in options.get("security.protocol", given) else None
    if password is not None:
        options["sasl.password"] = password
    return context, options


def _layers(env: Environment) -> tuple[dict[str, str], dict[str, str]]:
    """Return the same without the password."""
    context = {} if env.context is None else _texts(env.context)
    options = _texts(env.settings)
    name = "security.protocol"
    given = env.settings.properties.get(name, "")
    if name in context or name in options:
        named = [context.get(name, ""), given, options.get(name, "")]
        sasl = "SASL_" if any(one.startswith("SASL_") for one in named) else ""
        is_tls = any(one.endswith("SSL") for one in named)
        options[name] = sasl + ("SSL" if is_tls else "PLAINTEXT")
    return context, options


def _texts(given: Context | SharedOptions) -> dict[str, str]:
    """Return the properties that a context or options set, without the password."""
    texts = {prop: str(path) for key, prop in _FILES.items() if (path := getattr(given, key))}
    protocol = "SSL" if given.tls or texts else "PLAINTEXT"
    if given.user is not None:
        texts["sasl.username"] = given.user
        protocol = f"SASL_{protocol}"
    if protocol != "PLAINTEXT":
        texts["security.protocol"] = protocol
    return texts


def _password_of(env: Environment) -> str | None:
    """Return the password of an option, else of the environment, else of the context's file."""
    settings = env.settings
    if settings.password_fd is not None:
        return password_in_descriptor(settings.password_fd)
    if settings.password_file is not None:
        return password_in_file(Path(settings.password_file))
    if "PYLOGCTL_PASSWORD" in env.environ:
        return env.environ["PYLOGCTL_PASSWORD"]
    if env.context is not None and env.context.password_file is not None:
        return password_in_file(Path(env.context.password_file))
    if "sasl.password" in settings.properties:
        return None
    raise UsageError(
        "the user needs a password",
        "give --password-file FILE, --password-fd N or PYLOGCTL_PASSWORD",
    )


@functools.cache  # a pipe is read once, and each connection asks
def password_in_descriptor(descriptor: int) -> str:
    """Return the first line that can be read from an open descriptor, which is closed."""
    try:
        with os.fdopen(descriptor, encoding="utf-8") as file:
            return file.readline().rstrip("\n")
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise UsageError(f"--password-fd {descriptor}: {reason}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--password-fd {descriptor}: it is no UTF-8 text") from error


def password_in_file(path: Path) -> str:
    """Return the first line of a file, which not all users may be able to read."""
    if path.stat().st_mode & _OTHERS_READ:
        raise UsageError(f"'{path}' is a password that all users can read: chmod 600 {path}")
    try:
        password = path.read_text(encoding="utf-8").partition("\n")[0]
    except UnicodeDecodeError as error:
        raise UsageError(f"'{path}' is no UTF-8 text") from error
    if not password:
        raise UsageError(f"the first line of '{path}' has no password")
    return password

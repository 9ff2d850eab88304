"""Contexts: named clusters in configuration files, one of which is current, and the local broker.

Of the files, the first that has a name counts: `.pylogctl.toml` of the project, which is the
nearest upwards until the root of a working tree; `config.toml` of the user; that of the system.
Which context is current is kept in the state directory, so that no file is rewritten for it. Files
that do not exist cost a look each; the TOML parser is imported only for one that does.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from broker.errors import ArgumentError, did_you_mean
from broker.files import write_atomically
from broker.units import parse_duration_s
from pylogctl.cli import environment
from pylogctl.cli.environment import CliError, Context, Environment, ExitStatus, UsageError

PROJECT_FILE = ".pylogctl.toml"
SYSTEM_FILE = Path("/etc/pylogctl/config.toml")
FILE_KEYS = frozenset(
    ("zk_credential", "zk_tls_config", "tls_ca", "tls_cert", "tls_key", "password_file")
)
SECURITY_KEYS = ("tls", "tls_ca", "tls_cert", "tls_key", "user", "password_file")
_KINDS: dict[str, type] = {
    name: bool if kind is bool else str
    for name, kind in get_type_hints(Context).items()
    if name not in ("name", "file", "is_named")
}
"""The keys of a context in a file; the brokers are a list with commas."""


class Contexts(NamedTuple):
    """The contexts of all files by name, and what is odd in the files."""

    by_name: dict[str, Context]
    default: str | None
    warnings: list[str]

    def find(self, name: str) -> Context:
        """Return a context; NOT_FOUND if no file has it."""
        if (found := self.by_name.get(name)) is None:
            known = ", ".join(sorted(self.by_name)) or "none"
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"context '{name}' not found",
                f"known contexts: {known}",
                "try: pylogctl context add NAME -Z HOST:PORT",
                code="CONTEXT_NOT_FOUND",
            )
        return found


def user_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's file."""
    return environment.xdg_dir(environ, "XDG_CONFIG_HOME", ".config") / "config.toml"


def _state_file(environ: Mapping[str, str]) -> Path:
    return environment.xdg_dir(environ, "XDG_STATE_HOME", ".local/state") / "context"


def config_files(environ: Mapping[str, str]) -> list[Path]:
    """Return the files that exist, the one that counts first."""
    files = [user_file(environ), SYSTEM_FILE]
    for directory in (Path.cwd(), *Path.cwd().parents):
        if (directory / PROJECT_FILE).is_file():
            files.insert(0, directory / PROJECT_FILE)
            break
        if (directory / ".git").exists():
            break
    return [file for file in files if file.is_file()]


def read_contexts(environ: Mapping[str, str]) -> Contexts:
    """Read all files; CONFIG, with file and line, if one is malformed."""
    found = Contexts({}, None, [])
    for file in reversed(config_files(environ)):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CliError(ExitStatus.CONFIG, f"{file}: {error}") from error
        contexts, default, warnings = parse_contexts(file, text)
        found = Contexts(
            found.by_name | contexts, default or found.default, [*found.warnings, *warnings]
        )
    return found


def parse_contexts(file: Path, text: str) -> Contexts:
    """Return the contexts of one file."""
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise _fault(file, int(line[1]) if line else 1, str(error)) from error
    warnings = [
        f"{file}:{_line(text, name)}: unknown key '{name}'{did_you_mean(name, _TOP)}"
        for name in document
        if name not in _TOP
    ]
    default = document.get("default_context")
    if not isinstance(default, str | None):
        raise _fault(file, _line(text, "default_context"), "default_context must be a string")
    contexts = {}
    tables = document.get("contexts", {})
    if not isinstance(tables, dict):
        raise _fault(file, _line(text, "contexts"), "contexts must be tables [contexts.NAME]")
    for name, fields in tables.items():
        if not isinstance(fields, dict):
            raise _fault(file, _line(text, name), f"'{name}' must be a table [contexts.{name}]")
        contexts[name] = _context(file, text, name, fields, warnings)
    return Contexts(contexts, default, warnings)


_TOP = ("schema", "default_context", "contexts")


def _context(
    file: Path, text: str, name: str, fields: Mapping[str, Any], warnings: list[str]
) -> Context:
    def line(key: str) -> int:
        return _line(text, key, below=f"[contexts.{name}]")

    known: dict[str, Any] = {}
    for key, value in fields.items():
        kind = _KINDS.get(key)
        if kind is None:
            warnings.append(
                f"{file}:{line(key)}: unknown key '{key}'{did_you_mean(key, list(_KINDS))}"
            )
        elif not isinstance(value, kind):
            what = "true or false" if kind is bool else "a string"
            raise _fault(file, line(key), f"{key} must be {what}")
        else:
            known[key] = value
    if bool(known.get("zookeeper")) == bool(known.get("brokers")):
        raise _fault(file, line(""), f"context '{name}' needs either zookeeper or brokers")
    if (color := known.get("color")) is not None and color not in environment.COLORS:
        raise _fault(
            file, line("color"), f"color is one of {', '.join(environment.COLORS)}, not '{color}'"
        )
    if (timeout := known.get("timeout")) is not None:
        try:
            parse_duration_s(timeout)
        except ArgumentError as error:
            raise _fault(file, line("timeout"), str(error)) from error
    for key in FILE_KEYS & known.keys():  # those of a context lie beside its file
        known[key] = str(file.parent / Path(known[key]).expanduser())
    brokers = tuple(filter(None, known.pop("brokers", "").split(",")))
    return Context(name, file, brokers=brokers, **known)


def _fault(file: Path, line: int, text: str) -> CliError:
    return CliError(ExitStatus.CONFIG, f"{file}:{line}: {text}", code="CONFIG")


def _line(text: str, key: str, *, below: str = "") -> int:
    """Return the line of a key, the first one behind a table's header; that of the header if none.

    Keys are found as they are written in nearly all files; in others the line may be another.
    """
    lines = text.splitlines()
    start = next((at for at, one in enumerate(lines) if one.strip().startswith(below)), 0)
    for at in range(start, len(lines)):
        if key and re.match(rf"\s*\[?{re.escape(key)}\s*[=\]]", lines[at]):
            return at + 1
    return start + 1


def current_name(environ: Mapping[str, str], contexts: Contexts) -> str | None:
    """Return the name of PYLOGCTL_CONTEXT, of `context use`, or else of a file."""
    return environ.get("PYLOGCTL_CONTEXT") or _chosen_name(environ, contexts)


def _chosen_name(environ: Mapping[str, str], contexts: Contexts) -> str | None:
    return next(iter(_used(environ)), contexts.default)


def _used(environ: Mapping[str, str]) -> list[str]:
    """Return the context used last, and the one before."""
    try:
        return _state_file(environ).read_text(encoding="utf-8").split("\n")[:2]
    except FileNotFoundError:
        return []


def use(environ: Mapping[str, str], contexts: Contexts, name: str) -> Context:
    """Make a context current; `-` stands for the one that was before."""
    used = _used(environ)
    if name == "-":
        if len(used) < 2 or not used[1]:
            raise CliError(ExitStatus.NOT_FOUND, "there is no context that was current before")
        name = used[1]
    found = contexts.find(name)
    before = _chosen_name(environ, contexts) or ""
    file = _state_file(environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    if name != before:
        write_atomically(file, f"{name}\n{before}".encode())
    return found


def in_context(env: Environment, name: str | None, *, takes_brokers: bool) -> Environment:
    """Return the environment of a command in the context of `--context`, or the current one.

    A cluster that options name wins over a context, and one that the environment names over all
    but `--context`.
    """
    settings = env.settings
    by_option = not (
        env.given.isdisjoint(("zookeeper", "brokers"))
        and environment.ADDRESS_PROPERTIES.isdisjoint(settings.properties)
    )
    if "context" in env.given:
        if by_option:
            raise UsageError("--context and an address name two clusters; give one of them")
    elif by_option or settings.zookeeper is not None or settings.brokers:
        return env
    if name is None and not _state_file(env.environ).is_file() and not config_files(env.environ):
        return env
    contexts = read_contexts(env.environ)
    for warning in contexts.warnings:
        env.warn(warning)
    if name is None:
        name = current_name(env.environ, contexts)
    if name is None:
        return env
    context = contexts.find(name)._replace(is_named="context" in env.given)
    _check_use(context, takes_brokers=takes_brokers)
    return env.changed(settings=_filled(settings, context), context=context)


def at_cluster(env: Environment, text: str | None, *, takes_brokers: bool = True) -> Environment:
    """Return the environment of a cluster that `--from` or `--to` names; None is that of `env`."""
    if text is None:
        return env
    brokers = text.removeprefix("brokers=")
    if brokers == text and ":" not in text:
        context = read_contexts(env.environ).find(text)._replace(is_named=True)
        _check_use(context, takes_brokers=takes_brokers)
        return env.changed(settings=_filled(env.settings, context), context=context)
    if brokers == text:
        # a credential is for one cluster: another's ZooKeeper must not learn it
        settings = env.settings._replace(zookeeper=text, zk_credential=None, brokers=())
        if env.context is not None:
            settings = settings._replace(zk_tls_config=None)
    elif takes_brokers:
        addresses = tuple(filter(None, brokers.split(",")))
        settings = env.settings._replace(zookeeper=None, brokers=addresses)
    else:
        raise UsageError(f"'{text}' has brokers only, and this command needs a ZooKeeper")
    return env.changed(settings=settings, context=None)


def _check_use(context: Context, *, takes_brokers: bool) -> None:
    if not (context.zookeeper or takes_brokers):
        raise CliError(
            ExitStatus.CONFIG,
            f"context '{context.name}' has brokers only, and this command needs a ZooKeeper",
            f"it is in {context.file}",
            "-Z HOST:PORT names one for this run",
        )


def _filled(settings: environment.SharedOptions, context: Context) -> environment.SharedOptions:
    timeout_s = settings.timeout_s
    if timeout_s is None and context.timeout is not None:
        timeout_s = parse_duration_s(context.timeout)
    return settings._replace(
        zookeeper=context.zookeeper,
        zk_credential=context.zk_credential,
        zk_tls_config=context.zk_tls_config,
        brokers=context.brokers,
        timeout_s=timeout_s,
    )


def add(environ: Mapping[str, str], name: str, fields: Mapping[str, str | bool]) -> Context:
    """Add a context to the user's file, which is created if it does not exist."""
    _check_name(name)
    file = user_file(environ)
    text = file.read_text(encoding="utf-8") if file.is_file() else "schema = 1\n"
    if name in parse_contexts(file, text).by_name:
        raise CliError(
            ExitStatus.CONFLICT,
            f"context '{name}' exists already in {file}",
            f"try: pylogctl context show {name}, or context remove {name}",
        )
    lines = [f"{key} = {_toml(value)}" for key, value in fields.items()]
    text = "\n".join([text.rstrip("\n"), "", f"[contexts.{name}]", *lines, ""])
    added = parse_contexts(file, text).by_name[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text.encode())
    return added


def remove(environ: Mapping[str, str], context: Context) -> None:
    """Remove a context's tables from its file; if it was current, none is."""
    kept, is_inside = [], False
    for line in context.file.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.lstrip().startswith("["):
            is_inside = bool(re.match(rf"\s*\[contexts\.{context.name}[].]", line))
        if not is_inside:
            kept.append(line)
    text = "".join(kept)
    _rewrite(context, text, done=context.name not in parse_contexts(context.file, text).by_name)
    if _used(environ)[:1] == [context.name]:
        _state_file(environ).unlink()


def rename(environ: Mapping[str, str], context: Context, name: str) -> None:
    """Rename a context in its file; if it is current, or the file's default, it stays so."""
    _check_name(name)
    text = context.file.read_text(encoding="utf-8")
    if name in parse_contexts(context.file, text).by_name:
        raise CliError(ExitStatus.CONFLICT, f"context '{name}' exists already in {context.file}")
    header = rf"(?m)^(\s*\[contexts\.){re.escape(context.name)}(?=[].])"
    text = re.sub(header, rf"\g<1>{name}", text)
    default = rf"""(?m)^(\s*default_context\s*=\s*["']){re.escape(context.name)}(?=["'])"""
    text = re.sub(default, rf"\g<1>{name}", text)
    _rewrite(context, text, done=name in parse_contexts(context.file, text).by_name)
    if context.name in (used := _used(environ)):
        lines = [name if one == context.name else one for one in used]
        write_atomically(_state_file(environ), "\n".join(lines).encode())


def _rewrite(context: Context, text: str, *, done: bool) -> None:
    """Replace the file of a context, unless the change of its table was not `done`."""
    if not done:
        raise CliError(
            ExitStatus.CONFLICT,
            f"{context.file} has no table [contexts.{context.name}] of its own lines; edit it",
        )
    write_atomically(context.file, text.encode())


def _check_name(name: str) -> None:
    if not re.fullmatch("[A-Za-z0-9_-]+", name):
        raise UsageError(f"'{name}' is no name of a context: letters, digits, - and _ only")


def _toml(value: str | bool) -> str:
    return json.dumps(value)  # which is TOML for these


_PROBE_S = 0.3


def with_found_broker(env: Environment) -> Environment:
    """Return the environment with the broker at the default port, if it is all that listens.

    `pylogctl broker start` runs without a ZooKeeper where none can run. A cluster that is named
    stays as it is.
    """
    settings = env.settings
    by_property = not environment.ADDRESS_PROPERTIES.isdisjoint(settings.properties)
    if settings.brokers or settings.zookeeper is not None or by_property:
        return env
    if listens(environment.DEFAULT_ZOOKEEPER) or not listens(environment.DEFAULT_BROKER):
        return env
    return env.changed(settings=settings._replace(brokers=(environment.DEFAULT_BROKER,)))


def listens(address: str) -> bool:
    """Return whether a local address accepts connections."""
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port)), _PROBE_S).close()
    except OSError:
        return False
    return True

"""What completion offers: `pylogctl __complete SHELL WORD...`, the last word being typed.

Bash splits words where COMP_WORDBREAKS says, so that after `bash` come the part of the word that it
replaces, and the line up to the cursor.

Commands and options are those of the command tree. Names in a cluster are looked up there: from a
cache first, for a quarter of a second at most. Nothing fails or is written to standard error: then
there is nothing to offer.
"""

from __future__ import annotations

import os
import shlex
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_args
from urllib.parse import unquote

import typer

from pylogctl.cli.app import Pylogctl, root
from pylogctl.cli.completion import SCRIPTS
from pylogctl.cli.context import Contexts, config_files, current_name, read_contexts
from pylogctl.cli.declarations import choices_of
from pylogctl.cli.environment import DEFAULT_ZOOKEEPER, CliError, xdg_dir
from pylogctl.cli.fields import schemas_of
from pylogctl.cli.help_page import HELP_FLAGS, TOPICS, ArgumentNode, CommandNode, OptionNode
from pylogctl.cli.options import EVERY_GROUP, takes_value
from pylogctl.cli.tree import CONTEXT_SETTINGS, CommandGroup, describe_command

FRESH_S = 30.0
STALE_S = 3600.0
DEADLINE_S = 0.25

_FILES = "@file"
_DIRECTORIES = "@dir"
_CONNECTION = {
    **dict.fromkeys(("-Z", "--zookeeper"), "zookeeper"),
    **dict.fromkeys(("-b", "--broker"), "broker"),
    **dict.fromkeys(("-c", "--context"), "context"),
}
_KIND_OF_METAVAR: dict[str, tuple[str, ...]] = {
    "TOPIC": ("@topic",),
    "AUDIT-TOPIC": ("@topic",),
    "SRC": ("@topic",),
    "DST": ("@topic",),
    "GROUP": ("@group",),
    "G": ("@group",),
    "PATH": ("@zk-path",),
    "SUBJECT": ("@subject",),
    "ID": ("@broker",),
    "ID|HOST:PORT": ("@broker",),
    "CONTEXT": ("@context",),
    "CLUSTER": ("@context",),
    "FILE": (_FILES,),
    "FILE|DIR": (_FILES,),
    "DIR": (_DIRECTORIES,),
    "DUR": ("100ms", "1s", "10s", "1m", "5m", "1h"),
    "SIZE": ("64KiB", "1MiB", "16MiB", "1GiB"),
    "SPEC": ("start", "end", "-10", "@-10m", "@-1h", "@today", "@yesterday"),
}


class Value(NamedTuple):
    """One value to offer."""

    text: str
    description: str = ""


class _Line(NamedTuple):
    """The words of a command line up to the one being typed."""

    command: Any
    ctx: Any
    connection: Mapping[str, str]  # the options that tell of a cluster, with their values
    option: str  # whose value is typed; empty for another word
    current: str


def complete(args: list[str]) -> None:
    """Print what can stand in place of the last word, one a line with its description.

    `args` are the shell and what it tells of the line. The only line `@file` or `@dir` leaves files
    to the shell.
    """
    shell, *words = args or [""]
    if shell not in SCRIPTS:
        return
    try:
        replaced = words[0] if shell == "bash" else words[-1]
        if shell == "bash":
            _, *words, last = shlex.split(f"{words[1]}.")  # a blank at the end begins a word
            words.append(last[:-1])
        before, current = _whole(words)
        line = _read_line(before, current)
        values = list(_offered(line))
    except Exception:  # noqa: BLE001 - whatever it is, there is nothing to offer
        return
    if values[:1] in ([Value(_FILES)], [Value(_DIRECTORIES)]):
        _print(values[0].text)
        return
    done = ""  # of the word, which is not completed
    if line.option == "--columns" and "," in current:
        done = f"{current.rpartition(',')[0]},"
    values = [one._replace(text=done + one.text) for one in values]
    for value in values:
        is_typed = value.text == current and current.endswith(("=", ":"))  # more is to follow
        if value.text.startswith(current) and not is_typed:
            _print(_shown(value, shell, replaced, current))


def _print(line: str) -> None:
    with suppress(OSError):  # nobody reads on
        os.write(1, f"{line}\n".encode("utf-8", "replace"))


def _shown(value: Value, shell: str, replaced: str, current: str) -> str:
    """Return a line for a shell: what it is to put in place of what it replaces."""
    # of --option=value the script for zsh has the value alone replaced
    text = value.text if shell == "zsh" else replaced + value.text[len(current) :]
    return shlex.quote(text) if shell == "bash" else f"{text}\t{value.description}"


def _whole(words: list[str]) -> tuple[list[str], str]:
    """Return the words before the last one, and that: options and values apart."""
    parts: list[str] = []
    for word in words:
        name, sign, value = word.partition("=")
        parts += [name, value] if sign and word.startswith("--") else [word]
    return parts[:-1], parts[-1]


def _read_line(before: list[str], current: str) -> _Line:
    command: Any = root()
    ctx = typer.Context(command, info_name="pylogctl", **CONTEXT_SETTINGS)
    valued = {flag for flag, takes in takes_value().items() if takes}
    connection: dict[str, str] = {}
    option = ""
    for word in before:
        if option:
            if option in _CONNECTION:
                connection[_CONNECTION[option]] = word
            option = ""
        elif word.startswith("-") and len(word) > 1:
            option = word if word in valued else ""
        elif isinstance(command, CommandGroup):
            command = command.get_command(ctx, word)  # None, which has no parameters, ends it
            ctx = typer.Context(command, info_name=word, parent=ctx)
            for param in command.get_params(ctx):
                if param.param_type_name == "option" and not (param.is_flag or param.count):
                    valued.update(param.opts)
    return _Line(command, ctx, connection, option, current)


def _offered(line: _Line) -> Iterator[Value]:
    """Yield what can stand in place of the word being typed."""
    if isinstance(line.command, CommandGroup):
        if line.option:
            yield from _named(line, _values_of_shared(line.option))
        elif line.current.startswith("-"):
            yield from map(Value, (*sorted(HELP_FLAGS, key=len), *takes_value()))
        else:
            for child in line.command.described(line.ctx).children:
                yield Value(child.path[-1], child.summary)
        return
    node = describe_command(line.command, line.ctx)
    if line.option:
        (option,) = (one for one in node.options if line.option in one.flags)
        yield from _named(line, _option_values(node, option))
    elif line.current.startswith("-"):
        for option in node.options:
            description = option.help.partition(". ")[0].rstrip(".")
            yield from (Value(flag, description) for flag in option.flags)
    else:
        yield from _named(line, _positional(node, line))


def _values_of_shared(flag: str) -> tuple[str, ...]:
    """Return the words for a shared option that stands before the command."""
    for one in EVERY_GROUP:
        _, info = get_args(one.annotation)
        if flag in (info.default, *info.param_decls):
            return choices_of([one]).get(one.name) or _KIND_OF_METAVAR.get(info.metavar or "", ())
    return ()


def _positional(node: CommandNode, line: _Line) -> tuple[str, ...]:
    """Return the words to offer for the first argument."""
    if node.path[1:] in {("help",), ("man",)}:
        return (*Pylogctl.entries, *TOPICS)
    if not node.arguments:
        return ()
    return ("broker" in line.connection and _broker_settings(node)) or _values_of(node.arguments[0])


def _broker_settings(node: CommandNode) -> tuple[str, ...]:
    """Return the words for the first argument after `--broker`; empty if it is not of settings."""
    metavar = node.arguments[0].metavar.strip("[].")
    if metavar not in {"NAME", "NAME=VALUE"}:
        return ()
    from broker.config import BrokerConfig

    sign = "=" if "=" in metavar else ""
    found = [one.name for one in BrokerConfig.PROPERTIES if one.field in BrokerConfig.DYNAMIC]
    return tuple(f"{name}{sign}" for name in found)


def _values_of(node: OptionNode | ArgumentNode) -> tuple[str, ...]:
    """Return the words to offer, or one mark `@kind` for files and names in a cluster."""
    metavar = node.metavar.strip("[].")
    if metavar in {"NAME", "NAME=VALUE"}:
        from broker.topic_settings import TOPIC_SETTINGS

        sign = "=" if "=" in metavar else ""
        return tuple(f"{one.property.name}{sign}" for one in TOPIC_SETTINGS)
    return node.choices or _KIND_OF_METAVAR.get(metavar, ())


def _option_values(node: CommandNode, option: OptionNode) -> tuple[str, ...]:
    """Return the words to offer for an option of a command: of its documents, the columns."""
    if option.name not in {"columns", "sort"}:
        return _values_of(option)
    names: dict[str, None] = {}
    for schema in schemas_of(node.name):
        names.update(dict.fromkeys(schema["properties"]["data"]["items"]["properties"]))
    return tuple(names)


def _named(line: _Line, words: tuple[str, ...]) -> list[Value]:
    """Return words as values; a mark `@kind` is looked up in the cluster of the line."""
    if len(words) == 1 and words[0].startswith("@") and words[0] not in (_FILES, _DIRECTORIES):
        return look_up(words[0][1:], line.current, line.connection)
    return [Value(one) for one in words]


def look_up(kind: str, prefix: str, connection: Mapping[str, str]) -> list[Value]:
    """Return the names of a kind in the cluster that the options of a line tell of."""
    if kind == "context":
        found = _contexts()
        return [Value(name) for name in found.by_name] if found else []
    address = _zookeeper_of(connection)
    parent = prefix.rpartition("/")[0] or "/" if kind == "zk-path" else ""
    return _cached(f"{kind} {address} {parent}", lambda: _read_nodes(kind, address, parent))


def _zookeeper_of(connection: Mapping[str, str]) -> str:
    address = connection.get("zookeeper") or os.environ.get("PYLOGCTL_ZOOKEEPER")
    if not address and (contexts := _contexts()) is not None:
        name = connection.get("context") or current_name(os.environ, contexts)
        found = contexts.by_name.get(name or "")
        address = None if found is None else found.zookeeper
    return address or DEFAULT_ZOOKEEPER


def _contexts() -> Contexts | None:
    """Return the contexts of the configuration files; None if there are no files, or bad ones."""
    try:
        return read_contexts(os.environ) if config_files(os.environ) else None
    except CliError:
        return None


def _cached(key: str, read: Callable[[], list[Value]]) -> list[Value]:
    """Return fresh values from the cache, else those of ZooKeeper, else stale ones of the cache."""
    path = cache_file(key)
    try:
        age_s = time.time() - path.stat().st_mtime
    except OSError:
        age_s = STALE_S
    if age_s < FRESH_S:
        return _read_cache(path)
    try:
        values = read()
    except (OSError, ValueError, struct.error):
        if age_s >= STALE_S:
            raise
        return _read_cache(path)
    _write_cache(path, values)
    return values


def cache_file(key: str) -> Path:
    """Return the path of the cached values of a kind, an address and a parent node."""
    name = f"complete-{zlib.crc32(key.encode()):08x}"
    return xdg_dir(os.environ, "XDG_CACHE_HOME", ".cache") / name


def _read_cache(path: Path) -> list[Value]:
    with path.open(encoding="utf-8") as file:
        return [Value(*line.rstrip("\n").split("\t")) for line in file]


def _write_cache(path: Path, values: list[Value]) -> None:
    temporary = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{value.text}\t{value.description}\n" for value in values)
        temporary.write_text(lines, encoding="utf-8")
        temporary.replace(path)


def _read_nodes(kind: str, address: str, parent: str) -> list[Value]:
    from broker.zk.node_reader import NodeReader  # late: not for values from the cache

    with NodeReader(address, deadline_s=DEADLINE_S) as nodes:
        if kind == "topic":
            return [Value(name) for name in nodes.children("/brokers/topics")]
        if kind == "group":
            return [Value(name) for name in nodes.children("/consumers")]
        if kind == "subject":
            return [Value(unquote(name)) for name in nodes.children("/schemas/subjects")]
        if kind == "broker":
            ids = nodes.children("/brokers/ids")
            return [Value(name, nodes.value(f"/brokers/ids/{name}")) for name in ids]
        if kind == "zk-path":
            return [Value(f"{parent.rstrip('/')}/{name}") for name in nodes.children(parent)]
    return []

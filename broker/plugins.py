"""Plug-ins: objects of other packages that a setting names, as `module:name` or by an entry point.

A plug-in is imported when a setting names it, not before. What it raises, and a result of another
type, becomes a `PluginError`, which names the setting and the plug-in.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.errors import ConfigError, PluginError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "pylogctl.plugins"
"""The group of entry points; the name of one is its kind and its own, `partitioner.hash2`."""


class Kind(NamedTuple):
    """What plug-ins of a kind are: a function of these parameters, or a class of such objects.

    `methods`, if there are any, are those of its objects, which are not called then.
    """

    name: str
    parameters: tuple[str, ...]
    returns: type
    result: str
    methods: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """Return what to write, as a hint of errors."""
        if self.methods:
            return f"{self.name} are a class derived from {self.result}"
        return f"{self.name}: a function ({', '.join(self.parameters)}) that returns {self.result}"


_STAGES = ("before_enqueue", "after_enqueue", "after_dequeue", "before_send", "last_batch", "close")
PARTITIONER = Kind("partitioner", ("key", "count"), int, "an index below count")
ENCODER = Kind("encoder", ("message",), bytes, "bytes")
CALLBACKS = Kind("callbacks", (), object, "broker.ProducerCallbacks", _STAGES)
EVENT_HANDLER = Kind("event-handler", ("events",), object, "the events to send")
DECODER = Kind("decoder", ("payload",), object, "text, bytes or a value for JSON")
WRITER = Kind("writer", ("message",), bytes, "bytes")
POLICY = Kind("policy", ("segment",), bool, "whether it may be deleted")
_KINDS = (PARTITIONER, ENCODER, CALLBACKS, EVENT_HANDLER, DECODER, WRITER, POLICY)
KINDS = {one.name: one for one in _KINDS}
# names in a file for 0.7 that mean the default
_DEFAULTS = {
    PARTITIONER: "kafka.producer.DefaultPartitioner",
    ENCODER: "kafka.serializer.DefaultEncoder",
    EVENT_HANDLER: "kafka.producer.async.DefaultEventHandler",
}
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Plugin:
    """A loaded plug-in; `title` is the setting that names it, with its value."""

    kind: Kind
    title: str
    target: Any

    def __call__(self, *args: Any) -> Any:
        """Call it, and return its result; `PluginError` if it fails or returns another type."""
        return self.call(self.target, *args)

    def call(self, function: Any, *args: Any) -> Any:
        """Call a function of it likewise, such as a method of callbacks."""
        try:
            result = function(*args)
        except (Exception, SystemExit) as error:  # it may raise anything
            raise PluginError(f"{self.title} failed: {_cause(error)}") from error
        if not isinstance(result, self.kind.returns):
            raise self.mistake(f"returned {reprlib.repr(result)}")
        return result

    def mistake(self, what: str) -> PluginError:
        """Return the error for a result of another type."""
        return PluginError(f"{self.title} {what}", hints=[self.kind.usage])


class Found(NamedTuple):
    """An entry point of a kind, its own name, and the package and version that has it."""

    kind: Kind
    name: str
    entry: EntryPoint
    package: str


def installed(kind: Kind | None = None) -> Iterator[Found]:
    """Give the entry points of one kind, or of all that are known, by name."""
    from importlib.metadata import entry_points  # late: slow, and few programs need it

    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        prefix, _, name = entry.name.partition(".")
        if prefix in KINDS and name and kind in (None, KINDS[prefix]):
            package = "" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
            yield Found(KINDS[prefix], name, entry, package)


def is_default(kind: Kind, text: str) -> bool:
    """Return whether a setting's value means the default, as some class names of 0.7 do."""
    return text in ("", _DEFAULTS.get(kind))


def load(
    kind: Kind,
    setting: str,
    text: str,
    properties: Mapping[str, str] = _NONE,
    *,
    known: Iterable[str] = (),
) -> Plugin:
    """Return the plug-in that a setting names.

    Args:
        kind: what it must be.
        setting: for errors, such as `partitioner.class` or `--partitioner`.
        text: `module:name`, or the name of an entry point of this kind.
        properties: named arguments of its class.
        known: names that mean no plug-in, for an error about one that is misspelt.

    Raises:
        ConfigError: it cannot be imported, is not of this kind, or its constructor fails.
    """
    title = f"{setting}={text}" if not setting.startswith("-") else f"{setting} {text}"
    module_name, colon, name = text.partition(":")
    if not colon:
        module_name, name = _find_entry(kind, title, text, known)
    found = _import(kind, title, module_name.strip(), name.strip())
    if isinstance(found, type):
        try:
            found = found(**properties)
        except (Exception, SystemExit) as error:  # as above
            raise _error(kind, title, f"its constructor failed: {_cause(error)}") from error
    elif properties:
        raise _error(kind, title, "it takes no properties, as it is no class")
    _validate(kind, title, found)
    return Plugin(kind, title, found)


def problem_of(found: Found) -> str | None:
    """Return why an entry point cannot be used, None if it can; a class is not called."""
    title, (module_name, _, name) = found.entry.name, _parts(found)
    try:
        target = _import(found.kind, title, module_name, name)
        if found.kind.methods or not isinstance(target, type):
            _validate(found.kind, title, target)
    except ConfigError as error:
        return str(error)
    return None


def _parts(found: Found) -> tuple[str, str, str]:
    return found.entry.value.partition("[")[0].partition(":")  # without extras


def _find_entry(kind: Kind, title: str, text: str, known: Iterable[str]) -> tuple[str, str]:
    named = list(installed(kind))
    fitting = [one for one in named if one.name == text]
    if len(fitting) > 1:
        packages = " and ".join(one.package for one in fitting)
        raise _error(kind, title, f"{packages} both have an entry point {kind.name}.{text}")
    if fitting:
        module_name, _, attribute = _parts(fitting[0])
        return module_name, attribute
    near = did_you_mean(text, [*known, *(one.name for one in named)])
    if "." in text:  # a class of Java, or a module's attribute in another notation
        raise _error(
            kind, title, "it looks like a class of Java; one of Python is named module:name"
        )
    raise _error(kind, title, f"no installed package has an entry point {kind.name}.{text}{near}")


def _import(kind: Kind, title: str, module_name: str, name: str) -> Any:
    import importlib  # late: as above

    if not module_name or not name:
        raise _error(kind, title, "it must be module:name")
    try:
        found = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # as above
        hint = "it must be installed in the same Python, or its folder be in PYTHONPATH"
        raise _error(
            kind, title, f"cannot import '{module_name}': {_cause(error)}", hint
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            near = did_you_mean(part, dir(found))
            raise _error(kind, title, f"'{module_name}' has no '{name}'{near}")
        found = getattr(found, part)
    return found


def _validate(kind: Kind, title: str, found: Any) -> None:
    if kind.methods:
        if missing := [one for one in kind.methods if not callable(getattr(found, one, None))]:
            raise _error(kind, title, f"it has no method {missing[0]}")
        return
    if not callable(found):
        raise _error(kind, title, f"it is {type(found).__name__}, which cannot be called")
    import inspect  # late: as above

    try:
        inspect.signature(found).bind(*kind.parameters)
    except TypeError as error:
        raise _error(
            kind, title, f"it does not take ({', '.join(kind.parameters)}): {error}"
        ) from error
    except ValueError:  # some of C have no signature
        return


def _error(kind: Kind, title: str, problem: str, *hints: str) -> ConfigError:
    known = "pylogctl plugins list shows those that are installed"
    return ConfigError(f"{title}: {problem}", hints=[*hints, kind.usage, known])


def _cause(error: BaseException) -> str:
    text = " ".join(str(error).split())  # on one line
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

"""The shared options in effect, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator

from broker.units import format_duration
from pylogctl.cli.environment import DEFAULT_ZOOKEEPER, Environment
from pylogctl.config.document import OptionRow

_VARIABLES = {"brokers": "PYLOGCTL_BROKER"}  # others have the name of their option


def option_rows(env: Environment) -> Iterator[OptionRow]:
    """Yield the options that say which cluster, and how output looks."""
    settings, context = env.settings, env.context
    yield _row(env, "context", None if context is None else context.name, "none is current")
    by_context = {"zookeeper", "brokers"} if context is not None else set[str]()
    if context is not None and context.timeout is not None:
        by_context.add("timeout")
    values = {
        "zookeeper": settings.zookeeper or ("" if settings.brokers else DEFAULT_ZOOKEEPER),
        "brokers": ",".join(settings.brokers),
        "timeout": "" if settings.timeout_s is None else format_duration(settings.timeout_s),
        "output": env.output,
        "color": settings.color,
    }
    for name, value in values.items():
        if name in by_context and context is not None and value and name not in env.given:
            yield OptionRow(name, value, f"context {context.name} ({context.file})")
        else:
            yield _row(env, name, value or None, "default")


def _row(env: Environment, name: str, value: str | None, otherwise: str) -> OptionRow:
    variable = _VARIABLES.get(name, f"PYLOGCTL_{name.upper()}")
    origin = otherwise
    if name in env.given:
        origin = "option"
    elif env.environ.get(variable):
        origin = f"environment ({variable})"
    elif name == "context" and env.context is not None:
        origin = "current: pylogctl context use, or default_context of a file"
    elif name == "brokers" and value:
        origin = "found at the default address"
    return OptionRow(name, value, origin)

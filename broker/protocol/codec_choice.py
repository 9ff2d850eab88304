"""Which twin of the codec runs: the compiled one where it is built, else the plain one."""

from __future__ import annotations

import os

from broker.errors import ConfigError

VARIABLE = "PYLOGCTL_CODEC"
"""The environment variable that forces a twin: `python` or `compiled`."""
_INTERFACE = 2
"""What the compiled twin must say of itself; it may stem from an older build in this folder."""


def _is_compiled() -> bool:
    """Return whether the compiled twin serves.

    Raises:
        ConfigError: the variable asks for a twin that is not there.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "python", "compiled"):
        raise ConfigError(f"{VARIABLE} is {wanted!r}; set it to python or compiled, or unset it")
    if wanted == "python":
        return False
    problem = _problem_of_compiled()
    if problem and wanted:
        raise ConfigError(
            f"{VARIABLE} asks for the compiled codec, but {problem}; "
            "install again where there is a C compiler, or unset the variable"
        )
    return not problem


def _problem_of_compiled() -> str:
    """Return why the compiled twin cannot serve, nothing if it can."""
    try:
        from broker.protocol import _codec
    except (ImportError, AttributeError) as error:  # the latter: it misses one of our types
        return f"it is not built ({error})"
    if _codec.INTERFACE != _INTERFACE:
        return "it was built from sources of another version"
    return ""


IS_COMPILED = _is_compiled()

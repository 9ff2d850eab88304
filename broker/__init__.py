"""A commit-log broker that keeps Kafka 0.7's promises, and the clients to use it.

The public names are those that the stub `__init__.pyi` imports. Each is imported when it is first
used, so that a program that only produces does not wait for the modules of the server.
"""

from __future__ import annotations

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(_public_names())
    if name.startswith("__") or name not in (modules := _public_names()):
        raise AttributeError(f"module 'broker' has no attribute '{name}'")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(modules[name]), name)
    return value


def _public_names() -> dict[str, str]:
    """Return the module of each public name, read from the stub (a resource, also in a zip)."""
    import ast
    import pkgutil

    stub = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
    return {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

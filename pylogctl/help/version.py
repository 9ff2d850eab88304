"""`pylogctl version`: program, interpreter, libraries, wire format and codec."""

from __future__ import annotations

import platform

from pylogctl import __version__
from pylogctl.cli.context import Environment
from pylogctl.cli.options import OUTPUT, accepts
from pylogctl.cli.render import Column, Document, render
from pylogctl.cli.tree import Command, new_app

LIBRARIES = ("typer", "rich", "tabulate", "kazoo", "crcmod", "cramjam")
WIRE_FORMAT = "Kafka 0.7 (message magic 0 and 1) with extension requests"

VERSIONS = Document(
    "version/1",
    (
        Column("component", "part of the program"),
        Column("version", "its version, missing if it is not installed"),
    ),
    empty="no versions",
)

app = new_app()


@app.command("version", cls=Command)
@accepts(*OUTPUT, examples=("pylogctl version", "pylogctl --version --output json"))
def version(env: Environment) -> None:
    """Show versions of program and libraries."""
    from importlib import metadata

    from broker.protocol import codec

    rows: list[dict[str, object]] = [
        {"component": "pylogctl", "version": __version__},
        {"component": "python", "version": platform.python_version()},
        {"component": "wire-format", "version": WIRE_FORMAT},
        {"component": "codec", "version": codec.describe()},
    ]
    for library in LIBRARIES:
        try:
            rows.append({"component": library, "version": metadata.version(library)})
        except metadata.PackageNotFoundError:
            rows.append({"component": library, "version": None})
    render(env, VERSIONS, rows)

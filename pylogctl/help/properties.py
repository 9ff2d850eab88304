"""What `pylogctl -X list` and `-X dump` stand for without a command; hidden from help."""

from __future__ import annotations

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.options import OUTPUT, PROPERTIES, accepts
from pylogctl.cli.tree import Command, new_app

app = new_app()


@app.command("properties", cls=Command)
@accepts(*OUTPUT, *PROPERTIES, examples=("pylogctl -X list",))
def properties(env: Environment) -> None:
    """Show the properties that -X takes."""
    raise UsageError("-X sets a property of a command, and no command was given",
                     hints=["try: pylogctl -X list"])  # fmt: skip

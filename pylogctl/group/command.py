"""`pylogctl group`: look at, move and repair consumer groups.

Puts the commands together. Those that look stand in `group_reads`, those that carry offsets from
place to place in `group_exchange`, the others in `group_changes`.
"""

from __future__ import annotations

from pylogctl.cli.tree import Command, new_app
from pylogctl.group import change_commands, exchange_commands, read_commands

app = new_app("Look at, move and repair consumer groups.")

app.command("list", cls=Command)(read_commands.list_groups)
app.command("describe", cls=Command)(read_commands.describe)
app.command("lag", cls=Command)(read_commands.lag)
app.command("members", cls=Command)(read_commands.members)
app.command("verify", cls=Command)(read_commands.verify)
app.command("watch", cls=Command)(read_commands.watch)
app.command("reset", cls=Command)(change_commands.reset)
app.command("export", cls=Command)(exchange_commands.export)
app.command("import", cls=Command)(exchange_commands.import_offsets)
app.command("clone", cls=Command)(exchange_commands.clone)
app.command("delete", cls=Command)(change_commands.delete)
app.command("rebalance", cls=Command)(change_commands.rebalance)

"""`pylogctl group`: look at, move and repair consumer groups.

Puts the commands together. Those that look stand in `group_reads`, those that carry offsets from
place to place in `group_exchange`, the others in `group_changes`.
"""

from __future__ import annotations

from pylogctl.commands import group_changes, group_exchange, group_reads
from pylogctl.tree import Command, new_app

app = new_app("Look at, move and repair consumer groups.")

app.command("list", cls=Command)(group_reads.list_groups)
app.command("describe", cls=Command)(group_reads.describe)
app.command("lag", cls=Command)(group_reads.lag)
app.command("members", cls=Command)(group_reads.members)
app.command("verify", cls=Command)(group_reads.verify)
app.command("watch", cls=Command)(group_reads.watch)
app.command("reset", cls=Command)(group_changes.reset)
app.command("export", cls=Command)(group_exchange.export)
app.command("import", cls=Command)(group_exchange.import_offsets)
app.command("clone", cls=Command)(group_exchange.clone)
app.command("delete", cls=Command)(group_changes.delete)
app.command("rebalance", cls=Command)(group_changes.rebalance)

"""`pylogctl pipeline`: jobs on topics that run on Spark.

Puts the commands together; each stands in a module of its own.
"""

from __future__ import annotations

from pylogctl.cli.tree import Command, new_app
from pylogctl.pipeline import audit, join, load, sql, verify, window

app = new_app("Load, query, compare and verify topics on Spark.")

app.command("load", cls=Command)(load.load)
app.command("sql", cls=Command)(sql.sql)
app.command("window", cls=Command)(window.window)
app.command("join", cls=Command)(join.join)
app.command("audit", cls=Command)(audit.audit)
app.command("verify", cls=Command)(verify.verify)

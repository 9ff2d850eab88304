"""`pylogctl pipeline`: jobs on topics that run on Spark.

Puts the commands together; each stands in a module of its own.
"""

from __future__ import annotations

from pylogctl.commands import (
    pipeline_audit,
    pipeline_join,
    pipeline_load,
    pipeline_sql,
    pipeline_verify,
    pipeline_window,
)
from pylogctl.tree import Command, new_app

app = new_app("Load, query, compare and verify topics on Spark.")

app.command("load", cls=Command)(pipeline_load.load)
app.command("sql", cls=Command)(pipeline_sql.sql)
app.command("window", cls=Command)(pipeline_window.window)
app.command("join", cls=Command)(pipeline_join.join)
app.command("audit", cls=Command)(pipeline_audit.audit)
app.command("verify", cls=Command)(pipeline_verify.verify)

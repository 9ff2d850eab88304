"""Options of the commands that compare counts with those of an audit topic."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.options import argument, option

AuditTopicArgument = Annotated[str, argument("AUDIT-TOPIC", "Topic that counts are published to.")]
ReferenceOption = Annotated[
    str, option("--reference TIER", "Selection", "Tier whose counts are expected.")
]
GraceOption = Annotated[
    str, option("--grace DUR", "Limits", "How long after its end a window may still be reported.")
]
FailAboveOption = Annotated[
    int | None,
    option(
        "--fail-above N", "Limits", "Status 12 if counts differ by more messages than this.", min=0
    ),
]
EqualToo = Annotated[bool, option("--all", "Output", "Show windows whose counts agree, too.")]

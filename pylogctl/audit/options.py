"""Options of the commands that compare counts with those of an audit topic."""

from __future__ import annotations

from typing import Annotated

import typer

AuditTopicArgument = Annotated[
    str, typer.Argument(metavar="AUDIT-TOPIC", help="Topic that counts are published to.")
]
ReferenceOption = Annotated[
    str,
    typer.Option(
        "--reference",
        metavar="TIER",
        help="Tier whose counts are expected.",
        rich_help_panel="Selection",
    ),
]
GraceOption = Annotated[
    str,
    typer.Option(
        "--grace",
        metavar="DUR",
        help="How long after its end a window may still be reported.",
        rich_help_panel="Limits",
    ),
]
FailAboveOption = Annotated[
    int | None,
    typer.Option(
        "--fail-above",
        metavar="N",
        min=0,
        help="Status 12 if counts differ by more messages than this.",
        rich_help_panel="Limits",
    ),
]
EqualToo = Annotated[
    bool,
    typer.Option("--all", help="Show windows whose counts agree, too.", rich_help_panel="Output"),
]

"""The options of `produce --audit`: where counts are published, and in which windows."""

from __future__ import annotations

from dataclasses import dataclass

from pylogctl.cli.options import OptionGroup, shared_option


@dataclass(frozen=True, slots=True)
class AuditChoice:
    """What the options say; None for what is not given."""

    audit: str | None = None
    audit_window: str | None = None
    time_field: str | None = None


NO_AUDIT = AuditChoice()
AUDIT = OptionGroup(
    (
        shared_option(
            "audit",
            str | None,
            None,
            "--audit",
            metavar="TOPIC",
            panel="Output",
            help="Publish to TOPIC how many messages were confirmed in each time window; "
            "pylogctl audit compares.",
        ),
        shared_option(
            "audit_window",
            str | None,
            None,
            "--audit-window",
            metavar="DUR",
            panel="Output",
            help="Length of a window of --audit, at least 1s. Default: 10m.",
        ),
        shared_option(
            "time_field",
            str | None,
            None,
            "--time-field",
            metavar="PATH",
            panel="Output",
            help="With --audit: field of JSON messages that has their time, such as .meta.ts. "
            "Default: the time they are confirmed.",
        ),
    ),
    AuditChoice,
)

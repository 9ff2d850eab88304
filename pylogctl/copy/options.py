"""The options of `pylogctl copy`."""

from __future__ import annotations

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import Choice, selection


class CopyChoice(Choice):
    """Which messages to copy, where to, and how."""

    offset: list[str] | None = shared.offset_option(
        "What to copy, START or START:END; see pylogctl help offsets. Default: start:end."
    )
    max_messages: shared.MaxMessagesOption = None
    keep_partition: bool = selection.flag(
        "--keep-partition",
        "To partitions of the same name (broker-partition), or not at all. Default: to those in "
        "the same place.",
    )
    rate: shared.RateOption = None
    verify: shared.VerifyOption = False
    on_corrupt: shared.OnCorruptOption = "stop"
    strict_offset: shared.StrictOffsetOption = False
    schemas: shared.SchemasOption = False
    allow_missing: shared.AllowMissingOption = False

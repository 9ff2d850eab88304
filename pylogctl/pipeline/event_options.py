"""The options of pipeline commands that say where in a payload the key and the time are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylogctl.cli.options import OptionGroup, shared_option

if TYPE_CHECKING:
    from broker.spark.extraction import EventFields


@dataclass(frozen=True, slots=True)
class EventChoice:
    """What the options say; None for what is not given."""

    key_field: str | None = None
    time_field: str | None = None
    pattern: str | None = None
    time_format: str = "auto"
    time_zone: str = "UTC"
    year: int | None = None

    def fields(self) -> EventFields:
        """Return what the job is to take out of payloads.

        Raises:
            QueryError: the format or the zone of times is not known.
        """
        from broker.spark.extraction import EventFields
        from broker.spark.time_formats import parse_time_format

        form = parse_time_format(self.time_format, self.time_zone)
        return EventFields(self.key_field, self.time_field, self.pattern, form, self.year)


NO_EVENTS = EventChoice()
EVENTS = OptionGroup(
    (
        shared_option(
            "key_field",
            str | None,
            None,
            "--key-field",
            metavar="PATH",
            panel="Events",
            help="Field of JSON messages that has the key, such as .user.id.",
        ),
        shared_option(
            "time_field",
            str | None,
            None,
            "--time-field",
            metavar="PATH",
            panel="Events",
            help="Field of JSON messages that has their time, such as .meta.ts.",
        ),
        shared_option(
            "pattern",
            str | None,
            None,
            "--pattern",
            metavar="RE",
            panel="Events",
            help="Instead of fields: a regular expression with groups named key and time.",
        ),
        shared_option(
            "time_format",
            str,
            "auto",
            "--time-format",
            metavar="FORMAT",
            panel="Events",
            help="How times are written, such as '%d/%b/%Y:%H:%M:%S %z'. Auto: "
            "ISO 8601, or seconds or milliseconds since 1970.",
        ),
        shared_option(
            "time_zone",
            str,
            "UTC",
            "--time-zone",
            metavar="ZONE",
            panel="Events",
            help="Zone of times that name none, such as Europe/Paris.",
        ),
        shared_option(
            "year",
            int | None,
            None,
            "--year",
            metavar="YEAR",
            panel="Events",
            help="Year of times that name none. Default: the present one.",
        ),
    ),
    EventChoice,
)

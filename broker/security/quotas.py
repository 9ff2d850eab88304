"""What a principal may use of a broker, as set in the node of a user or the broker's properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.properties import INT32_MAX, INT64_MAX, Property, PropertyKind, parse_property

NO_LIMIT = 0


class Quotas(NamedTuple):
    """What one principal may use of one broker; `NO_LIMIT` for all it wants, None if not set."""

    producer_byte_rate: int | None = None  # received a second
    consumer_byte_rate: int | None = None  # sent a second
    request_percentage: int | None = None  # of one thread's time
    connections: int | None = None  # at a time

    def or_else(self, other: Quotas) -> Quotas:
        """Return these quotas, and those of `other` where one is not set."""
        return Quotas(
            *(theirs if mine is None else mine for mine, theirs in zip(self, other, strict=True))
        )


QUOTA_PROPERTIES = {
    name: Property(name, name, PropertyKind.INTEGER, meaning, 0, maximum=maximum)
    for name, maximum, meaning in (
        ("producer_byte_rate", INT64_MAX, "bytes a second that each broker receives of the user"),
        ("consumer_byte_rate", INT64_MAX, "bytes a second that each broker sends to the user"),
        (
            "request_percentage",
            INT32_MAX,
            "percent of one thread's time that each broker works for the user",
        ),
        ("connections", INT32_MAX, "connections that the user may have to each broker"),
    )
}
"""By their names in `/config/users/NAME`, which are those of the fields of `Quotas`.

`connections` is ours, the others are Kafka's.
"""


def quota_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the quotas among the settings of a user, which have its passwords' keys as well."""
    return {name: text for name, text in texts.items() if name in QUOTA_PROPERTIES}


def parse_quotas(texts: Mapping[str, str]) -> Quotas:
    """Return the quotas among the settings of a user; `ConfigError` for an invalid one."""
    numbers = {}
    for name, text in quota_texts(texts).items():
        # Kafka writes percentages, and with some tools rates, as floating point numbers
        number = parse_property(QUOTA_PROPERTIES[name], text.removesuffix(".0"))
        assert isinstance(number, int)
        numbers[name] = number
    return Quotas(**numbers)

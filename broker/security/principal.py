"""Who sends requests on a connection."""

from __future__ import annotations

from typing import NamedTuple

USER = "User"
BROKER = "Broker"


class Principal(NamedTuple):
    """An identity: `User:alice`, or `Broker:1` for a broker of this cluster."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""The identity of a client that has proved none, as Kafka names it."""


def broker_principal(broker_id: int) -> Principal:
    """Return the identity of a broker of this cluster."""
    return Principal(BROKER, str(broker_id))

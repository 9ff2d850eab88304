"""The calls of a client on consumer groups and their offsets."""

from __future__ import annotations

from broker.api.access import Access


class GroupCalls(Access):
    """The calls of a client on consumer groups and their offsets."""

"""What a run of `pylogctl consume` does with messages, and when it ends.

A value only: who works by it is `pylogctl.consuming`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylogctl.corruption import OnCorrupt
from pylogctl.filters import Filter
from pylogctl.message_format import Render

if TYPE_CHECKING:
    from broker.protocol.payload_filter import PayloadFilter
    from pylogctl.executing import Executor


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write and when to end.

    Args:
        render: a message's bytes, whatever follows it included.
        delimiter: if messages are nothing but payload and this, it allows the short way.
        filters: a message must pass all.
        max_messages: how many to write, None for all.
        on_corrupt: what to do about a corrupt message.
        unbuffered: flush after each message.
        final_delimiter: whether the last message is followed by what separates the others.
        strict_framing: a payload that holds the delimiter is an error.
        idle_timeout_s: end when nothing comes for so long.
        timeout_s: end after so long.
        group: the consumer group's name, for formats that show it; empty for none.
        executor: gets each message instead of standard output.
        payload_filter: which messages brokers leave out; `filters` leave them out as well.
    """

    render: Render
    delimiter: bytes | None
    filters: Sequence[Filter] = ()
    max_messages: int | None = None
    on_corrupt: OnCorrupt = OnCorrupt.STOP
    unbuffered: bool = False
    final_delimiter: bool = True
    strict_framing: bool = False
    idle_timeout_s: float | None = None
    timeout_s: float | None = None
    group: str = ""
    executor: Executor | None = None
    payload_filter: PayloadFilter | None = None

    @property
    def is_plain(self) -> bool:
        """Say whether stretches may become text without a look at each message."""
        looks_at_each = self.filters or self.unbuffered or self.executor is not None
        return self.delimiter is not None and not looks_at_each

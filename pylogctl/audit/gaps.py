"""Finds numbers that lack, or come again, in messages with envelopes: `pylogctl audit gaps`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from broker.client.selection import find_partitions
from broker.protocol.envelope import open_envelope
from broker.units import count_text
from pylogctl.audit.run import stored_messages
from pylogctl.cli.columns import Count, Document, Fit, Integer, Rank, Row, Text
from pylogctl.cli.connections import open_side
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.offsets import make_span, resolve_ranges, total_bytes
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render


class GapRow(Row):
    """The messages of one producer in a topic, by the sequences of their envelopes."""

    topic: Annotated[Text, "the topic"]
    host: Annotated[Text, "machine of the producer"]
    producer: Annotated[Text, "its number, another one after each restart", Fit.WHOLE]
    messages: Annotated[Integer, "messages found, repeated ones too", Rank(2)]
    first: Annotated[Integer, "lowest sequence found", Rank(2)]
    last: Annotated[Integer, "highest sequence found", Rank(2)]
    missing: Annotated[Count, "sequences between these that no message has"]
    repeated: Annotated[Count, "messages whose sequence another one has"]
    gap: Annotated[Text, "the first sequences missing, such as 17..19"]


GAPS = Document("audit.gaps/1", GapRow, empty="")


@dataclass(slots=True)
class Sequences:
    """The sequences of one producer that were found, as ranges: they may come in any order."""

    repeat_count: int = 0
    _starts: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)  # exclusive

    def add(self, number: int) -> None:
        """Note a sequence; a repeat is counted."""
        starts, ends = self._starts, self._ends
        place = bisect_right(starts, number)
        if place and number < ends[place - 1]:
            self.repeat_count += 1
            return
        follows = place > 0 and ends[place - 1] == number
        precedes = place < len(starts) and starts[place] == number + 1
        if follows and precedes:
            ends[place - 1] = ends.pop(place)
            del starts[place]
        elif follows:
            ends[place - 1] += 1
        elif precedes:
            starts[place] = number
        else:
            starts.insert(place, number)
            ends.insert(place, number + 1)

    def row(self, topic: str, host: str, producer: int) -> GapRow:
        """Return what was found."""
        starts, ends = self._starts, self._ends
        first, last = starts[0], ends[-1] - 1
        count = sum(ends) - sum(starts)
        gap = "" if len(starts) == 1 else _range_text(ends[0], starts[1] - 1)
        return GapRow(
            *(topic, host, f"{producer:08x}", count + self.repeat_count, first, last),
            *(last + 1 - first - count, self.repeat_count, gap),
        )


def _range_text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


def find_gaps(
    env: Environment,
    topics: Sequence[str],
    offset: Sequence[str],
    *,
    fail_above: int | None,
    shows_all: bool,
) -> None:
    """Read topics, and render the producers whose messages lack or repeat sequences."""
    span = make_span(env, offset, from_beginning=False, exit_at_end=True)
    found: dict[tuple[str, str, int], Sequences] = {}
    plain_count = 0
    with open_side(env) as side:
        ranges = resolve_ranges(env, side, find_partitions(side.cluster, topics), span)
        with progress(env, "read", total_bytes(ranges)) as meter:
            for partition, _, stored in stored_messages(side, ranges, meter.advance):
                envelope, _ = open_envelope(stored)
                if envelope is None:
                    plain_count += 1
                    continue
                source = partition.topic, envelope.host, envelope.producer
                found.setdefault(source, Sequences()).add(envelope.sequence)
    if plain_count and not found:
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"none of {count_text(plain_count)} has an envelope",
            "produce --envelope, or the topic's setting envelope=true, gives them one",
            code="NO_ENVELOPE",
        )
    rows = [found[source].row(*source) for source in sorted(found)]
    render(env, GAPS, [one for one in rows if shows_all or one.missing or one.repeated])
    missing, repeated = sum(one.missing for one in rows), sum(one.repeated for one in rows)
    text = f"{count_text(missing)} missing, {repeated} repeated"
    plain = f"; {count_text(plain_count)} without an envelope" if plain_count else ""
    env.note(f"{len(rows)} producer{'s' * (len(rows) != 1)} compared: {text}{plain}")
    if fail_above is not None and missing + repeated > fail_above:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"{text}; the limit is {fail_above}",
            details={"missing": missing, "repeated": repeated, "limit": fail_above},
        )

"""Filtering here what a broker cannot filter: the same pieces come out as from one that can."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from broker.client.pieces import MessageStream, Piece
from broker.errors import NO_ERROR
from broker.protocol.primitives import Buffer
from broker.protocol.responses import Run
from broker.protocol.selecting import select
from broker.topic import TopicPartition

_NO_LIMIT = 1 << 62


class LocalFilter:
    """Takes the pieces of partitions as they come, and gives what is wanted of them.

    Keeps the partial message at the end of a piece until the next one completes it.

    Args:
        is_wanted: says so of a payload, by a true value.
    """

    def __init__(self, is_wanted: Callable[[Buffer], object]) -> None:
        self._is_wanted = is_wanted
        self._streams: dict[TopicPartition, MessageStream] = {}

    def forget(self, partition: TopicPartition) -> None:
        """Drop what is left of a partition: its next piece is no continuation."""
        self._streams.pop(partition, None)

    def apply(self, piece: Piece) -> Iterator[Piece]:
        """Give the wanted pieces that a piece completes, and skips for what is in between.

        Args:
            piece: with all messages; it follows the one before it of its partition.
        """
        stream = self._streams.setdefault(piece.partition, MessageStream(piece.offset))
        base = stream.offset
        if piece.error != NO_ERROR or not len(piece.data):
            yield piece._replace(offset=base, next_offset=base)
            return
        view = stream.add(piece.data, piece.high_watermark)
        found = select(view, self._is_wanted, _NO_LIMIT)
        runs = [Run(base + start, view[start:end]) for start, end in found.spans]
        end = found.end
        if stream.is_cut_for_good(end):
            # a message that goes on behind all there is: no filter knows more of it
            runs.append(Run(base + end, view[end:]))
            end = len(view)
        yield from piece._replace(offset=base).filtered(runs, base + end)
        stream.take(end)

"""Which batches of a log of Kafka are of aborted transactions, by its `.txnindex` files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from broker.log.side_files import ABORTED_SUFFIX, AbortedTransaction, read_aborted
from broker.protocol.codec import RecordBatch


def aborted_beside(segments: Iterable[Path]) -> Iterator[AbortedTransaction]:
    """Yield the aborted transactions that are listed beside segments of a log.

    A segment's own list has those that end in it; those of its records may end in a later one.
    """
    for directory in dict.fromkeys(one.parent for one in segments):
        for path in sorted(directory.glob(f"*{ABORTED_SUFFIX}")):
            with suppress(FileNotFoundError):
                yield from read_aborted(path)


class AbortedTransactions:
    """The aborted transactions of a log."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._spans: dict[int, list[tuple[int, int]]] = {}  # by producer
        for one in transactions:
            span = one.first_offset, one.last_offset
            self._spans.setdefault(one.producer_id, []).append(span)
        for spans in self._spans.values():
            spans.sort()

    def __contains__(self, batch: RecordBatch) -> bool:
        """Return whether a batch belongs to one, as records or as its end."""
        spans = self._spans.get(batch.producer_id) if batch.is_transactional else None
        if not spans:
            return False
        at = bisect_right(spans, batch.base_offset, key=lambda span: span[0]) - 1
        return at >= 0 and batch.base_offset <= spans[at][1]

"""One partition while this process owns it: how far it is read, finished and committed.

Three threads meet here, each with fields of its own: the fetcher reads ahead, the application
finishes messages, and whoever commits looks at what is finished.
"""

from __future__ import annotations

from broker.consumer.chunk import MessageStream
from broker.consumer.offset_store import Position
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition


class OwnedPartition:
    """A partition from the time it is claimed until it is released, never used again after that.

    Attributes:
        fetch_offset: where the fetcher goes on; None until it has found out where to start.
        seek_offset: where the application wants it to go on instead, else None.
        finished: the offset after the last message the application has finished; -1 at first.
        committed: what the store is known to have.
        is_released: nothing of it may be handed out any more.
        current_messages: the decoded ones that are being handed out; a release empties the list.
        next_inner: the index, in its compressed set, of the next one of them; 0 outside of sets.
        is_blocked: it stands at a message that cannot be read, or an offset that is not there.

    Args:
        partition: which one.
        thread_id: the consumer thread that owns it in the registry.
        stored: the position in the store, None if it has none.
        finished_here: how far this process came when it owned the partition before.
    """

    __slots__ = (
        "_inner",
        "_skip",
        "arrived",
        "committed",
        "current_messages",
        "fetch_offset",
        "finished",
        "is_blocked",
        "is_released",
        "next_inner",
        "partition",
        "seek_offset",
        "thread_id",
    )

    def __init__(
        self,
        partition: TopicPartition,
        thread_id: str,
        stored: Position | None,
        finished_here: Position | None = None,
    ) -> None:
        self.partition = partition
        self.thread_id = thread_id
        self.committed = stored
        self.finished = -1 if stored is None else stored.offset
        self.fetch_offset = None if stored is None else stored.offset
        self.seek_offset: int | None = None
        self.is_released = False
        self.is_blocked = False
        self.arrived = MessageStream(self.finished)
        self.current_messages: list[tuple[int, int, bytes]] = []
        self._skip = stored or Position(-1)
        if finished_here and finished_here.offset == self._skip.offset:
            self._skip = max(self._skip, finished_here)
        self._inner = self._skip
        self.next_inner = 0

    @property
    def position(self) -> Position | None:
        """Return what may be committed, None while there is nothing."""
        finished, inner = self.finished, self._inner
        if finished == inner.offset >= 0:
            return inner
        return None if self.committed is None and finished < 0 else Position(finished)

    def add(self, offset: int, data: Buffer, high_watermark: int = -1) -> memoryview | None:
        """Put bytes behind those that arrived before, and return all that are not taken.

        Args:
            offset: of the first byte; None is returned for bytes that are no continuation, which
                were on their way when the application went elsewhere.
            data: what came.
            high_watermark: as the broker told it with them, -1 if it did not.
        """
        rest = self.arrived.add(b"")
        if offset != self.arrived.offset + len(rest):
            return None
        return self.arrived.add(data, high_watermark)

    def skip_to(self, offset: int, next_offset: int) -> bool:
        """Go on behind messages that a filter has left out.

        Args:
            offset: where they start.
            next_offset: where the next one is that was not left out, or may be.

        Returns:
            False if this is no continuation of what arrived before.

        Raises:
            InvalidMessageError: what arrived before ends inside a message.
        """
        if offset != self.arrived.offset + len(self.arrived.add(b"")):
            return False
        self.arrived.skip_to(next_offset)
        return True

    def restart_at(self, offset: int) -> None:
        """Go on at an offset with nothing in between: everything before it counts as finished."""
        self.arrived = MessageStream(offset)
        self.finished = offset
        self._skip = self._inner = Position(offset)
        self.is_blocked = False

    def drop_finished(self, messages: list[tuple[int, int, bytes]]) -> None:
        """Take those messages off the front that were finished before this partition was claimed.

        They are the first ones of a compressed set, which can only be fetched as a whole.
        """
        start, count = self._skip
        self.next_inner = 0
        if count and messages:
            if messages[0][0] == start:
                del messages[:count]
                self.next_inner = count
            self._skip = Position(-1)

    def finish_inner(self, position: Position) -> None:
        """Note that a message inside a compressed set is finished, which is not the last of it."""
        self._inner = position
        self.finished = position.offset

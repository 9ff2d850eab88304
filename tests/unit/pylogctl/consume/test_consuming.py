from __future__ import annotations

import io
from collections.abc import Iterator
from typing import cast

from broker.consumer.chunk import Chunk
from broker.consumer.partition_reader import PartitionReader
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.topic import MessagePosition, TopicPartition
from pylogctl.cli.environment import Environment, ExitStatus, Streams
from pylogctl.cli.process import StopRequest
from pylogctl.consume.exec import Executor
from pylogctl.consume.output import Consumption
from pylogctl.consume.plan import ConsumePlan
from pylogctl.format.envelope import MessageFacts

PARTITION = TopicPartition("t", 0, 0)


class RevokedPartition(PartitionReader):
    """A partition that is revoked after so many finished entries."""

    def __init__(self, data: bytes, revoked_after: int) -> None:
        super().__init__(PARTITION, MessagePosition(0))
        self.add(Chunk(PARTITION, 0, data))
        self.finished: list[int] = []
        self._revoked_after = revoked_after

    def finish(self, next_offset: int) -> bool:
        if len(self.finished) >= self._revoked_after:
            return False
        self.finished.append(next_offset)
        return len(self.finished) < self._revoked_after


class FakeSource:
    """Gives one partition, once."""

    partition_count = 1
    left_bytes = None

    def __init__(self, reader: PartitionReader) -> None:
        self._reader = reader

    def polls(self) -> Iterator[list[PartitionReader]]:
        yield [self._reader]

    def next_good_message(self, partition: TopicPartition, offset: int) -> int | None:
        return None

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Nothing to do."""


class FakeExecutor:
    """Notes the payloads it gets."""

    remark = ""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def take(self, message: MessageFacts) -> bool:
        self.payloads.append(message.payload)
        return True

    def work(self) -> None:
        """Nothing to do."""


def test_run_when_the_partition_goes_to_another_member_leaves_the_rest_to_it() -> None:
    executor = FakeExecutor()
    reader = RevokedPartition(build_set([b"1", b"2", b"3", b"4"], Codec.NONE), revoked_after=2)
    env = Environment(Streams(None, io.BytesIO(), io.StringIO()), {})
    plan = ConsumePlan(render=lambda _: b"", delimiter=b"\n", executor=cast(Executor, executor))

    status = Consumption(env, plan, StopRequest()).run(FakeSource(reader))

    assert status is ExitStatus.OK
    assert executor.payloads == [b"1", b"2"]
    assert (reader.finished, reader.offset) == ([11, 22], 22)

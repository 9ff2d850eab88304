from __future__ import annotations

import io
from collections.abc import Iterator

from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.topic import TopicPartition
from pylogctl.cli.context import Environment, Streams
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.offset_resolution import MessagePosition
from pylogctl.cli.process import StopRequest
from pylogctl.consume.output import Consumption
from pylogctl.consume.plan import Plan
from pylogctl.consume.reading import Stretch
from pylogctl.format.envelope import MessageFacts


class FakePlace:
    """Where the stretch of a `FakeSource` is from."""

    partition = TopicPartition("t", 0, 0)
    end: MessagePosition | None = None
    offset = 0

    def take(self, valid_bytes: int) -> None:
        self.offset += valid_bytes

    def is_cut_for_good(self) -> bool:
        return False


class FakeSource:
    """Gives one stretch, of a partition that is lost after so many messages."""

    partition_count = 1

    def __init__(self, data: bytes, lost_after: int) -> None:
        self.place = FakePlace()
        self.finished: list[int] = []
        self._data = data
        self._lost_after = lost_after

    def polls(self) -> Iterator[list[Stretch]]:
        yield [Stretch(self.place, 0, memoryview(self._data), 0)]

    def settle(self) -> None:
        """Nothing to do."""

    def finish(self, next_offset: int) -> bool:
        self.finished.append(next_offset)
        return len(self.finished) < self._lost_after

    def find_behind(self, partition: TopicPartition, offset: int) -> int | None:
        return None

    def skip_to(self, partition: TopicPartition, offset: int) -> None:
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
    source = FakeSource(build_set([b"1", b"2", b"3", b"4"], Codec.NONE), lost_after=2)
    env = Environment(Streams(None, io.BytesIO(), io.StringIO()), {})
    plan = Plan(render=lambda _: b"", delimiter=b"\n", executor=executor)

    status = Consumption(env, plan, StopRequest()).run(source)

    assert status is ExitStatus.OK
    assert executor.payloads == [b"1", b"2"]
    assert (source.finished, source.place.offset) == ([11, 22], 22)

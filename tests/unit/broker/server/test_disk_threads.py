"""What waits for a disk, and what waits for that."""

from __future__ import annotations

from threading import Event

from broker.server.cluster.replica_fetcher import BACKGROUND_COUNT, DiskThreads


def test_run_when_calls_in_the_background_wait_for_a_disk_then_does_not_wait_for_them() -> None:
    disks, responds = DiskThreads(), Event()
    waited: list[bool] = []
    try:
        for _ in range(3 * BACKGROUND_COUNT):
            disks.start(lambda: waited.append(responds.wait(10)))
        assert disks.run(str, [1, 2]) == ["1", "2"]
        assert not waited
    finally:
        responds.set()
        disks.stop()
    assert waited == [True] * 3 * BACKGROUND_COUNT

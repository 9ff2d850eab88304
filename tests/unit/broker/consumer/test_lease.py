from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import cast

from broker.consumer.membership import Lease, LeaseKeeper, Membership
from broker.errors import RegistryUnreachableError
from tests.support.waiting import wait_until


def make_keeper(lease: Lease, answers: list[bool | Exception], lost: list[bool]) -> LeaseKeeper:
    """Make a keeper that gets these answers, the last one for ever."""

    def check() -> bool:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    session = SimpleNamespace(session_timeout_s=0.04)
    member = SimpleNamespace(session=session, is_registered=check)
    return LeaseKeeper(lease, cast(Membership, member), lambda: lost.append(True))


def stop(keeper: LeaseKeeper) -> None:
    keeper.stop()
    keeper.join()


def test_lease_when_its_time_is_over_then_is_not_valid() -> None:
    lease = Lease()
    lease.renew(time.monotonic() + 100)
    assert lease.is_valid

    lease.renew(time.monotonic() - 0.001)

    assert not lease.is_valid


def test_lease_when_renewed_then_those_that_wait_go_on() -> None:
    lease = Lease()
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(lease.wait(60)))
    waiter.start()

    lease.renew(time.monotonic() + 100)
    waiter.join()

    assert answers == [True]


def test_lease_when_nothing_happens_then_the_wait_times_out() -> None:
    assert not Lease().wait(0.01)


def test_keeper_when_the_node_stands_then_the_lease_goes_on() -> None:
    lease = Lease()
    keeper = make_keeper(lease, [True], [])
    keeper.start()

    wait_until(lambda: lease.until_s > 0, "the first renewal")
    first_s = lease.until_s
    wait_until(lambda: lease.until_s > first_s, "another renewal")

    stop(keeper)


def test_keeper_when_the_node_is_gone_then_the_lease_ends_and_it_tells() -> None:
    lease, lost = Lease(), list[bool]()
    lease.renew(time.monotonic() + 1000)
    keeper = make_keeper(lease, [False], lost)
    keeper.start()

    wait_until(lambda: lost, "the notice")

    assert not lease.is_valid
    stop(keeper)


def test_keeper_when_the_registry_is_away_then_tries_on() -> None:
    lease = Lease()
    keeper = make_keeper(lease, [RegistryUnreachableError("away"), True], [])
    keeper.start()

    wait_until(lambda: lease.until_s > 0, "a renewal after the failure")

    stop(keeper)

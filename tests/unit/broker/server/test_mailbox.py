from __future__ import annotations

import selectors
import threading
from collections.abc import Iterator

import pytest

from broker.server.network.mailbox import Mailbox


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    made = Mailbox()
    yield made
    made.close()


@pytest.fixture
def selector(mailbox: Mailbox) -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as made:
        made.register(mailbox, selectors.EVENT_READ)
        yield made


def test_mailbox_when_calls_are_posted_then_runs_them_in_order_once(
    mailbox: Mailbox, selector: selectors.BaseSelector
) -> None:
    assert not selector.select(0)
    calls: list[int] = []
    for number in range(3):
        mailbox.post(lambda number=number: calls.append(number))  # type: ignore[misc]  # mypy: lambda default
    assert selector.select(0)
    mailbox.take_wake_up()
    assert not selector.select(0)
    mailbox.run()
    mailbox.run()
    assert calls == [0, 1, 2]


def test_mailbox_when_a_call_posts_another_then_runs_both(mailbox: Mailbox) -> None:
    calls: list[int] = []

    def first() -> None:
        calls.append(1)
        mailbox.post(lambda: calls.append(2))

    mailbox.post(first)
    mailbox.run()
    assert calls == [1, 2]


def test_mailbox_when_threads_post_at_any_moment_then_no_call_waits_for_the_next(
    mailbox: Mailbox, selector: selectors.BaseSelector
) -> None:
    each = 2000
    counted: list[None] = []

    def post() -> None:
        for _ in range(each):
            mailbox.post(lambda: counted.append(None))

    threads = [threading.Thread(target=post) for _ in range(3)]
    for one in threads:
        one.start()
    while len(counted) < each * len(threads):
        assert selector.select(60), "a call was posted and did not wake"
        mailbox.take_wake_up()
        mailbox.run()
    for one in threads:
        one.join()


def test_mailbox_when_closed_then_a_wake_up_has_no_effect(mailbox: Mailbox) -> None:
    mailbox.close()
    mailbox.post(lambda: None)

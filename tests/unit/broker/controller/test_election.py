from __future__ import annotations

import pytest

from broker.controller.election import (
    Election,
    elect_offline,
    elect_preferred,
    elect_reassigned,
)


@pytest.mark.parametrize(
    ("isr", "eligible", "elected"),
    [
        ((2, 1, 0), {0, 1, 2}, Election(0, (0, 1, 2))),  # the order of replicas decides
        ((2, 1), {0, 1, 2}, Election(1, (1, 2))),
        ((0, 1, 2), {1, 2}, Election(1, (1, 2))),  # members that are down leave
        ((0,), {1, 2}, None),
    ],
)
def test_offline_when_a_member_is_live_then_first_in_replica_order_leads(
    isr: tuple[int, ...], eligible: set[int], elected: Election | None
) -> None:
    assert elect_offline((0, 1, 2), isr, eligible, is_unclean=False) == elected


def test_offline_when_unclean_is_allowed_then_first_live_replica_leads_alone() -> None:
    elected = elect_offline((0, 1, 2), (0,), {1, 2}, is_unclean=True)

    assert elected == Election(1, (1,), is_unclean=True)


def test_offline_when_unclean_is_allowed_and_member_lives_then_is_clean() -> None:
    assert elect_offline((0, 1), (1,), {0, 1}, is_unclean=True) == Election(1, (1,))


def test_offline_when_no_replica_is_live_then_nobody_leads() -> None:
    assert elect_offline((0, 1), (0,), {2}, is_unclean=True) is None


@pytest.mark.parametrize(("isr", "eligible"), [((1, 2), {0, 1}), ((0, 1), {1, 2})])
def test_preferred_when_out_of_sync_or_dead_then_is_refused(
    isr: tuple[int, ...], eligible: set[int]
) -> None:
    assert elect_preferred((0, 1, 2), isr, eligible) is None


def test_preferred_when_live_and_in_sync_then_leads_and_members_stay() -> None:
    assert elect_preferred((0, 1, 2), (1, 0), {0, 1}) == Election(0, (1, 0))


def test_reassigned_when_first_new_replica_is_not_in_sync_then_next_leads() -> None:
    assert elect_reassigned((3, 4), (0, 4), {0, 3, 4}) == Election(4, (0, 4))

"""What principals may use, with a clock that only moves when told to."""

from __future__ import annotations

import pytest

from broker.errors import ConfigError
from broker.security.principal import Principal, broker_principal
from broker.security.quotas import Quotas, parse_quotas
from broker.server.network.principal_quotas import MAX_THROTTLE_S, PrincipalQuotas, PrincipalUse
from tests.doubles import FakeClock

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
KILOBYTE_A_SECOND = Quotas(producer_byte_rate=1000)


def new_quotas(default: Quotas = KILOBYTE_A_SECOND, **users: Quotas) -> PrincipalQuotas:
    quotas = PrincipalQuotas(FakeClock())
    quotas.set(default, {name.replace("default", "<default>"): one for name, one in users.items()})
    return quotas


def throttle_s(quotas: PrincipalQuotas, who: Principal = ALICE, **use: float) -> float:
    """Charge a use at 1000 s, and return for how long it is throttled."""
    charged = PrincipalUse(0, 0, 0)._replace(**use)
    return max(0.0, quotas.charge(who, charged) - 1000.0)


@pytest.mark.parametrize(
    ("quotas", "used"),
    [
        (Quotas(producer_byte_rate=1000), {"received_bytes": 3000}),
        (Quotas(consumer_byte_rate=1000), {"sent_bytes": 3000}),
        (Quotas(request_percentage=50), {"worked_s": 1.5}),
        (Quotas(request_percentage=50, consumer_byte_rate=1000), {"worked_s": 1.5}),
    ],
)
def test_charge_when_three_seconds_worth_are_used_at_once_then_throttled_for_two(
    quotas: Quotas, used: dict[str, float]
) -> None:
    assert throttle_s(new_quotas(quotas), ALICE, **used) == pytest.approx(2)


def test_charge_when_within_the_rate_then_never_throttled() -> None:
    clock = FakeClock()
    quotas = PrincipalQuotas(clock)
    quotas.set(KILOBYTE_A_SECOND, {})
    for _ in range(100):
        clock.advance(0.5)
        assert quotas.charge(ALICE, PrincipalUse(500, 1 << 30, 10)) <= clock.monotonic_s()


def test_charge_when_far_beyond_the_rate_then_throttled_below_the_timeout_of_clients() -> None:
    quotas = new_quotas()
    assert throttle_s(quotas, received_bytes=10**9) == MAX_THROTTLE_S < 30
    assert throttle_s(quotas, received_bytes=10**9) == MAX_THROTTLE_S


def test_charge_when_another_principal_used_too_much_then_not_throttled() -> None:
    quotas = new_quotas()
    assert throttle_s(quotas, ALICE, received_bytes=5000)
    assert not throttle_s(quotas, BOB, received_bytes=500)


def test_charge_when_a_broker_copies_then_never_throttled() -> None:
    assert not throttle_s(new_quotas(), broker_principal(1), received_bytes=10**9)


def test_quotas_when_set_at_several_levels_then_the_most_specific_one_wins() -> None:
    assert not throttle_s(new_quotas(alice=Quotas(producer_byte_rate=0)), received_bytes=10**6), (
        "0 lifts the default"
    )
    assert throttle_s(
        new_quotas(alice=Quotas(consumer_byte_rate=7)), received_bytes=3000
    ) == pytest.approx(2), "what is not set stays the default's"
    quotas = new_quotas(default=KILOBYTE_A_SECOND, alice=Quotas(producer_byte_rate=2000))
    assert throttle_s(quotas, received_bytes=4000) == pytest.approx(1)


def test_quotas_when_the_default_user_has_one_then_it_replaces_the_brokers_own() -> None:
    quotas = PrincipalQuotas(FakeClock())
    quotas.set(KILOBYTE_A_SECOND, {"<default>": Quotas(producer_byte_rate=500)})
    assert throttle_s(quotas, received_bytes=1000) == pytest.approx(1)


def test_throttled_when_two_are_then_the_longest_is_first_with_its_quota() -> None:
    quotas = new_quotas(bob=Quotas(consumer_byte_rate=1000))
    throttle_s(quotas, ALICE, received_bytes=2000)
    throttle_s(quotas, BOB, sent_bytes=9000)
    assert [(one.principal, one.kind) for one in quotas.throttled()] == [
        ("User:bob", "consumer_byte_rate"),
        ("User:alice", "producer_byte_rate"),
    ]


def test_quotas_when_none_is_set_then_nothing_is_measured() -> None:
    assert not new_quotas(Quotas()).is_limiting
    assert not new_quotas(Quotas(0, 0, 0)).is_limiting
    assert new_quotas().is_limiting


def test_parse_quotas_when_the_node_has_keys_of_passwords_then_takes_the_quotas_only() -> None:
    texts = {"SCRAM-SHA-256": "salt=...", "producer_byte_rate": "1024.0"}
    assert parse_quotas(texts) == Quotas(producer_byte_rate=1024)


def test_parse_quotas_when_a_text_is_no_number_then_named() -> None:
    with pytest.raises(ConfigError, match="consumer_byte_rate is 'many'"):
        parse_quotas({"consumer_byte_rate": "many"})

"""Rules: decided as a slow model of Kafka's authorizer decides them, and read from texts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ConfigError, CoordinationError
from broker.security.principal import ANONYMOUS, Principal, broker_principal
from broker.security.rules import (
    CLUSTER,
    Operation,
    Resource,
    ResourceType,
    Rule,
    RuleSet,
    StoredRules,
    host_of,
    parse_pattern,
    parse_principal,
    parse_super_users,
)
from tests.support.work import calls_of

ALICE, BOB, ALL_USERS = (Principal("User", name) for name in ("alice", "bob", "*"))
HOST = "10.0.0.1"
NAMES = st.sampled_from(["o", "or", "orders", "orders2", "*", "x"])
TYPES = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
RULES = st.builds(
    Rule,
    st.sampled_from([ALICE, BOB, ALL_USERS]),
    st.sampled_from(Operation),
    st.builds(Resource, TYPES, NAMES),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["*", HOST, "10.0.0.2"]),
)
QUESTIONS = st.tuples(
    st.sampled_from([ALICE, BOB, ANONYMOUS]),
    st.sampled_from([HOST, "10.0.0.2"]),
    st.sampled_from([one for one in Operation if one is not Operation.ALL]),
    st.builds(Resource, TYPES, st.sampled_from(["o", "orders", "orders2", "y"])),
)


def topic(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)


def model(
    rules: list[Rule], principal: Principal, host: str, operation: Operation, resource: Resource
) -> bool:
    """Decide as Kafka's documentation says it, rule by rule."""
    matching = [
        rule
        for rule in rules
        if rule.principal in (principal, ALL_USERS)
        and rule.host in (host, "*")
        and rule.resource.type == resource.type
        and (
            resource.name.startswith(rule.resource.name)
            if rule.is_prefix
            else rule.resource.name in (resource.name, "*")
        )
    ]
    if any(
        not rule.is_allowed and rule.operation in (operation, Operation.ALL) for rule in matching
    ):
        return False
    enough = {operation, Operation.ALL}
    if operation is Operation.DESCRIBE:
        enough |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    return any(rule.is_allowed and rule.operation in enough for rule in matching)


@given(st.lists(RULES, max_size=12), st.lists(QUESTIONS, min_size=1, max_size=8), st.randoms())
def test_allows_any_rules_in_any_order_as_the_model(
    rules: list[Rule],
    questions: list[tuple[Principal, str, Operation, Resource]],
    order: random.Random,
) -> None:
    found = RuleSet(rules)
    order.shuffle(rules)
    shuffled = RuleSet(rules)
    for question in questions:
        expected = model(rules, *question)
        assert found.allows(*question) == expected
        assert found.allows(*question) == expected  # remembered
        assert shuffled.explain(*question).is_allowed == expected


@given(st.lists(RULES, max_size=12), QUESTIONS)
def test_explain_a_decision_names_the_rule_that_made_it(
    rules: list[Rule], question: tuple[Principal, str, Operation, Resource]
) -> None:
    decision = RuleSet(rules).explain(*question)
    if decision.rule is None:
        assert not decision.is_allowed
    else:
        assert decision.rule.is_allowed == decision.is_allowed
        assert decision.is_allowed <= all(rule.is_allowed for rule in decision.lost)


def test_allows_deny_among_allows_wins_in_all_orders() -> None:
    rules = [
        Rule(ALICE, Operation.ALL, topic("orders")),
        Rule(ALICE, Operation.READ, topic("*")),
        Rule(ALL_USERS, Operation.READ, topic("ord"), is_prefix=True, is_allowed=False),
    ]
    for ordered in itertools.permutations(rules):
        found = RuleSet(ordered)
        assert not found.allows(ALICE, HOST, Operation.READ, topic("orders"))
        assert found.allows(ALICE, HOST, Operation.WRITE, topic("orders"))
        assert found.allows(ALICE, HOST, Operation.DESCRIBE, topic("orders"))


def test_allows_super_user_and_broker_need_no_rule_and_obey_none() -> None:
    deny = Rule(ALL_USERS, Operation.ALL, topic("*"), is_allowed=False)
    found = RuleSet([deny], [BOB])
    assert found.allows(BOB, HOST, Operation.WRITE, topic("orders"))
    assert found.allows(broker_principal(1), HOST, Operation.ALTER, CLUSTER)
    assert not found.allows(ALICE, HOST, Operation.WRITE, topic("orders"))


def test_allows_seven_thousand_rules_memory_of_answers_is_bounded() -> None:
    found = RuleSet(
        [Rule(ALICE, Operation.READ, topic(f"t{number}-"), True) for number in range(7000)]
    )
    for number in range(12_000):
        assert found.allows(ALICE, HOST, Operation.READ, topic(f"t{number}-x")) == (number < 7000)
    assert len(found._memo) <= 10_000


def test_allows_when_names_are_longer_than_a_topic_may_have_then_none_is_kept() -> None:
    found = RuleSet([Rule(ALICE, Operation.READ, topic("*"))])
    assert found.allows(ALICE, HOST, Operation.READ, topic("x" * 256))
    assert not found.allows(ALICE, HOST, Operation.WRITE, topic("y" * 32_000))
    assert not found._memo


@pytest.mark.parametrize(
    "of_others",
    [
        lambda number: Rule(Principal("User", f"user-{number}"), Operation.READ, topic("*")),
        lambda number: Rule(ALL_USERS, Operation.READ, topic(f"t{number}-"), True),
        lambda number: Rule(ALL_USERS, Operation.READ, topic("*"), host=f"10.1.0.{number}"),
    ],
)
def test_allows_rules_are_many_takes_no_more_work_for_a_name(
    of_others: Callable[[int], Rule],
) -> None:
    few, many = (RuleSet(map(of_others, range(count))) for count in (1, 7000))

    def work(rules: RuleSet) -> int:
        assert not rules.allows(BOB, HOST, Operation.READ, topic("t"))  # what is prepared once
        return calls_of(lambda: rules.allows(BOB, HOST, Operation.READ, topic("a")))

    assert work(many) == work(few)


def test_explain_nothing_matches_names_the_nearest_misses() -> None:
    near = {
        "host": Rule(ALICE, Operation.READ, topic("orders"), host="10.0.0.9"),
        "operation": Rule(ALICE, Operation.WRITE, topic("orders")),
        "prefix": Rule(ALICE, Operation.READ, topic("ord")),
        "type": Rule(ALICE, Operation.READ, Resource(ResourceType.GROUP, "orders")),
        "user": Rule(BOB, Operation.READ, topic("orders")),
    }
    far = Rule(BOB, Operation.READ, topic("ord"))
    decision = RuleSet([*near.values(), far]).explain(ALICE, HOST, Operation.READ, topic("orders"))
    assert (decision.is_allowed, decision.rule) == (False, None)
    assert {what: rule for rule, what in decision.near} == near


@given(st.lists(RULES, max_size=6))
def test_stored_rules_encoded_are_the_same_decoded(rules: list[Rule]) -> None:
    stored = StoredRules().adding(rules)
    assert StoredRules.decode(stored.encode()) == stored
    assert stored.adding(rules) == stored
    assert [rule.number for rule in stored.rules] == list(range(1, stored.next_number))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b'{"version":2,"next":1,"rules":[]}',
        b'{"version":1,"next":1,"rules":[{"principal":"alice"}]}',
        b'{"version":1,"next":2,"rules":[{"id":1,"principal":"User:a","operation":"read",'
        b'"type":"topic","name":"t","pattern":"glob","effect":"allow","host":"*"}]}',
    ],
)
def test_stored_rules_malformed_are_refused(value: bytes) -> None:
    with pytest.raises(CoordinationError, match="/acls are malformed"):
        StoredRules.decode(value)


def test_stored_rules_too_many_are_refused_before_zookeeper_does() -> None:
    rule = Rule(ALICE, Operation.READ, topic("t" * 200))
    stored = StoredRules().adding(rule._replace(host=str(n)) for n in range(7000))
    with pytest.raises(ConfigError, match="use prefixes"):
        stored.encode()


def test_host_of_ipv4_in_ipv6_is_the_ipv4() -> None:
    assert host_of("::ffff:10.0.0.1") == host_of("10.0.0.1") == HOST
    assert host_of("0:0::1") == "::1"
    for wrong in ("10.0.0.0/8", "localhost", ""):
        with pytest.raises(ConfigError, match="no IP address"):
            host_of(wrong)


def test_parse_super_users_subjects_with_commas_are_split_at_semicolons() -> None:
    found = parse_super_users("User:CN=a,OU=b; User:ops\nUser:root;")
    assert found == {Principal("User", name) for name in ("CN=a,OU=b", "ops", "root")}
    for wrong in ("User:a,User:b", "User:a; bob", "User:*", "Broker:1"):
        with pytest.raises(ConfigError, match=r"super\.users: '"):
            parse_super_users(wrong)


def test_parse_pattern_star_at_the_end_is_a_prefix_and_refused_elsewhere() -> None:
    assert parse_pattern("topic:web-*") == (topic("web-"), True)
    assert parse_pattern("topic:*") == (topic("*"), False)
    assert parse_pattern("cluster") == (CLUSTER, False)
    for wrong in ("topic:a*b", "topic:**", "topic:", "topics:a", "cluster:a", "orders"):
        with pytest.raises(ConfigError, match=r"no resource|at the end only"):
            parse_pattern(wrong)


def test_parse_principal_without_kind_is_refused() -> None:
    assert parse_principal("User:a:b") == Principal("User", "a:b")
    for wrong in ("alice", "User:", "user:alice", "Broker:1"):
        with pytest.raises(ConfigError, match="is no user"):
            parse_principal(wrong)

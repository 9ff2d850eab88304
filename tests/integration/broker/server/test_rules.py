"""Each request with no, wrong, too few and the right rights, and topics that must not show."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial as bind
from pathlib import Path

import pytest

import pylogctl
from broker import errors
from broker.admin.cluster_keys import rotate
from broker.api.errors import NoZooKeeper
from broker.client.connection import Connection
from broker.client.registry_cluster import RegistryCluster
from broker.client.side import Side
from broker.errors import NO_ERROR
from broker.protocol.client_requests import (
    Acks,
    AnyReplicaReadRequest,
    AuthenticateRequest,
    ClusterMetadataRequest,
    DigestLogRequest,
    HelloRequest,
    ListOffsetsRequest,
    ListSegmentsRequest,
    MetadataRequest,
    OffsetKind,
    OffsetQuery,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
    SchemaOperation,
    SchemasRequest,
    SessionReadRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
    HomeCount,
    MoveLogRequest,
    ShutdownRequest,
    StatusParts,
    StatusRequest,
)
from broker.protocol.layouts import EXTENSION_REQUESTS, ExtensionRequest
from broker.protocol.primitives import INT32
from broker.protocol.requests import (
    BASE_REQUESTS,
    LATEST_TIME,
    BaseRequest,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    encode_request,
)
from broker.protocol.responses import (
    HELLO,
    decode_filtered_read_response,
    decode_publish_response,
    decode_read_response,
)
from broker.security.mechanisms import Channel, Proved, ServerExchange
from broker.security.principal import ANONYMOUS, Principal, broker_principal
from broker.security.rules import (
    CLUSTER,
    Operation,
    Resource,
    ResourceType,
    Rule,
    RuleSet,
    StoredRules,
)
from broker.server import broker as broker_module
from broker.server.broker import Broker
from broker.server.requests.client import ConnectedClient
from broker.server.requests.judge import NEEDS, Judge, Scope, require_needs
from broker.server.status import SOFTWARE
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.settings import change_rules
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import (
    Peer,
    extension_frame,
    filtered_request,
    partition,
    publish_request,
    read_request,
)
from tests.support.frames import frames_of
from tests.support.waiting import wait_until
from tests.support.work import calls_of
from tests.unit.broker.protocol.test_golden_messages import REQUESTS

AsUser = Callable[[Broker, Principal], Peer]
ONE = encode([b"secret"])
ROOT = Principal("User", "root")


def _trusting(_: Channel) -> ServerExchange:
    """A mechanism for tests: a client is who it says it is."""
    name = yield b""
    kind, rest = name.decode().split(":")
    return Proved(Principal(kind, rest), b"")


@pytest.fixture(autouse=True)
def trusts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "_mechanisms", lambda *_: {"TEST": _trusting})


@pytest.fixture
def broker(start_broker: BrokerFactory, zookeeper: str) -> Broker:
    return start_broker(
        zookeeper=zookeeper, broker_id=1, enforces_rules=True, super_users=str(ROOT)
    )


@pytest.fixture
def as_user(connect: PeerFactory) -> AsUser:
    def make(broker: Broker, who: Principal) -> Peer:
        peer = connect(broker)
        peer.call(AuthenticateRequest("TEST", 0, str(who).encode()))
        return peer

    return make


def topic(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)


def set_rules(broker: Broker, *rules: Rule) -> None:
    """Write all rules, and wait until the broker judges by them."""
    stored = StoredRules().adding(rules)
    registry = broker.membership.registry
    assert registry is not None
    version = change_rules(registry.session, lambda _: stored.encode())
    wait_until(lambda: broker.status()["rules"]["version"] == version, "the rules")


def allow(who: str, operation: Operation, resource: Resource) -> Rule:
    return Rule(Principal("User", who), operation, resource)


def code_of(ask: Callable[[], object]) -> int:
    """Return the code of a refusal, 0 without one; -2 for a connection that is closed."""
    try:
        ask()
    except errors.ServerError as error:
        return error.code
    except (ConnectionError, EOFError):
        return -2
    return 0


def everyone_but_right() -> list[Rule]:
    """Return rules of `wrong`, who has all rights but on these topics, and of `few`."""
    topics = [topic(one) for one in ("orders", "größe")]
    group = Resource(ResourceType.GROUP, "orders")
    wrong = [topic("order"), topic("orders2"), group]
    return [
        *(allow("wrong", Operation.ALL, one) for one in wrong),
        *(allow("few", Operation.DESCRIBE, one) for one in topics),
    ]


def expected_refusal(request: ExtensionRequest, who: str) -> int:
    need = NEEDS[type(request)]
    if need.scope is Scope.CREATION:
        return errors.TopicAuthorizationError.code
    if need.scope is not Scope.ON_TOPIC:
        return errors.ClusterAuthorizationError.code
    if isinstance(request, DigestLogRequest):
        return errors.WrongPartitionError.code
    if who == "few":
        return errors.TopicAuthorizationError.code
    return errors.UnknownTopicError.code


def test_requests_that_are_refused_as_a_whole_when_rights_are_too_few_then_say_so(
    broker: Broker, as_user: AsUser
) -> None:
    set_rules(broker, *everyone_but_right())
    whole = [
        one
        for one in REQUESTS
        if NEEDS[type(one)].scope not in (Scope.NOTHING, Scope.ON_PARTS)
        and not (isinstance(one, MoveLogRequest) and not one.directory)
    ]
    for who in ("nobody", "wrong", "few"):
        peer = as_user(broker, Principal("User", who))
        for request in whole:
            if who == "few" and isinstance(request, ListSegmentsRequest):
                continue  # which it may send
            code = code_of(bind(peer.call, request))
            assert code == expected_refusal(request, who), (who, request)
    assert 'errors_total{error="cluster_authorization",request="push"}' in broker.exposition()


def test_requests_when_the_right_is_there_then_are_not_refused_for_lack_of_it(
    broker: Broker, as_user: AsUser
) -> None:
    """Only orders of brokers are refused: also to who has all rights, and to a super user."""
    every = [CLUSTER, topic("*"), Resource(ResourceType.GROUP, "*")]
    set_rules(broker, *(allow("right", Operation.ALL, one) for one in every))
    peer, root = (as_user(broker, who) for who in (Principal("User", "right"), ROOT))
    for request in REQUESTS:
        need = NEEDS[type(request)]
        if need.scope is Scope.BROKERS:
            for one in (peer, root):
                assert code_of(bind(one.call, request)) == errors.ClusterAuthorizationError.code
        elif not isinstance(request, AuthenticateRequest | ShutdownRequest):
            code = code_of(bind(peer.call, request))
            assert code not in (29, 30, 31), request
    peer.send_extension(ShutdownRequest(True))  # answered at the end
    assert broker.wait_for_shutdown_request(60)


def test_listeners_when_one_demands_no_login_then_0_7_is_judged_there_as_anonymous(
    start_broker: BrokerFactory, zookeeper: str, as_user: AsUser
) -> None:
    broker = start_broker(
        zookeeper=zookeeper,
        broker_id=1,
        enforces_rules=True,
        super_users=str(ROOT),
        listeners="OUTER=plain://127.0.0.1:0",
        requires_authentication=True,
        optional_authentication="PLAIN",
    )
    set_rules(broker, allow("ANONYMOUS", Operation.ALL, topic("open")))
    of_07 = [ProduceRequest("open", 0, ONE), *(build("open") for build in OF_07.values())]
    outer = broker.endpoints()[1].port

    with Peer(broker.port) as peer:
        peer.produce("open", ONE)
        wait_until(lambda: peer.fetch("open", 0) == (0, ONE), "the message")
        assert peer.fetch("hidden", 0) == (0, b"")
        for one in REQUESTS:
            if NEEDS[type(one)].scope in (Scope.ON_CLUSTER, Scope.BROKERS):
                assert code_of(bind(peer.call, one)) == errors.ClusterAuthorizationError.code
        peer.produce("hidden", ONE)
        assert peer.is_closed()
    assert broker.logs.topics.names() == ["open"]

    for request in of_07:
        with Peer(outer) as peer:
            peer.send(request)
            assert peer.is_closed()
    for one in REQUESTS:
        if not isinstance(one, AuthenticateRequest):
            with Peer(outer) as peer:
                peer.send_extension(one)
                assert code_of(peer.receive_extension) == errors.AuthenticationStateError.code
    with Peer(outer) as peer:
        peer.call(AuthenticateRequest("TEST", 0, str(ROOT).encode()))
        peer.call(HelloRequest())


BUILDERS: dict[str, Callable[[str], ExtensionRequest]] = {
    "publish": lambda name: publish_request(name, ONE),
    "read": lambda name: read_request(name, 0, max_wait_ms=60_000),
    "any replica": lambda name: AnyReplicaReadRequest(
        0, 1, 1 << 20, (PartitionPosition(partition(name), 0, 1 << 20),)
    ),
    "filtered": lambda name: filtered_request(name, 0, b"secret", max_wait_ms=60_000),
    "metadata": lambda name: MetadataRequest((name,)),
    "cluster metadata": lambda name: ClusterMetadataRequest((name,)),
    "offsets": lambda name: ListOffsetsRequest(
        (OffsetQuery(partition(name), OffsetKind.LATEST, 0),)
    ),
    "segments": lambda name: ListSegmentsRequest(partition(name), LATEST_TIME, 3),
    "digest": lambda name: DigestLogRequest(partition(name, home=1), 0, 1),
    "delete": DeleteTopicRequest,
    "create": lambda name: CreateTopicRequest(name, 1),
}
"""Requests about one topic; those with parts first."""
OF_07: dict[str, Callable[[str], BaseRequest]] = {
    "fetch": lambda name: FetchRequest(name, 0, 0, 1 << 20),
    "multifetch": lambda name: MultiFetchRequest((FetchRequest(name, 0, 0, 1 << 20),)),
    "fetch of no partition": lambda name: FetchRequest(name, 1, 0, 1 << 20),
    "offsets": lambda name: OffsetsRequest(name, 0, LATEST_TIME, 3),
}


def test_hidden_topic_when_asked_for_then_answers_are_as_of_a_missing_one(
    broker: Broker, as_user: AsUser
) -> None:
    """The hidden one has more partitions than a new one would, and a message."""
    root = as_user(broker, ROOT)
    root.call(CreateTopicRequest("hidden1", 2))
    root.publish("hidden1", ONE)
    set_rules(broker, allow("right", Operation.ALL, topic("hidden1")))
    stranger, right = (as_user(broker, Principal("User", name)) for name in ("nobody", "right"))

    def answer(peer: Peer, name: str, request: ExtensionRequest | BaseRequest) -> bytes:
        peer.send_bytes(
            encode_request(request)
            if isinstance(request, BaseRequest)
            else extension_frame(request)
        )
        return peer.receive().replace(name.encode(), b"...")

    for what, build in (BUILDERS | OF_07).items():
        found = {name: answer(stranger, name, build(name)) for name in ("hidden1", "missing")}
        assert found["hidden1"] == found["missing"], what
        if what not in ("delete", "create"):
            assert answer(right, "hidden1", build("hidden1")) != found["missing"], what
    assert set(broker.logs.topics.names()) == {"hidden1"}
    for kind in (MetadataRequest, ClusterMetadataRequest):
        assert b"hidden1" not in bytes(stranger.call(kind(None)).rest)
        assert b"hidden1" in bytes(right.call(kind(None)).rest)


def test_hidden_topic_when_asked_for_then_the_work_is_that_of_a_missing_one(
    broker: Broker, as_user: AsUser
) -> None:
    as_user(broker, ROOT).publish("hidden1", ONE)
    set_rules(broker, allow("right", Operation.ALL, topic("hidden1")))
    handlers = broker.server._handlers[0]
    stranger = ConnectedClient("127.0.0.1")
    stranger.authentication.identity = Principal("User", "nobody")

    def work(name: str, request: ExtensionRequest | BaseRequest) -> int:
        if isinstance(request, BaseRequest):
            frame = encode_request(request)
        else:
            frame = extension_frame(request)
        frames = frames_of([frame[INT32.size :]])
        list(handlers.handle(frames, stranger, 0.0))  # rules remember what they have decided
        # the least, as what is counted by the second begins anew now and then
        return min(calls_of(lambda: list(handlers.handle(frames, stranger, 0.0))) for _ in range(5))

    for what, build in (BUILDERS | OF_07).items():
        found = {name: work(name, build(name)) for name in ("hidden1", "missing")}
        assert found["hidden1"] == found["missing"], what


def test_brokers_when_a_stranger_asks_then_none_tells_which_zookeeper_it_uses(
    broker: Broker, as_user: AsUser, connect: PeerFactory
) -> None:
    as_user(broker, ROOT).publish("orders", ONE)
    requests = [
        kind(names)
        for kind in (MetadataRequest, ClusterMetadataRequest)
        for names in (None, ("orders",), ("none",))
    ]
    stranger = connect(broker)

    def told() -> list[str]:
        return [stranger.call(one).short_string() for one in requests]

    assert told() == ["-"] * len(requests)
    assert HELLO.decode(stranger.call(HelloRequest())).cluster_id == "-"
    with pytest.raises(errors.ClusterAuthorizationError):
        stranger.call(StatusRequest(StatusParts(0)))
    set_rules(broker, Rule(ANONYMOUS, Operation.DESCRIBE, CLUSTER))
    assert told() == [broker.config.zookeeper] * len(requests)
    set_rules(broker, Rule(ANONYMOUS, Operation.DESCRIBE, topic("orders")))
    with pylogctl.connect(f"127.0.0.1:{broker.port}") as client:
        assert client.cluster_id == ""
        with pytest.raises(NoZooKeeper, match="only clients that log in"):
            client.groups()
    assert told() == ["-"] * len(requests)


def test_topic_when_zookeeper_does_not_answer_then_a_stranger_is_not_told_its_address(
    broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rules(broker, Rule(ANONYMOUS, Operation.CREATE, topic("orders")))

    def lose_answer(*_: object) -> None:
        raise errors.RegistryUnreachableError(
            f"no answer from ZooKeeper at {broker.config.zookeeper}"
        )

    monkeypatch.setattr(broker.membership, "create_topic", lose_answer)
    with pytest.raises(errors.LeaderNotAvailableError, match="try again") as caught:
        connect(broker).call(CreateTopicRequest("orders", 0, (HomeCount(1, 1),)))
    assert broker.config.zookeeper not in str(caught.value)


def test_hello_when_a_stranger_asks_then_it_does_not_tell_what_the_broker_runs_on(
    broker: Broker, as_user: AsUser, connect: PeerFactory
) -> None:
    known = HELLO.decode(as_user(broker, Principal("User", "nobody")).call(HelloRequest()))
    assert (known.cluster_id, known.software) == (broker.config.zookeeper, SOFTWARE)
    hello = HELLO.decode(connect(broker).call(HelloRequest()))
    assert (hello.cluster_id, hello.software) == ("-", "pylogctl")
    assert hello.versions == known.versions


def test_read_when_the_rule_names_an_address_then_only_from_there(
    broker: Broker, connect: PeerFactory
) -> None:
    as_root = connect(broker)
    as_root.call(AuthenticateRequest("TEST", 0, str(ROOT).encode()))
    as_root.publish("orders", ONE)
    everybody = Principal("User", "*")
    set_rules(broker, Rule(everybody, Operation.READ, topic("orders"), host="127.0.0.2"))
    assert connect(broker, address="127.0.0.2").read("orders", 0).error == NO_ERROR
    assert connect(broker, address="127.0.0.3").read("orders", 0).error == 128


def test_publish_when_one_part_is_allowed_then_only_the_other_is_refused(
    broker: Broker, as_user: AsUser
) -> None:
    root = as_user(broker, ROOT)
    for name in ("orders", "seen", "hidden"):
        root.publish(name, ONE)
    set_rules(
        broker,
        allow("alice", Operation.WRITE, topic("orders")),
        allow("alice", Operation.WRITE, topic("new")),
        allow("alice", Operation.READ, topic("seen")),
    )
    alice = as_user(broker, Principal("User", "alice"))
    names = ("hidden", "orders", "seen", "new")
    sets = tuple(PartitionSet(partition(name), ONE) for name in names)
    published = decode_publish_response(alice.call(PublishRequest(Acks.WRITTEN, 1000, sets)))
    assert [one.error for one in published] == [128, NO_ERROR, 29, 29]
    assert published[2].text == "User:alice may not write topic:seen"
    assert published[3].text == "User:alice may not create topic:new"  # by its first message

    positions = tuple(PartitionPosition(partition(name), 0, 99) for name in names)
    parts = decode_read_response(alice.call(ReadRequest(0, 1, 1 << 20, positions)))
    assert [one.error for one in parts] == [128, 29, NO_ERROR, 29]
    assert set(broker.logs.topics.names()) == {"orders", "seen", "hidden"}


def test_multiproduce_when_a_part_is_not_allowed_then_closed_after_those_before_it(
    broker: Broker, as_user: AsUser, caplog: pytest.LogCaptureFixture
) -> None:
    as_user(broker, ROOT).publish("hidden", ONE)
    set_rules(
        broker,
        allow("alice", Operation.WRITE, topic("orders")),
        allow("alice", Operation.CREATE, CLUSTER),
    )
    for refused in ("hidden", "missing"):
        alice = as_user(broker, Principal("User", "alice"))
        parts = [ProduceRequest(name, 0, ONE) for name in ("orders", refused, "orders")]
        alice.send(MultiProduceRequest(tuple(parts)))
        assert alice.is_closed()
    ends = {log.partition.topic: log.log_end_offset for log in broker.logs.table.all()}
    assert ends == {"orders": 2 * len(ONE), "hidden": len(ONE)}
    assert "missing" not in broker.logs.topics
    assert "User:alice may not write topic:hidden" in caplog.text


def test_read_that_waits_when_the_right_is_taken_away_then_gets_no_message(
    broker: Broker, as_user: AsUser
) -> None:
    root = as_user(broker, ROOT)
    root.publish("orders", ONE)
    set_rules(broker, allow("alice", Operation.READ, topic("orders")))
    alices = [as_user(broker, Principal("User", "alice")) for _ in range(2)]
    end = len(ONE)
    alices[0].send_extension(read_request("orders", end, max_wait_ms=60_000))
    alices[1].send_extension(filtered_request("orders", end, b"secret", max_wait_ms=60_000))
    time.sleep(0.2)  # it waits by then; if not, it is refused at once, which is right, too
    set_rules(broker)
    root.publish("orders", ONE)
    (part,) = decode_read_response(alices[0].receive_extension())
    assert (part.error, bytes(part.message_set)) == (128, b"")
    (filtered,) = decode_filtered_read_response(alices[1].receive_extension())
    assert (filtered.error, filtered.runs) == (128, ())


def test_read_in_a_session_when_the_right_is_taken_away_then_the_next_is_refused(
    broker: Broker, as_user: AsUser
) -> None:
    as_user(broker, ROOT).publish("orders", ONE)
    set_rules(broker, allow("alice", Operation.READ, topic("orders")))
    alice = as_user(broker, Principal("User", "alice"))
    first, later = read_request("orders", len(ONE)), ReadRequest(0, 1, 1 << 20, ())
    session = alice.call(SessionReadRequest(first, 0, 0, False, ())).int64()
    told = alice.call(SessionReadRequest(later, session, 1, False, ()))
    assert (told.int64(), decode_read_response(told)) == (session, [])
    set_rules(broker)
    told = alice.call(SessionReadRequest(later, session, 2, False, ()))
    assert told.int64() == session
    assert [one.error for one in decode_read_response(told)] == [errors.UnknownTopicError.code]


def test_right_when_taken_away_then_open_producers_of_all_brokers_are_refused(
    start_broker: BrokerFactory, as_user: AsUser, zookeeper: str, tmp_path: Path
) -> None:
    brokers = [
        start_broker(
            broker_id=number,
            data_dir=tmp_path / str(number),
            zookeeper=zookeeper,
            enforces_rules=True,
            super_users=str(ROOT),
        )
        for number in (1, 2)
    ]
    set_rules(brokers[0], allow("alice", Operation.ALL, topic("orders")))
    peers = [as_user(one, Principal("User", "alice")) for one in brokers]
    for peer in peers:
        wait_until(bind(_may_publish, peer), "the right")
    set_rules(brokers[0])
    for peer in peers:
        wait_until(lambda: not _may_publish(peer), "the refusal")  # noqa: B023  # called at once


def _may_publish(peer: Peer) -> bool:
    return peer.publish("orders", ONE).error == NO_ERROR


def test_rules_when_zookeeper_is_lost_then_the_last_stay(broker: Broker, as_user: AsUser) -> None:
    as_user(broker, ROOT).publish("orders", ONE)
    set_rules(broker, allow("alice", Operation.READ, topic("orders")))
    registry = broker.membership.registry
    assert registry is not None
    registry.session.stop()
    alice, mallory = (as_user(broker, Principal("User", who)) for who in ("alice", "mallory"))
    assert alice.read("orders", 0).error == NO_ERROR
    assert mallory.read("orders", 0).error == 128
    assert broker.status()["rules"]["read_ms"] > 0


def test_rules_when_there_are_seven_thousand_then_brokers_judge_by_them(
    broker: Broker, as_user: AsUser
) -> None:
    as_user(broker, ROOT).publish("orders", ONE)
    others = [allow(f"user-{number}", Operation.READ, topic("orders")) for number in range(6999)]
    set_rules(broker, *others, allow("alice", Operation.READ, topic("orders")))
    assert as_user(broker, Principal("User", "alice")).read("orders", 0).error == NO_ERROR
    assert as_user(broker, Principal("User", "user-7000")).read("orders", 0).error == 128


def test_rules_when_the_node_is_broken_or_gone_then_the_last_stay_and_are_written_again(
    broker: Broker, as_user: AsUser, session: Session
) -> None:
    as_user(broker, ROOT).publish("orders", ONE)
    set_rules(broker, allow("alice", Operation.READ, topic("orders")))
    alice = as_user(broker, Principal("User", "alice"))
    session.set(paths.RULES, b"{}")
    wait_until(lambda: broker.status()["rules"]["problem"], "the problem")
    assert alice.read("orders", 0).error == NO_ERROR
    assert broker.status()["rules"]["vanished_count"] == 0
    session.delete(paths.RULES)
    wait_until(lambda: broker.status()["rules"]["vanished_count"] == 1, "the alarm")
    wait_until(lambda: not broker.status()["rules"]["problem"], "the rules")
    assert alice.read("orders", 0).error == NO_ERROR
    assert StoredRules.decode(session.get(paths.RULES)[0]).rules[0].principal.name == "alice"


def test_rules_when_broken_at_the_start_then_only_super_users_may_do_anything(
    start_broker: BrokerFactory, as_user: AsUser, session: Session, zookeeper: str
) -> None:
    session.create(paths.RULES, b"nothing")
    broker = start_broker(zookeeper=zookeeper, enforces_rules=True, super_users=str(ROOT))
    assert as_user(broker, ROOT).publish("orders", ONE).error == NO_ERROR
    assert as_user(broker, Principal("User", "alice")).read("orders", 0).error == 128
    assert as_user(broker, broker_principal(2)).read("orders", 0).error == NO_ERROR


def test_key_when_to_be_rotated_without_the_right_to_see_brokers_then_names_the_right(
    broker: Broker,
) -> None:
    registry = broker.membership.registry
    assert registry is not None
    before = registry.session.get(paths.CLUSTER_KEYS)[0]
    with pytest.raises(errors.ClusterAuthorizationError, match="describe"):
        rotate(registry, Side(RegistryCluster(registry), Connection, 60), at_once=False)
    assert registry.session.get(paths.CLUSTER_KEYS)[0] == before


def test_forwarder_when_the_leader_is_another_then_the_client_is_judged_where_it_asks() -> None:
    """The forwarder is a broker, which may do everything: its own request is not judged again."""
    judge = Judge(1)
    judge.rules = RuleSet()
    client = ConnectedClient("127.0.0.1")
    client.authentication.identity = broker_principal(2)
    rights = judge.judge(publish_request("orders", ONE), client)
    assert rights is not None
    assert rights.refusal("orders") is None


def test_require_needs_when_a_request_states_none_then_the_import_fails() -> None:
    assert NEEDS.keys() == {*EXTENSION_REQUESTS.values(), *BASE_REQUESTS.values()}

    class ForgottenRequest:
        pass

    with pytest.raises(TypeError, match="no needs are stated for ForgottenRequest"):
        require_needs({*NEEDS, ForgottenRequest})


def test_broker_without_zookeeper_when_rules_are_on_then_does_not_start(
    start_broker: BrokerFactory,
) -> None:
    with pytest.raises(errors.ConfigError, match=r"acl\.enable needs zk\.connect"):
        start_broker(enforces_rules=True)
    with pytest.raises(errors.ConfigError, match=r"super\.users: 'alice' is no user"):
        start_broker(super_users="alice")


def test_schemas_when_rules_are_on_then_each_operation_needs_its_right(
    broker: Broker, as_user: AsUser
) -> None:
    def ask(who: str, operation: SchemaOperation, name: str = "s", **given: object) -> object:
        peer = peers.setdefault(who, as_user(broker, Principal("User", who)))
        request = SchemasRequest(operation, name, json.dumps(given).encode())
        return json.loads(request.RESPONSE.decode(peer.call(request)))

    peers: dict[str, Peer] = {}
    subject = Resource(ResourceType.SCHEMA, "s")
    set_rules(
        broker,
        allow("writer", Operation.WRITE, subject),
        allow("reader", Operation.DESCRIBE, subject),
        allow("owner", Operation.ALTER, subject),
        allow("owner", Operation.DELETE, subject),
        allow("other", Operation.ALL, Resource(ResourceType.SCHEMA, "t")),
        allow("topics", Operation.ALL, topic("s")),
    )
    register = bind(ask, operation=SchemaOperation.REGISTER, text='"int"', type="AVRO")
    for who in ("reader", "owner", "other", "topics"):
        assert code_of(bind(register, who)) == errors.SchemaAuthorizationError.code
    register("writer")
    for who, names, code in (
        ("reader", ["s"], 0),
        ("writer", ["s"], 0),
        ("other", [], errors.UnknownSchemaError.code),
        ("topics", [], errors.UnknownSchemaError.code),
    ):
        assert ask(who, SchemaOperation.SUBJECTS, "") == names
        assert code_of(bind(ask, who, SchemaOperation.GET, "", id=1)) == code
    level = bind(ask, operation=SchemaOperation.SET_COMPATIBILITY, level="FULL")
    assert code_of(bind(level, "writer")) == errors.SchemaAuthorizationError.code
    assert code_of(bind(level, "owner")) == 0
    assert code_of(bind(level, "owner", name="")) == errors.ClusterAuthorizationError.code
    delete = bind(ask, operation=SchemaOperation.DELETE)
    assert code_of(bind(delete, "writer")) == errors.SchemaAuthorizationError.code
    assert code_of(bind(delete, "owner")) == 0
    assert code_of(bind(ask, "reader", SchemaOperation.GET, "", id=1)) == 0  # of a deleted version

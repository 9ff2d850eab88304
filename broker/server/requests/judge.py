"""Who may send which request, and about which topics: what each type needs, and who decides it.

Each request passes `Judge.judge` before it is handled. What is about one topic, or about none, is
refused there; of a request with parts, its handler asks `Rights` about each of them, before it
looks for the topic. Without the right to describe a topic, a refusal looks as if there were none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from broker import errors
from broker.protocol import (
    client_requests,
    cluster_requests,
    extension_requests,
    replica_requests,
    requests,
)
from broker.protocol.client_requests import AuthenticateRequest
from broker.protocol.layouts import EXTENSION_REQUESTS
from broker.protocol.primitives import INT32, Buffer, Reader
from broker.protocol.responses import encode_extension_response
from broker.security.principal import ANONYMOUS, BROKER, Principal, broker_principal
from broker.security.rules import CLUSTER, Operation, Resource, ResourceType, RuleSet
from broker.server.requests import audit_log
from broker.server.requests.authentication import MAX_UNPROVED_BYTES
from broker.server.requests.client import ConnectedClient
from broker.server.requests.purgatory import Response


class Scope(Enum):
    """What a request is about."""

    NOTHING = auto()  # anyone may send it
    BROKERS = auto()  # an order, for brokers of the cluster only; see `Judge.check_order`
    ON_CLUSTER = auto()
    ON_TOPIC = auto()  # one, and refused as a whole
    ON_PARTS = auto()  # topics of which its handler asks, one by one
    CREATION = auto()  # of a topic: a right on it or on the cluster is enough


class Need(NamedTuple):
    """What a request needs: a right to do the operation to what it is about."""

    scope: Scope
    operation: Operation = Operation.ALL


_NOTHING, _BROKERS = Need(Scope.NOTHING), Need(Scope.BROKERS)
_SEE_CLUSTER = Need(Scope.ON_CLUSTER, Operation.DESCRIBE)
_ALTER_CLUSTER = Need(Scope.ON_CLUSTER, Operation.ALTER)
_WRITE_PARTS = Need(Scope.ON_PARTS, Operation.WRITE)
_READ_PARTS = Need(Scope.ON_PARTS, Operation.READ)
_SEE_PARTS = Need(Scope.ON_PARTS, Operation.DESCRIBE)
_CREATE = Need(Scope.CREATION, Operation.CREATE)
_DELETE = Need(Scope.ON_TOPIC, Operation.DELETE)

_OPERATIONS = {str(one) for one in Operation}
LIMITED = (
    extension_requests.CreateTopicRequest,
    cluster_requests.CreateReplicatedTopicRequest,
    cluster_requests.AddPartitionsRequest,
)
"""What the limits of topics may still refuse; see `CreationLimits`."""
ORDER = "order"
"""How the audit log names what only brokers may send."""

NEEDS: dict[Any, Need] = {
    requests.ProduceRequest: _WRITE_PARTS,
    requests.MultiProduceRequest: _WRITE_PARTS,
    requests.FetchRequest: _READ_PARTS,
    requests.MultiFetchRequest: _READ_PARTS,
    requests.OffsetsRequest: _SEE_PARTS,
    client_requests.HelloRequest: _NOTHING,
    AuthenticateRequest: _NOTHING,
    client_requests.SchemasRequest: _NOTHING,  # `SchemaHandler` asks, by operation and subject
    client_requests.PublishRequest: _WRITE_PARTS,
    client_requests.StampedPublishRequest: _WRITE_PARTS,
    client_requests.ReadRequest: _READ_PARTS,
    client_requests.FilteredReadRequest: _READ_PARTS,
    client_requests.AnyReplicaReadRequest: _READ_PARTS,
    client_requests.SessionReadRequest: _READ_PARTS,
    client_requests.MetadataRequest: _SEE_PARTS,
    client_requests.ClusterMetadataRequest: _SEE_PARTS,
    client_requests.ListOffsetsRequest: _SEE_PARTS,
    client_requests.ListSegmentsRequest: Need(Scope.ON_TOPIC, Operation.DESCRIBE),
    # with a length of 1 a digest tells the byte
    client_requests.DigestLogRequest: Need(Scope.ON_TOPIC, Operation.READ),
    extension_requests.StatusRequest: _SEE_CLUSTER,
    extension_requests.ReadChangesRequest: _SEE_CLUSTER,
    extension_requests.ShutdownRequest: _ALTER_CLUSTER,
    extension_requests.MoveLogRequest: _ALTER_CLUSTER,  # see `_need_of`
    extension_requests.CreateTopicRequest: _CREATE,
    extension_requests.DeleteTopicRequest: _DELETE,
    cluster_requests.CreateReplicatedTopicRequest: _CREATE,
    cluster_requests.DeleteReplicatedTopicRequest: _DELETE,
    cluster_requests.AddPartitionsRequest: Need(Scope.ON_TOPIC, Operation.ALTER),
    cluster_requests.ReplicateTopicRequest: _ALTER_CLUSTER,
    cluster_requests.ElectLeadersRequest: _ALTER_CLUSTER,
    cluster_requests.ReassignRequest: _ALTER_CLUSTER,
    cluster_requests.RestorePartitionsRequest: _ALTER_CLUSTER,
    cluster_requests.ListReassignmentsRequest: _SEE_CLUSTER,  # and of topics that one may describe
    cluster_requests.ListUnknownReplicasRequest: _SEE_CLUSTER,
    replica_requests.ReplicaFetchRequest: _BROKERS,
    replica_requests.SessionFetchRequest: _BROKERS,
    replica_requests.PushStatesRequest: _BROKERS,
    replica_requests.ChangeIsrRequest: _BROKERS,
    replica_requests.ControlledShutdownRequest: _BROKERS,
    replica_requests.ProbeBrokerRequest: _BROKERS,
}
"""By class: first 0.7's requests, then ours."""


def require_needs(kinds: set[Any]) -> None:
    """Raise `TypeError` if a request does not say what it needs: anyone could send it."""
    if unstated := sorted(kind.__name__ for kind in kinds - NEEDS.keys()):
        raise TypeError(f"no needs are stated for {', '.join(unstated)}")


_ORDERS = {(one.TYPE, one.VERSION): one for one, need in NEEDS.items() if need is _BROKERS}

require_needs({*EXTENSION_REQUESTS.values(), *requests.BASE_REQUESTS.values()})


@dataclass(eq=False, slots=True)
class Rights:
    """What one client may do; by the rules of the moment when it is asked, while a read waits."""

    judge: Judge
    client: ConnectedClient
    request: Any  # or its class
    operation: Operation  # that the request does to each topic
    hides: bool = True  # topics; a produce of 0.7 has no answer, and its refusal is logged
    _refused: dict[str, _Refused] = field(default_factory=dict, init=False)
    """By operation; not audited yet."""

    @property
    def who(self) -> Principal:
        """Return who the client is."""
        return self.client.authentication.identity

    @property
    def basis(self) -> object:
        """Return what a decision follows from; as long as it is equal, so are all decisions."""
        return self.judge.rules, self.who

    def may(self, operation: Operation, resource: Resource) -> bool:
        """Return whether the client may do something."""
        rules = self.judge.rules
        return rules is None or rules.allows(self.who, self.client.host, operation, resource)

    @property
    def knows_cluster(self) -> bool:
        """Whether the client may know which ZooKeeper the broker uses, as members of groups do."""
        return self.who != ANONYMOUS or self.may(Operation.DESCRIBE, CLUSTER)

    def allows(self, topic: str) -> bool:
        """Return whether the request may be about a topic; a refusal is not audited yet."""
        return self.may(self.operation, Resource(ResourceType.TOPIC, topic))

    def refusal(self, topic: str) -> errors.ServerError | None:
        """Return why the request may not be about a topic; None if it may."""
        resource = Resource(ResourceType.TOPIC, topic)
        if self.may(self.operation, resource):
            return None
        refusal = self._forbidden(self.operation, resource)
        if not self.hides or self.may(Operation.DESCRIBE, resource):
            return refusal
        return errors.UnknownTopicError(
            f"there is no topic '{topic}' on broker {self.judge.broker_id}"
        )

    def hidden(self, topics: Iterable[str], *, are_named: bool) -> frozenset[str]:
        """Return the topics that the request may not be about; refused if it names them."""
        found = [one for one in topics if not self.allows(one)]
        if found and are_named:
            resource = Resource(ResourceType.TOPIC, found[0])
            text = f"{self.who} may not {self.operation} {resource}"
            self._note(self.operation, resource, text, found)
        return frozenset(found)

    def creation_refusal(self, topic: str) -> errors.ServerError | None:
        """Return why the client may not create a topic; None if it may."""
        resource = Resource(ResourceType.TOPIC, topic)
        for one in (resource, CLUSTER):
            if self.may(Operation.CREATE, one):
                return None
        return self._forbidden(Operation.CREATE, resource)

    def of_existing(self, topic: str, error: errors.TopicExistsError) -> errors.ServerError:
        """Return the error of a creation, which must not tell of a topic that is hidden."""
        resource = Resource(ResourceType.TOPIC, topic)
        if self.may(Operation.DESCRIBE, resource):
            return error
        return self._forbidden(Operation.CREATE, resource)

    def check_cluster(self) -> None:
        """Raise if the client may not do the request's operation to the cluster."""
        if not self.may(self.operation, CLUSTER):
            raise self._forbidden(self.operation, CLUSTER)

    def check_schemas(self, operation: Operation, subject: str) -> None:
        """Raise if the client may not do something to a subject of schemas."""
        resource = Resource(ResourceType.SCHEMA, subject)
        if not self.may(operation, resource):
            raise self._forbidden(operation, resource)
        if operation in audit_log.ADMINISTRATION:
            self.judge.note(self.client, self.request, operation, resource)

    def _forbidden(self, operation: Operation, resource: Resource) -> errors.ServerError:
        """Return a refusal that tells of the resource; `audit` has it written."""
        text = f"{self.who} may not {operation} {resource}"
        topics = [resource.name] if resource.type is ResourceType.TOPIC else []
        topics = _topics_of(self.request) if resource is CLUSTER else topics
        self._note(operation, resource, text, topics)
        if resource is CLUSTER:
            return errors.ClusterAuthorizationError(text)
        if resource.type is ResourceType.SCHEMA:
            return errors.SchemaAuthorizationError(text)
        return errors.TopicAuthorizationError(text)

    def _note(
        self, operation: Operation, resource: Resource, text: str, topics: Sequence[str]
    ) -> None:
        refused = self._refused.get(operation)
        if refused is None:
            short = resource._replace(name=resource.name[: audit_log.MAX_TOPIC_LENGTH])
            refused = self._refused[operation] = _Refused(short, text[: audit_log.MAX_NAME_LENGTH])
        first = topics[: audit_log.MAX_TOPICS - len(refused.topics)]
        refused.topics += [one[: audit_log.MAX_TOPIC_LENGTH] for one in first]
        refused.topic_count += len(topics)

    def audit(self) -> None:
        """Have the refusals of one attempt to handle the request audited, as one event."""
        refused, self._refused = self._refused, {}
        for operation, one in refused.items():
            self.judge.note(
                self.client,
                self.request,
                operation,
                one.resource,
                one.text,
                one.topics,
                one.topic_count,
            )


@dataclass(eq=False, slots=True)
class _Refused:
    """What one request was refused, to do one operation."""

    resource: Resource  # the first one
    text: str
    topics: list[str] = field(default_factory=list)  # the first ones
    topic_count: int = 0


@dataclass(eq=False, slots=True)
class RequestContext:
    """What comes with one of our requests: its header, its client, and the client's rights."""

    header: requests.RequestHeader
    client: ConnectedClient
    rights: Rights | None  # None if all is allowed

    @property
    def limited(self) -> Principal | None:
        """Return whose limits count for the topics that the request creates."""
        return limited_principal(self.client, self.rights)

    def frame(self, body: Buffer) -> bytes:
        """Return the frame of the response with a body."""
        return encode_extension_response(self.header.correlation_id, body)

    def respond(self, body: Buffer) -> Response:
        """Return the response with a body."""
        return Response(self.frame(body))


def limited_principal(client: ConnectedClient, rights: Rights | None) -> Principal | None:
    """Return whose limits count for the topics that a client creates; None without any."""
    who = client.authentication.identity
    may_all = rights is not None and rights.may(Operation.CREATE, CLUSTER)
    return None if who.kind == BROKER or may_all else who


class Judge:
    """Decides who may send what, on any thread; `rules` is None while rules are off."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.refused_orders = 0
        self.rules: RuleSet | None = None
        self.audit: audit_log.AuditLog | None = None

    def check_start(self, client: ConnectedClient, start: memoryview, size: int) -> None:
        """Raise unless a large frame, of which a few bytes are there, may be received."""
        who = client.authentication.identity
        if size <= MAX_UNPROVED_BYTES or who.kind == BROKER:
            return
        head = Reader(start)
        kind = _ORDERS.get((head.int16(), head.int16())) if len(start) >= INT32.size else None
        if kind is not None:
            text = f"{who} sends an order of {size} bytes, which only brokers may"
            raise self._refuse_order(client, kind, text)

    def _refuse_order(self, client: ConnectedClient, kind: Any, text: str) -> errors.ServerError:
        self.refused_orders += 1
        self.note(client, kind, ORDER, CLUSTER, text)
        return errors.ClusterAuthorizationError(text)

    def check_order(self, client: ConnectedClient, kind: Any, body: Buffer) -> None:
        """Raise if a request is a broker's order, and the client is not proved to be that broker.

        Called before the request is decoded; the body of each order begins with the id of the
        broker that sends it. The text tells nothing of the cluster.
        """
        if NEEDS[kind].scope is not Scope.BROKERS:
            return
        who = client.authentication.identity
        is_broker = who.kind == BROKER and len(body) >= INT32.size
        if is_broker and who == broker_principal(Reader(body).int32()):
            return
        text = (
            "only a broker of this cluster may send this, in its own name, on a connection on "
            "which it has proved itself"
        )
        raise self._refuse_order(client, kind, text)

    def judge(self, request: Any, client: ConnectedClient) -> Rights | None:
        """Return the rights of who sends a request, None for all; a class stands for its requests.

        Raises:
            ServerError: it is refused as a whole.
        """
        if self.rules is None and self.audit is None:
            return None
        need = _need_of(request)
        rights = self._rights(request, client, need)
        if need.operation in audit_log.ADMINISTRATION and not isinstance(request, LIMITED):
            self.note_allowed(request, client, rights)
        return rights

    def note_allowed(self, request: Any, client: ConnectedClient, rights: Rights | None) -> None:
        """Have it audited if a request that was not refused is one of an administrator."""
        need = _need_of(request)
        if self.audit is not None and need.operation in audit_log.ADMINISTRATION:
            resource, topics = CLUSTER, _topics_of(request)
            if topics and need.scope is not Scope.ON_CLUSTER:
                resource = Resource(ResourceType.TOPIC, topics[0])
            if need.scope is Scope.CREATION and rights and not rights.may(need.operation, resource):
                resource = CLUSTER  # the right to create any
            self.note(client, request, need.operation, resource, "", topics, len(topics))

    def note(
        self,
        client: ConnectedClient,
        request: Any,
        operation: str,
        resource: Resource | str,
        refusal: str = "",
        topics: Sequence[str] = (),
        topic_count: int = 0,
    ) -> None:
        """Have a decision audited: it is allowed, or refused with a text.

        `topics` are the first ones of `topic_count` that it is about.
        """
        audit, rules = self.audit, self.rules
        if audit is None:
            return
        who = client.authentication.identity
        rule = None
        if rules is not None and isinstance(resource, Resource) and operation in _OPERATIONS:
            rule = rules.deciding(who, client.host, Operation(operation), resource)
        audit.note(
            audit_log.AuditedDecision(
                client.listener,
                client.address,
                client.port,
                str(who),
                client.authentication.mechanism,
                client.is_tls,
                client.id[: audit_log.MAX_NAME_LENGTH],
                requests.RequestType(request.TYPE).name.lower(),
                operation,
                str(resource)[: audit_log.MAX_NAME_LENGTH],
                "denied" if refusal else "allowed",
                refusal[: audit_log.MAX_NAME_LENGTH],
                str(rule or ""),
                -1 if rules is None else rules.version,
                tuple(one[: audit_log.MAX_TOPIC_LENGTH] for one in topics),
                topic_count,
            )
        )

    def note_failed_login(
        self, client: ConnectedClient, request: Any, error: errors.ServerError
    ) -> None:
        """Have it audited that a client did not prove who it is, and which user it named."""
        user = error.details.get("user")
        resource = CLUSTER if user is None else f"user:{user}"
        self.note(client, request, audit_log.AUTHENTICATE, resource, str(error))

    def _rights(self, request: Any, client: ConnectedClient, need: Need) -> Rights | None:
        if self.rules is None:
            return None
        is_unanswered = isinstance(request, requests.ProduceRequest | requests.MultiProduceRequest)
        rights = Rights(self, client, request, need.operation, hides=not is_unanswered)
        try:
            self._check_whole(rights, request, need.scope)
        finally:
            rights.audit()
        return rights

    def _check_whole(self, rights: Rights, request: Any, scope: Scope) -> None:
        """Raise if a request is refused as a whole."""
        if scope is Scope.ON_CLUSTER:
            rights.check_cluster()
        elif scope is Scope.CREATION:
            if (refusal := rights.creation_refusal(request.topic)) is not None:
                raise refusal
        elif scope is Scope.ON_TOPIC:
            named = getattr(request, "partition", request)
            if (refusal := rights.refusal(named.topic)) is not None:
                if isinstance(request, client_requests.DigestLogRequest):
                    refusal = errors.WrongPartitionError(f"this broker has no log of {named}")
                raise refusal


def _topics_of(request: Any) -> list[str]:
    """Return the topic that a request is about as a whole, if it is about one."""
    named = getattr(request, "partition", request)
    topic = getattr(named, "topic", "")
    return [topic] if topic else []


def _need_of(request: Any) -> Need:
    if isinstance(request, extension_requests.MoveLogRequest) and not request.directory:
        return _SEE_CLUSTER  # it only asks how far a move is
    return NEEDS[request if isinstance(request, type) else type(request)]

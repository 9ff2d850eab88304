"""The handlers of the API that change the cluster, in their table of routes."""

from __future__ import annotations

import base64
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from msgspec import Struct
from starlette.responses import Response

from broker.admin.group_changes import OffsetChange
from broker.admin.settings_changes import SettingChange
from broker.admin.topic_deletion import Deletion
from broker.admin.topics import TopicInfo
from broker.api.client import Client
from broker.api.errors import TopicExists, UnknownGroup
from broker.api.producer import Delivery
from broker.errors import BrokerError
from broker.protocol.client_requests import Acks
from broker.records import plain
from broker.topic import TopicPartition
from pylogctl.web import documents as docs
from pylogctl.web.api import BASE, etag_of, topic_of
from pylogctl.web.documents import document_of, struct_of
from pylogctl.web.problems import ProblemError
from pylogctl.web.site import Call, WebRoutes, respond

_MAX_PLANS = 100
_PLAN_S = 3600.0
_PLANS = "/groups/{group}/reset-plans"

ROUTES = WebRoutes(BASE)


@ROUTES.at(
    "/topics", "POST", request=docs.NewTopic, response=struct_of(TopicInfo), status=201, also=(200,)
)
async def create_topic(call: Call, new: docs.NewTopic) -> Response:
    """Create a topic."""

    def work(client: Client) -> TopicInfo:
        if any(one.name == new.name for one in client.topics()):
            raise TopicExists(f"topic '{new.name}' exists")  # a plan would not say so
        return client.create_topic(
            new.name,
            partitions=new.partitions,
            replicas=new.replicas,
            format=new.format,
            settings=dict(new.settings),
            plan=new.dry_run,
        )

    found = await call.change(_what("create topic", new.name, new), work)
    headers = {} if new.dry_run else {"Location": f"{BASE}/topics/{quote(new.name, safe='')}"}
    return respond(document_of(struct_of(TopicInfo), found), 200 if new.dry_run else 201, headers)


@ROUTES.at("/topics/{topic}", "PATCH", request=docs.TopicChange, response=docs.ChangedTopic)
async def change_topic(call: Call, wanted: docs.TopicChange, topic: str) -> Response:
    """Add partitions to a topic, or set and unset its settings."""
    if wanted.partitions is None and not wanted.settings:
        raise ProblemError(422, "give partitions or settings, which are to change")
    values = {key: value for key, value in wanted.settings.items() if value is not None}
    unset = [key for key, value in wanted.settings.items() if value is None]

    def work(client: Client) -> tuple[TopicInfo, list[SettingChange]]:
        found = _matching(call, client, topic)
        changed: list[SettingChange] = []
        if wanted.partitions is not None:
            found = client.alter_topic(topic, partitions=wanted.partitions, plan=wanted.dry_run)
        if values:
            changed += client.set_settings(values, topic=topic, plan=wanted.dry_run)
        if unset:
            changed += client.unset_settings(unset, topic=topic, plan=wanted.dry_run)
        return found, changed

    found, changed = await call.change(_what("change topic", topic, wanted), work)
    document = docs.ChangedTopic(topic=plain(found), settings=plain(changed))
    return respond(document, headers={"ETag": etag_of(found)})


@ROUTES.at("/topics/{topic}", "DELETE", query=docs.DeleteQuery, response=struct_of(Deletion))
async def delete_topic(call: Call, query: docs.DeleteQuery, topic: str) -> Struct:
    """Delete a topic with all its messages."""

    def work(client: Client) -> Deletion:
        _matching(call, client, topic)
        return client.delete_topic(topic, with_offsets=query.with_offsets, plan=query.dry_run)

    found = await call.change(_what("delete topic", topic, query), work)
    return document_of(struct_of(Deletion), found)


def _matching(call: Call, client: Client, name: str) -> TopicInfo:
    """Return a topic; 412 if it is not the one that `If-Match` tells."""
    found = topic_of(client, name)
    wanted = call.headers.get("if-match", "*")
    if wanted != "*" and etag_of(found) not in [one.strip() for one in wanted.split(",")]:
        raise ProblemError(412, f"topic '{name}' has changed since it was read")
    return found


@ROUTES.at("/topics/{topic}/messages", "POST", request=docs.NewMessages, response=docs.SentList)
async def produce(call: Call, new: docs.NewMessages, topic: str) -> Struct:
    """Send messages to a topic that exists; each is told apart."""
    payloads = [_payload(one, place) for place, one in enumerate(new.items)]

    def work(client: Client) -> docs.SentList:
        client.offsets(topic, "end")  # to send would make a topic that is not there
        with client.producer(acks=Acks[new.acks.upper()]) as producer:
            results: list[docs.Sent] = []
            deliveries: list[Delivery | BrokerError] = []
            for one, payload in zip(new.items, payloads, strict=True):
                try:
                    deliveries.append(
                        producer.send(topic, payload, key=one.key, partition=one.partition)
                    )
                except BrokerError as error:
                    deliveries.append(error)
            for delivery in deliveries:
                try:
                    if isinstance(delivery, BrokerError):
                        raise delivery
                    receipt = delivery.result()
                    results.append(docs.Sent(receipt.partition.name, receipt.offset, ""))
                except BrokerError as error:
                    results.append(docs.Sent(None, None, str(error)))
        return docs.SentList(any(one.problem for one in results), results)

    return await call.change(f"send {len(payloads)} messages to topic {topic!r}", work)


def _payload(message: docs.NewMessage, place: int) -> bytes:
    if message.encoding == "text":
        return message.value.encode()
    try:
        return base64.b64decode(message.value, validate=True)
    except ValueError as error:
        raise ProblemError(422, f"the value of message {place} is not base64") from error


@dataclass(slots=True)
class _Plan:
    """A reset that was planned for a group."""

    group: str
    changes: list[OffsetChange]
    state: Literal["planned", "applied", "undone"] = "planned"
    made_s: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def document(self, id: str) -> Struct:
        items = [
            document_of(
                docs.PlannedOffset,
                one,
                difference=None
                if one.before is None or one.after is None
                else one.after - one.before,
            )
            for one in self.changes
        ]
        return docs.ResetPlan(id=id, group=self.group, state=self.state, items=items)


@ROUTES.at(_PLANS, "POST", request=docs.NewResetPlan, response=docs.ResetPlan, status=201)
async def plan_reset(call: Call, wanted: docs.NewResetPlan, group: str) -> Response:
    """Plan where a group goes; nothing is changed before the plan is applied."""
    changes = await call.change(
        _what("plan a reset of group", group, wanted),
        lambda client: client.reset(
            group,
            wanted.topics,
            to=wanted.to,
            shift=wanted.shift,
            partition=wanted.partition,
            plan=True,
            force=True,  # whether it has members matters when the plan is applied
        ),
    )
    plans = _plans_of(call)
    now_s = time.monotonic()
    for id in [id for id, one in plans.items() if now_s - one.made_s > _PLAN_S]:
        del plans[id]
    while len(plans) >= _MAX_PLANS:
        del plans[next(iter(plans))]
    id = secrets.token_urlsafe(12)
    plans[id] = _Plan(group, changes)
    return respond(plans[id].document(id), 201, {"Location": f"{call.url.path}/{id}"})


@ROUTES.at(f"{_PLANS}/{{id}}/apply", "POST", request=docs.Nothing, response=docs.ResetPlan)
async def apply_reset(call: Call, group: str, id: str) -> Struct:
    """Move a group as planned; 409 if its offsets are not those that the plan saw."""
    return await _carry_out(call, group, id, "planned", "applied")


@ROUTES.at(f"{_PLANS}/{{id}}/undo", "POST", request=docs.Nothing, response=docs.ResetPlan)
async def undo_reset(call: Call, group: str, id: str) -> Struct:
    """Move a group back; 409 if it has moved since the plan was applied."""
    return await _carry_out(call, group, id, "applied", "undone")


async def _carry_out(
    call: Call,
    group: str,
    id: str,
    wanted: Literal["planned", "applied"],
    following: Literal["applied", "undone"],
) -> Struct:
    plan = _plans_of(call).get(id)
    if plan is None or plan.group != group:
        raise ProblemError(
            404, f"there is no plan '{id}' for group '{group}'", hints=("plans are kept an hour",)
        )
    moved = [one for one in plan.changes if one.after is not None and one.before != one.after]
    before = {one.partition: one.before for one in moved}
    after = {one.partition: one.after for one in moved}
    sources, targets = (before, after) if wanted == "planned" else (after, before)

    def work(client: Client) -> str:
        with plan.lock:
            if plan.state != wanted:
                raise ProblemError(409, f"the plan is {plan.state}, not {wanted}")
            _check_unmoved(client, group, sources)
            client.import_offsets(group, targets)
            plan.state = following
        return f"before {sources}, after {targets}"

    await call.change(f"{following} reset {id} of group {group!r}", work)
    return plan.document(id)


def _check_unmoved(
    client: Client, group: str, expected: Mapping[TopicPartition, int | None]
) -> None:
    try:
        present = client.offsets_of(group)
    except UnknownGroup:
        present = {}
    for partition, offset in expected.items():
        found = present.get(partition)
        if found != offset:
            raise ProblemError(
                409,
                f"group '{group}' is at {found} of {partition}, not at {offset} any more",
                code="MOVED",
                hints=("plan again",),
            )


def _plans_of(call: Call) -> dict[str, _Plan]:
    plans: dict[str, _Plan] = call.app.state.plans
    return plans


def _what(verb: str, name: str, details: object) -> str:
    return f"{verb} {name!r} {details!r}"

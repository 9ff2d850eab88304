"""Creates, alters and deletes topics, and renders that; with `--dry-run`, only the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from broker.admin import reassignment, topic_changes, topic_deletion
from broker.admin.topic_changes import NewTopic
from broker.admin.topic_deletion import DeletionStep
from broker.admin.topics import metadata_of
from broker.client.side import Side
from broker.client.topic_creation import await_topic, create_on
from broker.errors import TopicExistsError, TopicNotFoundError
from pylogctl.cli.confirmation import confirm, confirm_name
from pylogctl.cli.connections import Absence, open_for_requests, zookeeper_session
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.failures import for_each, raise_failures
from pylogctl.cli.render import render
from pylogctl.topic import replication
from pylogctl.topic.document import CREATE, DELETE, CreateRow, DeleteRow

_UNCHANGED = "nothing changed; this was a dry run"


def create_topic(env: Environment, wanted: NewTopic, *, if_not_exists: bool) -> None:
    """Create a topic: by the controller if it has replicas, else on brokers."""
    with open_for_requests(env, absence=Absence.FAIL) as side:
        wanted = topic_changes.with_format(side, wanted)
        is_on_brokers = wanted.replicas is None
        create = _create_on_brokers if is_on_brokers else replication.create_replicated_topic
        create(env, side, wanted, if_not_exists=if_not_exists)


def _create_on_brokers(env: Environment, side: Side, new: NewTopic, *, if_not_exists: bool) -> None:
    topic, partition_count = new.name, new.partitions
    plan = topic_changes.plan_creation(side, new)
    if not if_not_exists:
        topic_changes.check_absent(topic, plan)
    present = metadata_of(side, (topic,)).get(topic, ())
    # perhaps on none of these brokers, which refuse to create it
    if any(one.is_replicated for one in present):
        if not if_not_exists:
            raise TopicExistsError(f"topic '{topic}' exists with replicas")
        env.note(f"topic '{topic}' exists with replicas; it stays as it is")
        return
    counts = {one.broker.id: one.before or one.partition_count for one in plan}
    placement = topic_changes.placement_text(counts)
    total = sum(counts.values())
    wanted = partition_count
    if new.is_per_broker and partition_count:
        wanted = len(plan) * partition_count
    if wanted not in (None, total):
        env.warn(f"topic '{topic}' exists; it does not have {wanted}, but {placement}")
    if env.settings.dry_run:
        actions = ((one, "create" if one.is_needed else "exists") for one in plan)
        render(env, CREATE, [_create_row(topic, one, action) for one, action in actions])
        env.note(f"topic {topic}: {placement}; {_UNCHANGED}")
        return

    needed = {one.broker.id: one.partition_count for one in plan if one.is_needed}
    brokers = [one.broker for one in plan if one.is_needed]
    made = create_on(side.connect, topic, needed, brokers, format=new.format)
    if needed.keys() > made and not if_not_exists:
        raise TopicExistsError(f"topic '{topic}' was created by another client meanwhile")
    await_topic(side.cluster, topic, set(counts), timeout_s=side.timeout_s)
    rows = [
        _create_row(topic, one, "created" if one.broker.id in made else "exists") for one in plan
    ]
    render(env, CREATE, rows)
    env.note(f"topic {topic}: {placement}")


def _create_row(topic: str, creation: topic_changes.TopicCreation, action: str) -> CreateRow:
    count = creation.before or creation.partition_count
    return CreateRow(topic, creation.broker.id, creation.before, count, action)


def alter_topic(
    env: Environment, topic: str, count: int | None, is_per_broker: bool, factor: int | None
) -> None:
    """Give a topic more partitions, or else its partitions so many replicas."""
    with open_for_requests(env, absence=Absence.WARN) as side:
        if not replication.has_replicas(side, topic):
            if factor is not None:
                replication.replicate_topic(env, side, topic, factor)
                return
            assert count is not None
            if env.settings.brokers:
                raise UsageError(
                    f"topic '{topic}' has no replicas: how many partitions it has is a setting in "
                    "ZooKeeper, which --broker leaves out"
                )
            _set_partition_count(env, side, topic, count, is_per_broker=is_per_broker)
        elif is_per_broker:
            raise topic_changes.per_broker_of_replicated(topic)
        elif count is not None:
            replication.add_partitions(env, side, topic, count)
        else:
            plan = reassignment.make_plan(side, [topic], replication_factor=factor)
            replication.execute(env, side, plan)


def _set_partition_count(
    env: Environment, side: Side, topic: str, count: int, *, is_per_broker: bool
) -> None:
    """Have each broker add partitions to a topic without replicas."""
    plan = topic_changes.plan_partition_count(side, topic, count, is_per_broker=is_per_broker)
    before = topic_changes.placement_text({one.broker.id: one.before for one in plan})
    after = topic_changes.placement_text({one.broker.id: one.partition_count for one in plan})

    def show(action: str) -> None:
        rows = [
            CreateRow(topic, one.broker.id, one.before, one.partition_count, action) for one in plan
        ]
        render(env, CREATE, rows)

    if env.settings.dry_run:
        show("add")
        env.note(f"topic {topic}: {after}; {_UNCHANGED}")
        return
    if not env.settings.assume_yes:
        env.report(f"topic {topic} has {before}; it gets {after}")
    confirm(env, "topic alter", "add these partitions? They cannot be removed")
    with zookeeper_session(env) as session:
        topic_changes.set_partition_count(side, session, topic, plan)
    show("added")
    env.note(f"topic {topic}: {after}")


def delete_topics(
    env: Environment,
    topics: Iterable[str],
    confirmed: Sequence[str],
    *,
    with_data: bool,
    with_offsets: bool,
    if_exists: bool,
) -> None:
    """Delete topics after each name is confirmed; only on brokers if these are given by address."""
    with ExitStack() as closing:
        side = closing.enter_context(open_for_requests(env, absence=Absence.FAIL))
        session = None
        if not env.settings.brokers:
            session = closing.enter_context(zookeeper_session(env))

        def plan_one(topic: str) -> list[DeletionStep]:
            try:
                plan = topic_deletion.plan_deletion(side, session, topic, with_data=with_data)
            except TopicNotFoundError:
                if if_exists:
                    return []
                raise
            offsets = [] if session is None else topic_deletion.plan_offsets(session, topic)
            if offsets and not with_offsets:
                groups = ", ".join(str(one.group) for one in offsets)
                env.note(
                    f"topic '{topic}': its offsets stay stored for group {groups}; "
                    "--group-offsets deletes them too"
                )
                return plan
            return plan + offsets

        def delete_one(plan: Sequence[DeletionStep]) -> Sequence[DeletionStep]:
            for step in plan:
                topic_deletion.carry_out(side, session, step)
            return plan

        plans, planned = for_each(env, "topics", topics, plan_one)
        if env.settings.dry_run:
            render(env, DELETE, [_delete_row(step, "delete") for plan in plans for step in plan])
            env.note(_UNCHANGED)
            raise_failures(env, planned)
            return
        for plan in filter(None, plans):
            name = plan[0].topic
            given = name if name in confirmed else next(iter(confirmed), None)
            confirm_name(env, "topic delete", name, given)
        deleted, done = for_each(env, "topics", map(tuple, plans), delete_one)
        render(env, DELETE, [_delete_row(step, "deleted") for plan in deleted for step in plan])
        raise_failures(env, planned, done)


def _delete_row(step: DeletionStep, action: str) -> DeleteRow:
    broker_id = None if step.broker is None else step.broker.id
    return DeleteRow(step.topic, broker_id, step.partition_count or None, step.group, action)

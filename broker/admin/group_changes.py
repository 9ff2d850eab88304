"""Changes of groups in ZooKeeper: plans of offsets are applied, groups deleted.

Members commit their own offsets over those of a plan, so a group should have none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from broker import deadlines, errors
from broker.admin import groups
from broker.admin.group_plans import Change, plan_removal
from broker.admin.lag import GroupObserver
from broker.topic import TopicPartition
from broker.units import counted
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import encode_number

_POLL_S = 0.1
_RECONNECT_S = 1.0
_NAMED_MEMBERS = 5


class OffsetChange(NamedTuple):
    """An offset of a group before and after a change; None for none, or one that is no number.

    `note` says what was adjusted, or why the offset stays.
    """

    partition: TopicPartition
    before: int | None
    after: int | None
    note: str


def change_offsets(
    observer: GroupObserver,
    group: str,
    plan_of: Callable[[groups.GroupSnapshot], Sequence[Change]],
    *,
    is_plan: bool,
    force: bool,
    wait_s: float | None,
) -> list[OffsetChange]:
    """Plan changes of a group's offsets, and make them unless only the plan is wanted.

    Waits `wait_s` for a group with members. `PartialError` if some of the changes fail.
    """
    groups.validate_group_name(group)
    session = observer.session
    if wait_s is not None:
        await_inactive(session, group, wait_s)
    changes = plan_of(observer.snapshot(group))
    if not force:
        check_inactive(
            session, group, advice="stop them, or give `wait_inactive=SECONDS` or `force=True`"
        )
    if is_plan:
        return list(map(_value_of, changes))
    failed: dict[TopicPartition, errors.BrokerError] = {
        one.partition: errors.BrokerError("; ".join(one.notes)) for one in changes if one.fails
    }
    for one in apply_changes(session, changes, force=force):
        failed[one.partition] = offset_changed([one])
    done = [_value_of(one) for one in changes if one.partition not in failed]
    if failed:
        (first, error), *_ = failed.items()
        raise errors.PartialError(
            f"{len(failed)} of {len(changes)} offsets of group '{group}' are not changed; "
            f"{first}: {error}",
            done,
            {str(partition): error for partition, error in failed.items()},
        )
    return done


def remove_group(
    observer: GroupObserver, group: str, *, missing_ok: bool = False, plan: bool = False
) -> list[OffsetChange]:
    """Delete a group, and return the offsets that it had."""
    groups.validate_group_name(group)
    session = observer.session
    if missing_ok and group not in groups.list_groups(session):
        return []
    groups.require_group(session, group)
    check_inactive(session, group, advice="stop them first")
    changes = plan_removal(observer.snapshot(group))
    if not plan:
        delete_group(session, group)
    return list(map(_value_of, changes))


def _value_of(change: Change) -> OffsetChange:
    note = "; ".join(change.notes)
    return OffsetChange(change.partition, change.current_offset, change.new, note)


def check_inactive(session: Session, group: str, *, advice: str) -> None:
    """Raise GroupActiveError if a group has members; `advice` ends the error's sentence."""
    if members := groups.read_members(session, group):
        raise _group_active(group, [one.consumer_id for one in members], "has {}; " + advice)


def await_inactive(session: Session, group: str, wait_s: float) -> None:
    """Wait until a group has no members; raise GroupActiveError if it still has after `wait_s`."""
    give_up_s = time.monotonic() + wait_s
    if members := deadlines.remaining(
        lambda: groups.read_members(session, group), give_up_s, _POLL_S
    ):
        names = [one.consumer_id for one in members]
        raise _group_active(group, names, f"still has {{}} after {wait_s:g}s")


def _group_active(group: str, members: Sequence[str], text: str) -> errors.GroupActiveError:
    """Return the error for a group with members; `{}` in the text stands for how many."""
    more = f" and {len(members) - _NAMED_MEMBERS} more" if len(members) > _NAMED_MEMBERS else ""
    return errors.GroupActiveError(
        f"group '{group}' {text.format(counted(len(members), 'active member'))}",
        members,
        hints=[f"members: {', '.join(members[:_NAMED_MEMBERS])}{more}"],
        details={"group": group, "members": list(members)},
    )


def apply_changes(
    session: Session, changes: Iterable[Change], *, force: bool = False
) -> list[Change]:
    """Write planned offsets; return those that changed since they were read and are not written.

    With `force` these are written, too.
    """
    needed = {paths.offset(one.group, one.partition): one for one in changes if one.is_needed}
    try:
        done = _replace(session, needed, force=force) | _create(session, needed)
        if force:
            # A node may have been created or deleted since it was read.
            left = {path: one for path, one in needed.items() if path not in done}
            done |= _create(session, left, all_changes=True)
            done |= _replace(session, left, force=True, all_changes=True)
        done |= _remove(session, needed, force=force)
    except errors.RegistryUnreachableError as error:
        changed = list(dict.fromkeys(one.group for one in needed.values()))
        raise errors.RegistryUnreachableError(
            f"{error}; some of the {len(needed)} offsets may be changed, others not",
            hints=[f"look again: pylogctl group describe {changed[0]}", "then repeat the command"],
            details={"groups": changed},
        ) from error
    return [one for path, one in needed.items() if path not in done]


def unmade(session: Session, changes: Iterable[Change]) -> list[Change]:
    """Return the changes whose offsets are stored as they were; none if that cannot be read.

    The session is of no use afterwards but for its end.
    """
    session.prepare_stop(_RECONNECT_S)
    by_path = {paths.offset(one.group, one.partition): one for one in changes}
    with suppress(errors.CoordinationError):
        session.sync()  # a write whose response was lost may be on its way to this server
        found = session.get_many(by_path)
        return [
            one
            for path, one in by_path.items()
            if (one.current and one.current.version)
            == (found[path][1].version if path in found else None)
        ]
    return []


def _replace(
    session: Session, changes: dict[str, Change], *, force: bool, all_changes: bool = False
) -> set[str]:
    """Write the nodes that existed when they were read; return the paths written."""
    values = {
        path: (encode_number(one.new), -1 if force or one.current is None else one.current.version)
        for path, one in changes.items()
        if one.new is not None and (one.current is not None or all_changes)
    }
    return set(session.set_many(values)) if values else set()


def _create(session: Session, changes: dict[str, Change], *, all_changes: bool = False) -> set[str]:
    """Create the nodes that did not exist when they were read; return the paths created."""
    values = {
        path: encode_number(one.new)
        for path, one in changes.items()
        if one.new is not None and (one.current is None or all_changes)
    }
    if not values:
        return set()
    return values.keys() - set(session.create_many(values, ephemeral=False))


def _remove(session: Session, changes: dict[str, Change], *, force: bool) -> set[str]:
    done = set()
    for path, one in changes.items():
        if one.new is None and one.current is not None:
            try:
                with suppress(errors.RegistryNodeNotFoundError):
                    session.delete(path, version=-1 if force else one.current.version)
            except errors.RegistryUnreachableError:
                raise
            except errors.CoordinationError:
                continue  # changed since it was read: reported as a conflict
            done.add(path)
    return done


def offset_changed(unwritten: Sequence[Change]) -> errors.ConflictError:
    """Return the error for offsets that `apply_changes` has not written."""
    names = ", ".join(str(one.partition) for one in unwritten)
    return errors.ConflictError(
        f"group '{unwritten[0].group}': the offset of {names} was changed meanwhile; "
        f"{len(unwritten)} not written",
        "OFFSET_CHANGED",
        hints=["look again, then repeat the command"],
        details={"partitions": [str(one.partition) for one in unwritten]},
    )


def nodes_of(session: Session, group: str) -> list[str]:
    """Return the paths of a group's nodes in an order in which they can be deleted."""
    found: list[str] = []
    with suppress(errors.RegistryNodeNotFoundError):  # another client has deleted it
        found = [path for _, path in session.walk(paths.group(group))][::-1]
    # `ids` comes first: if a member joins meanwhile, it cannot be deleted, and no other node is.
    ids = paths.consumer_ids(group)
    return sorted(found, key=lambda path: not (path == ids or path.startswith(f"{ids}/")))


def delete_group(session: Session, group: str) -> None:
    """Delete all nodes of a group without members."""
    advice = "stop them first"
    check_inactive(session, group, advice=advice)
    for path in nodes_of(session, group):
        try:
            with suppress(errors.RegistryNodeNotFoundError):
                session.delete(path)
        except errors.RegistryUnreachableError as error:
            raise errors.RegistryUnreachableError(
                f"{error}; group '{group}' is deleted in part",
                hints=["repeat the command to delete the rest"],
                details={"groups": [group]},
            ) from error
        except errors.CoordinationError:
            check_inactive(session, group, advice=advice)  # if a member has joined, say so
            raise

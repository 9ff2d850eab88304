"""Changing a group in the registry: writing planned offsets, saving the old ones, deleting.

Who is asked before, and what is told after, is for the commands. Nothing is written to a group
that has members unless the caller insists, as its members would write over it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from broker.errors import CoordinationError, RegistryNodeNotFoundError, RegistryUnreachableError
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import encode_number
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.group.plan import Change
from pylogctl.group.snapshot import GroupSnapshot, read_members

_POLL_S = 0.1
_NAMED_MEMBERS = 5


def check_inactive(session: Session, group: str, *, advice: str) -> None:
    """Check that a group has no members.

    Args:
        session: started.
        group: its name.
        advice: what to do instead, as the end of the error's sentence.

    Raises:
        CliError: it has; the error names them.
        CoordinationError: the registry does not answer.
    """
    names = [member.consumer_id for member in read_members(session, group)]
    if not names:
        return
    raise CliError(
        ExitStatus.CONFLICT,
        f"group '{group}' has {_active(names)}; {advice}",
        hints=[_named(names)],
        code="GROUP_ACTIVE",
        details={"group": group, "members": names},
    )


def _active(names: Sequence[str]) -> str:
    return f"{len(names)} active member{'' if len(names) == 1 else 's'}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED_MEMBERS} more" if len(names) > _NAMED_MEMBERS else ""
    return f"members: {', '.join(names[:_NAMED_MEMBERS])}{more}"


def await_inactive(
    session: Session, group: str, *, timeout_s: float, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until a group has no members.

    Args:
        session: started.
        group: its name.
        timeout_s: how long at most.
        sleep: waits between two looks.

    Raises:
        CliError: it still has some when the time is up.
        CoordinationError: the registry does not answer.
    """
    give_up_s = time.monotonic() + timeout_s
    while members := read_members(session, group):
        if time.monotonic() >= give_up_s:
            names = [member.consumer_id for member in members]
            raise CliError(
                ExitStatus.TIMEOUT,
                f"group '{group}' still has {_active(names)} after {timeout_s:g}s",
                hints=[_named(names)],
                code="GROUP_ACTIVE",
                details={"group": group, "members": names},
            )
        sleep(_POLL_S)


def apply(session: Session, changes: Iterable[Change], *, force: bool = False) -> list[Change]:
    """Write planned offsets.

    Args:
        session: started.
        changes: what to write; those that need nothing are skipped.
        force: write even where the offset was changed since it was read.

    Returns:
        Those that were not written, as somebody else has changed the offset since it was read.

    Raises:
        CliError: the registry went away; any of them may have been written.
    """
    needed = {paths.offset(one.group, one.partition): one for one in changes if one.is_needed}
    try:
        done = _replace(session, needed, force=force) | _create(session, needed)
        if force:
            # A node may have come or gone since it was read.
            left = {path: one for path, one in needed.items() if path not in done}
            done |= _create(session, left, anew=True)
            done |= _replace(session, left, force=True, anew=True)
        done |= _remove(session, needed, force=force)
    except RegistryUnreachableError as error:
        raise _lost_midway(error, list(needed.values())) from error
    return [one for path, one in needed.items() if path not in done]


def _lost_midway(error: RegistryUnreachableError, changes: Sequence[Change]) -> CliError:
    groups = list(dict.fromkeys(one.group for one in changes))
    return CliError(
        ExitStatus.UNREACHABLE,
        f"{error}; some of the {len(changes)} offsets may be changed, others not",
        hints=[f"look again: pylogctl group describe {groups[0]}", "then repeat the command"],
        code="REGISTRY_UNREACHABLE",
        details={"groups": groups},
    )


def _replace(
    session: Session, changes: dict[str, Change], *, force: bool, anew: bool = False
) -> set[str]:
    values = {
        path: (
            encode_number(one.new),
            -1 if force or one.current is None else one.current.version,
        )
        for path, one in changes.items()
        if one.new is not None and (one.current is not None or anew)
    }
    return set(session.set_many(values)) if values else set()


def _create(session: Session, changes: dict[str, Change], *, anew: bool = False) -> set[str]:
    values = {
        path: encode_number(one.new)
        for path, one in changes.items()
        if one.new is not None and (one.current is None or anew)
    }
    if not values:
        return set()
    return values.keys() - set(session.create_many(values, ephemeral=False))


def _remove(session: Session, changes: dict[str, Change], *, force: bool) -> set[str]:
    done = set()
    for path, one in changes.items():
        if one.new is None and one.current is not None:
            try:
                session.delete(path, version=-1 if force else one.current.version)
            except RegistryUnreachableError:
                raise
            except RegistryNodeNotFoundError:
                done.add(path)
            except CoordinationError:
                continue
            else:
                done.add(path)
    return done


def conflict(changes: Sequence[Change]) -> CliError:
    """Return the error for offsets that somebody else has changed."""
    names = ", ".join(str(one.partition) for one in changes)
    return CliError(
        ExitStatus.CONFLICT,
        f"group '{changes[0].group}': the offset of {names} was changed meanwhile; "
        f"{len(changes)} not written",
        hints=["look again, then repeat the command"],
        code="OFFSET_CHANGED",
        details={"partitions": [str(one.partition) for one in changes]},
    )


def save_offsets(directory: Path, changes: Sequence[Change], *, time_ms: int) -> Path:
    """Save the offsets that are about to be replaced, so that an import brings them back.

    Args:
        directory: made if it does not exist.
        changes: of one group; what they need and replace is saved.
        time_ms: the present moment, milliseconds since 1970.

    Returns:
        The file: JSON lines, with a null for an offset that there was not.

    Raises:
        OSError: it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    group = changes[0].group
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    path = directory / f"{group}-{moment:%Y%m%dT%H%M%S}{time_ms % 1000:03d}.jsonl"
    lines = [
        json.dumps(
            {
                "group": group,
                "topic": one.partition.topic,
                "partition": one.partition.name,
                "offset": one.current_offset,
            }
        )
        for one in changes
        if one.is_needed and (one.current is None or one.current.offset is not None)
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def removals(snapshot: GroupSnapshot) -> list[Change]:
    """Return the changes that take all offsets of a group away."""
    return [
        Change(snapshot.name, partition, stored, None)
        for partition, stored in snapshot.offsets.items()
    ]


def copies(source: GroupSnapshot, target: str) -> list[Change]:
    """Return the changes that give another group, which has none, the offsets of this one."""
    return [
        Change(target, partition, None, stored.offset)
        for partition, stored in source.offsets.items()
        if stored.offset is not None
    ]


def nodes_of(session: Session, group: str) -> list[str]:
    """Return the paths of a group's nodes in an order in which they can be deleted.

    The node of the members goes first: if somebody joins meanwhile it cannot be deleted, and
    nothing else is.

    Raises:
        CoordinationError: the registry does not answer, or there is no such group.
    """
    found = [path for _, path in session.walk(paths.group(group))][::-1]
    ids = paths.consumer_ids(group)
    return sorted(found, key=lambda path: not (path == ids or path.startswith(f"{ids}/")))


def delete_group(session: Session, group: str) -> None:
    """Delete a group and all that is below it.

    Raises:
        CliError: it has members, or the registry went away and some of it is left.
        CoordinationError: the registry does not answer, or somebody makes nodes meanwhile.
    """
    advice = "stop them first"
    check_inactive(session, group, advice=advice)
    for path in nodes_of(session, group):
        try:
            with suppress(RegistryNodeNotFoundError):
                session.delete(path)
        except RegistryUnreachableError as error:
            raise CliError(
                ExitStatus.UNREACHABLE,
                f"{error}; group '{group}' is deleted in part",
                hints=["repeat the command to delete the rest"],
                code="REGISTRY_UNREACHABLE",
                details={"groups": [group]},
            ) from error
        except CoordinationError:
            check_inactive(session, group, advice=advice)
            raise

"""The way from a command's options to groups: registry, brokers, and what all commands tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pylogctl.cli.connections import connector, open_registry
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.failures import Done, raise_failures
from pylogctl.cli.units import format_size, parse_size
from pylogctl.group.lag import GroupObserver, GroupStanding
from pylogctl.group.snapshot import GroupSnapshot, require_group


class Limit(NamedTuple):
    """A lag that is too much: in bytes, or in messages."""

    amount: int
    in_messages: bool

    @property
    def text(self) -> str:
        """Return it for people."""
        return lag_text(self.amount, in_messages=self.in_messages)


def parse_limit(text: str) -> Limit:
    """Return the meaning of a limit on lag.

    Args:
        text: a size with a unit, such as `64MiB` or `100B`, or a bare number of messages.

    Raises:
        UsageError: it is neither.
    """
    if re.fullmatch(r"\d+", text):
        return Limit(int(text), in_messages=True)
    try:
        return Limit(parse_size(text), in_messages=False)
    except UsageError as error:
        raise UsageError(
            f"not a limit of lag: '{text}'",
            hints=["valid: 64MiB, 500B, or 1000 (a bare number is messages)"],
        ) from error


def lag_text(amount: int, *, in_messages: bool) -> str:
    """Return a lag for people."""
    return counted(amount, "message") if in_messages else format_size(amount)


def counted(number: int, noun: str) -> str:
    """Return a number with a noun in the singular or plural."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@contextmanager
def open_observer(env: Environment, *groups: str, window_ms: int = 0) -> Iterator[GroupObserver]:
    """Open the way to groups that must exist.

    Args:
        env: says where the registry is.
        groups: their names.
        window_ms: for how long what was seen is remembered.

    Raises:
        CliError: there is no such group.
        RegistryUnreachableError: the registry does not answer.
    """
    connect = connector(env)
    with open_registry(env) as registry:
        for group in groups:
            require_group(registry.session, group)
        yield GroupObserver(registry, connect, env.clock, window_ms)


def warn_of_offsets(env: Environment, snapshot: GroupSnapshot) -> None:
    """Tell of stored offsets that are no numbers, and of nodes that are no partitions."""
    for partition, stored in snapshot.offsets.items():
        if stored.offset is None:
            env.warn(f"{partition}: the stored offset is no number: {stored.text!r}")
    for path in snapshot.strays:
        env.warn(f"{path} is not named after a partition")


def check_brokers(env: Environment, standings: Sequence[GroupStanding]) -> None:
    """End the command as partly done if brokers did not answer.

    Raises:
        CliError: some did not.
    """
    failures = [error for one in standings for error in one.failures]
    homes = {home for one in standings for home in one.homes}
    raise_failures(
        env, Done(list({str(one): one for one in failures}.values()), len(homes), "brokers")
    )

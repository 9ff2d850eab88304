"""`pylogctl acl`: the options of its commands."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.declarations import argument, flag, option
from pylogctl.cli.environment import Environment, ExitStatus
from pylogctl.cli.options import CHANGE, CLUSTER, OUTPUT, App

app = App()

_READS = (ExitStatus.NOT_FOUND,)
_Host = Annotated[str, option("--host ADDRESS", "The IP address of the client; * is each.")]


@app.command(OUTPUT + CLUSTER + CHANGE, exits=(*_READS, ExitStatus.CONFLICT))
def add(
    env: Environment,
    principal: str = argument("USER", "User:NAME; User:* is everybody."),
    operations: str = argument(
        "OPERATION[,...]", "read, write, create, delete, alter, describe or all."
    ),
    resource: str = argument(
        "RESOURCE",
        "topic:NAME, group:NAME, schema:SUBJECT, each also with PREFIX* as its name, or cluster.",
    ),
    deny: bool = flag("--deny", "Forbid it; that wins over all rules that allow it."),
    host: _Host = "*",
) -> None:
    """Allow a user to do something, and wait until all brokers judge by it.

    Who may read, write, delete or alter a topic may describe it, too. What no rule allows is
    forbidden, except to super users (the brokers' setting super.users).

    $ pylogctl acl add User:alice read,write topic:orders
    $ pylogctl acl add User:shipper write,create 'topic:web-*'
    $ pylogctl acl add User:mallory all 'topic:*' --deny
    $ pylogctl acl add User:ops describe cluster --host 10.1.2.3
    """
    from pylogctl.acl import work

    rules = work.parse_rules(principal, operations, resource, is_allowed=not deny, host=host)
    work.add(env, rules)


@app.command(OUTPUT + CLUSTER + CHANGE, exits=(*_READS, ExitStatus.CONFLICT))
def remove(
    env: Environment,
    numbers: list[int] = argument("RULE...", "Rules, by their numbers in `acl list`."),
) -> None:
    """Remove rules, and wait until all brokers judge without them.

    $ pylogctl acl remove 7
    $ pylogctl acl remove 3 4 --dry-run
    """
    from pylogctl.acl import work

    work.remove(env, numbers)


@app.command(OUTPUT + CLUSTER, exits=_READS)
def list_(
    env: Environment,
    principal: str | None = argument(
        "[USER]", "Only the rules for this user: also those for everybody.", default=None
    ),
) -> None:
    """List the rules.

    $ pylogctl acl list
    $ pylogctl acl list User:alice
    """
    from pylogctl.acl import work

    work.show(env, principal)


@app.command(OUTPUT + CLUSTER, exits=_READS)
def check(
    env: Environment,
    principal: str = argument("USER", "User:NAME."),
    operation: str = argument("OPERATION", "read, write, create, delete, alter or describe."),
    resource: str = argument("RESOURCE", "topic:NAME, group:NAME, schema:SUBJECT or cluster."),
    host: _Host = "*",
) -> None:
    """Say whether a user may do something, and which rule decides it; status 15 if not.

    Rules that match and lose are shown, too, and if none matches, those that differ in one thing.

    $ pylogctl acl check User:alice read topic:orders
    $ pylogctl acl check User:ops describe cluster --host 10.1.2.3
    """
    from pylogctl.acl import work

    question = work.parse_question(principal, operation, resource, host)
    work.check(env, question)

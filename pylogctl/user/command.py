"""`pylogctl user`: the options of its commands."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.declarations import argument
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.cli.options import CHANGE, DRY_RUN, OUTPUT, REGISTRY, TIMEOUT, TLS, App
from pylogctl.user.options import PasswordSource, QuotaOptions

app = App()

_Name = Annotated[str, argument("USER", "Name.")]


@app.command(REGISTRY + TLS + TIMEOUT + DRY_RUN, exits=(ExitStatus.CONFLICT,))
def add(env: Environment, user: _Name, source: PasswordSource) -> None:
    """Add a user, who logs in at brokers with a password, and wait until they know it.

    Without an option it is asked for. ZooKeeper keeps what checks it (SCRAM-SHA-256, as Kafka does)
    and not the password; guesses at a password that was chosen are slowed by 100,000 iterations.

    $ pylogctl user add alice
    $ pylogctl user add billing --generate > billing.password
    $ pass show kafka/alice | pylogctl user add alice --password-fd 0
    """
    from pylogctl.user.changes import add_user

    add_user(env, user, source)


@app.command(OUTPUT + REGISTRY + TIMEOUT)
def list_(env: Environment) -> None:
    """List the users; passwords and what checks them are not shown.

    $ pylogctl user list
    """
    from pylogctl.user.changes import show_users

    show_users(env)


@app.command(REGISTRY + TLS + TIMEOUT + DRY_RUN, exits=(ExitStatus.NOT_FOUND,))
def password(env: Environment, user: _Name, source: PasswordSource) -> None:
    """Give a user another password; the one of before is not accepted any more.

    Connections that the user has open stay; `user remove` ends them.

    $ pylogctl user password alice
    $ pylogctl user password billing --generate
    """
    from pylogctl.user.changes import change_password

    change_password(env, user, source)


@app.command(OUTPUT + REGISTRY + TIMEOUT + DRY_RUN)
def quota(
    env: Environment,
    user: str | None = argument("[USER]", "Name, or <default> for all others.", default=None),
    *,
    quotas: QuotaOptions,
) -> None:
    """Show quotas, or set what a user may use of each broker.

    Who exceeds a quota is answered, then has to wait; a login on one connection too many is
    refused. A value of none lifts the limit, default removes it so that the one of <default>, or of
    the broker, holds. Brokers apply a change within a second.

    $ pylogctl user quota
    $ pylogctl user quota billing --bytes-in 10MiB/s --work 50
    $ pylogctl user quota '<default>' --bytes-out 100MiB/s
    $ pylogctl user quota billing --bytes-in default --connections 20
    """
    from pylogctl.user import changes

    wanted = changes.parse_quotas(quotas)
    if wanted and user is None:
        raise UsageError("USER is missing", "'<default>' is for all others")
    if wanted and user is not None:
        changes.change_quotas(env, user, wanted)
    else:
        changes.show_quotas(env, user)


@app.command(REGISTRY + TLS + TIMEOUT + CHANGE, exits=(ExitStatus.NOT_FOUND,))
def remove(env: Environment, users: list[str] = argument("USER...", "Names.")) -> None:
    """Remove users, and wait until brokers know it: their connections end within seconds.

    $ pylogctl user remove alice
    $ pylogctl user remove alice bob --yes
    """
    from pylogctl.user.changes import remove_users

    remove_users(env, users)

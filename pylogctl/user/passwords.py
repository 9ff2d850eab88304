"""Where a new password comes from; never from the command line, which all processes can read."""

from __future__ import annotations

import getpass
import secrets
from pathlib import Path
from typing import NamedTuple

from broker.properties import Secret
from broker.security.users import CHOSEN_ITERATIONS, GENERATED_ITERATIONS
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.security import password_in_descriptor, password_in_file

_RANDOM_BYTES = 18  # 24 characters


class NewPassword(NamedTuple):
    """A password, and how slow a guess of it has to be."""

    password: Secret
    iterations: int

    @property
    def is_generated(self) -> bool:
        """Whether nobody knows it yet."""
        return self.iterations == GENERATED_ITERATIONS


def new_password(
    env: Environment, user: str, *, file: Path | None, descriptor: int | None, generates: bool
) -> NewPassword:
    """Return the password of an option, a generated one, or the one typed at the terminal."""
    if (file is not None) + (descriptor is not None) + generates > 1:
        raise UsageError("give one of --password-file, --password-fd and --generate")
    if generates:
        return _generated()
    if file is not None:
        text = password_in_file(file)
    elif descriptor is not None:
        text = password_in_descriptor(descriptor)
    elif not env.can_ask:
        raise UsageError(
            f"no terminal to ask for the password of '{user}' at",
            hints=["give --generate, --password-file FILE or --password-fd N"],
        )
    else:
        text = getpass.getpass(f"new password of '{user}' (empty: generate one): ")
        if not text:
            return _generated()
        if getpass.getpass("the same again: ") != text:
            raise UsageError("the passwords differ; nothing changed")
    return NewPassword(Secret(text), CHOSEN_ITERATIONS)


def _generated() -> NewPassword:
    return NewPassword(Secret(secrets.token_urlsafe(_RANDOM_BYTES)), GENERATED_ITERATIONS)

"""The options of `pylogctl user` that the work of its commands gets as one value."""

from __future__ import annotations

from pathlib import Path

from pylogctl.cli.declarations import Choice, flag, option


class PasswordSource(Choice):
    """Where a new password is from; without any it is typed at the terminal."""

    new_file: Path | None = option(
        "--password-file FILE",
        "Take the first line of a file as the password.",
        exists=True,
        dir_okay=False,
    )
    new_descriptor: int | None = option(
        "--password-fd N", "Read the password from an open descriptor; 0 is stdin.", min=0
    )
    generate: bool = flag("--generate", "Make a password, and write it to stdout, once.")


class QuotaOptions(Choice):
    """Quotas to be set; None for one that stays as it is."""

    bytes_in: str | None = option("--bytes-in RATE", "Most bytes a second from the user.")
    bytes_out: str | None = option("--bytes-out RATE", "Most bytes a second to the user.")
    work: str | None = option("--work PERCENT", "Most work for the user, of one thread's time.")
    connections: str | None = option("--connections N", "Most connections of the user at a time.")

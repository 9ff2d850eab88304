"""The options of `pylogctl web`."""

from __future__ import annotations

from pathlib import Path

from pylogctl.cli.declarations import Choice, flag, option


class WebChoice(Choice):
    """Where to serve, whom, and what is allowed."""

    listen: str = option("--listen HOST:PORT", "Port 0 picks a free one.", default="127.0.0.1:8080")
    public_host: list[str] | None = option(
        "--public-host HOST[:PORT]",
        "Name by which browsers reach it, besides that of --listen, as through a proxy "
        "(repeatable).",
    )
    token_file: Path | None = option(
        "--token-file FILE",
        "Token that clients have to give, at least 16 characters; by default a new one, in the "
        "address that is printed. Environment: PYLOGCTL_WEB_TOKEN, the token itself.",
    )
    no_token: bool = flag(
        "--no-token", "Serve all who reach it; on loopback only, as behind a proxy."
    )
    allow_changes: bool = flag(
        "--allow-changes", "Let clients change topics and groups, and produce."
    )
    hide_messages: bool = flag("--hide-messages", "Show nobody what is in messages.")

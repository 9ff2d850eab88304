"""`pylogctl web`: serve a JSON API and pages over a cluster."""

from __future__ import annotations

from pathlib import Path

from pylogctl.cli.declarations import Choice, flag, option
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.options import CONNECTION, SUMMARY, App

app = App()


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


@app.command(SUMMARY + CONNECTION, exits=(ExitStatus.CONFLICT, ExitStatus.CONFIG))
def web(env: Environment, choice: WebChoice) -> None:
    """Serve a JSON API and pages over a cluster.

    Reads only, unless changes are allowed; ends with a signal. The API is below /api/v1;
    /api/v1/openapi.json describes it. Prints one line once it is ready, with the address to open.

    $ pylogctl web
    $ pylogctl web --listen 127.0.0.1:0 --allow-changes --broker localhost:9092
    $ pylogctl web --listen 0.0.0.0:8080 --token-file token --public-host logs.example.com
    """
    try:
        import jinja2  # noqa: F401 - whether the extra is there
        import msgspec  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise CliError(
            ExitStatus.CONFIG, f"{error.name} is not installed", "try: pip install 'pylogctl[web]'"
        ) from error
    from pylogctl.web.run import run

    run(env, choice)

"""`pylogctl web`: serve a JSON API and pages over a cluster."""

from __future__ import annotations

from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.options import CONNECTION, SUMMARY, App
from pylogctl.web.options import WebChoice

app = App()


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

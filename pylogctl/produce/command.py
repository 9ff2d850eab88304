"""`pylogctl produce`: messages from standard input or files to a topic."""

from __future__ import annotations

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import argument
from pylogctl.cli.environment import Environment, ExitStatus
from pylogctl.produce.options import ProduceOptions

app = shared.App()


@app.command(
    shared.SUMMARY + shared.CONNECTION + shared.PROPERTIES + shared.PROGRESS + shared.DRY_RUN,
    exits=(*shared.MESSAGE_EXITS, ExitStatus.CONFLICT),
    first="-p -K -z -n --jsonl -L --whole --rate --verify --receipt",
    dumps_properties=True,
)
def produce(
    env: Environment,
    *,
    topic: str = argument("TOPIC", "Topic to write to."),
    options: ProduceOptions,
    files: list[str] | None = argument(
        "[FILE]...", "Input, in order; - is stdin. Default: stdin.", default=None
    ),
) -> int:
    r"""Write messages from stdin or files to a topic.

    Each line is a message, byte for byte, unless a framing says otherwise. Status 0 means that
    consumers can read all of it.

    $ printf 'a\nb\nc\n' | pylogctl produce t
    $ journalctl -f | pylogctl produce syslog --rate 5000/s
    $ pylogctl consume bin --from-beginning -e -L | pylogctl produce bin-copy -L
    $ pylogctl produce logs --verify --output json access.log error.log
    $ pylogctl produce orders --audit audit --time-field .ts < orders.jsonl
    """
    from pylogctl.produce.plan import make_plan
    from pylogctl.produce.run import run

    return run(env, make_plan(env, topic, files or (), options))

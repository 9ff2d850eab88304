"""`pylogctl consume`: messages of topics to standard output."""

from __future__ import annotations

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import argument
from pylogctl.cli.environment import Environment
from pylogctl.consume.options import WAIT, ConsumeOptions

app = shared.App()


@app.command(
    shared.CONNECTION + shared.PROPERTIES + shared.PROGRESS,
    exits=shared.MESSAGE_EXITS,
    first="-o --from-beginning -n -e -g -p --grep --jsonl -F --exec",
    optional={"--wait-for-topic": WAIT},
    dumps_properties=True,
)
def consume(
    env: Environment,
    options: ConsumeOptions,
    topics: list[str] | None = argument("[TOPIC]...", "Topics to read.", default=None),
) -> int:
    r"""Read messages of topics to stdout.

    With --group several consumers share the topics: each partition is assigned to one of them.
    Offsets of written messages are committed, so that the next run continues there.

    With --exec nothing is written: a command gets each payload, and only messages that it handled,
    or that are kept in --retry-dir, are committed.

    Runs until interrupted unless an end is given. Payloads are written as they are, byte for byte;
    on a terminal control characters are shown as escapes, unless --raw is given.

    $ pylogctl consume syslog --from-beginning
    $ pylogctl consume syslog -o @-10m:end --grep 'oom|segfault' -F '%t[%p] %o %s\n'
    $ pylogctl consume syslog --from-beginning --grep oom --grep-at broker
    $ pylogctl consume --group g --from-beginning
    $ pylogctl consume bin --from-beginning -e -L | pylogctl produce bin-copy -L
    $ pylogctl consume t --from-beginning -e --jsonl | jq -r .payload | sort | uniq -c
    $ pylogctl consume orders --group billing --exec 'bill --at {offset}' --retry-dir failed
    """
    from pylogctl.consume.plan import make_request
    from pylogctl.consume.run import run

    return run(make_request(env, topics or (), options))

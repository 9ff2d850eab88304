"""`pylogctl copy`: the messages of a topic to another one, byte for byte."""

from __future__ import annotations

from pylogctl.cli.context import at_cluster
from pylogctl.cli.declarations import argument
from pylogctl.cli.environment import Environment, ExitStatus
from pylogctl.cli.options import CONNECTION, DRY_RUN, PROGRESS, SUMMARY, App, FromOption, ToOption
from pylogctl.copy.options import CopyChoice

app = App()


@app.command(
    SUMMARY + CONNECTION + PROGRESS + DRY_RUN,
    first="-o -n --from --to --verify --schemas --keep-partition --rate",
    exits=(
        *(ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.PARTIAL),
        *(ExitStatus.CORRUPT, ExitStatus.UNSUPPORTED),
    ),
)
def copy(
    env: Environment,
    source: str = argument("SRC", "Topic to read."),
    target: str = argument("DST", "Topic to write to."),
    *,
    choice: CopyChoice,
    from_cluster: FromOption = None,
    to_cluster: ToOption = None,
) -> int:
    """Copy messages from topic to topic.

    The target may be in another cluster. Payloads are copied byte for byte, compressed sets as
    they are, and the messages of a partition keep their order. What arrives while the copy runs is
    left alone. Status 0 means that consumers can read all of it.

    $ pylogctl copy orders orders-backup --verify
    $ pylogctl copy orders orders -o @-1h --from zk1:2181 --to zk2:2181
    $ pylogctl copy orders test -n 1000 --to brokers=localhost:9092
    """
    from pylogctl.copy.run import run

    sides = at_cluster(env, from_cluster), at_cluster(env, to_cluster)
    return run(env, *sides, source, target, choice)

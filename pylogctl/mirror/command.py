"""`pylogctl mirror`: keep a copy of topics in another cluster, and check it."""

from __future__ import annotations

from pylogctl.cli import options as shared
from pylogctl.cli.context import at_cluster
from pylogctl.cli.environment import Environment, ExitStatus
from pylogctl.mirror.options import RunChoice, StatusChoice, VerifyChoice

app = shared.App()

_PLAN = (shared.SUMMARY[0], *shared.OUTPUT[1:])


@app.command(
    _PLAN + shared.REGISTRY + shared.SECURITY + shared.PROPERTIES + shared.TIMEOUT + shared.CHANGE,
    exits=(ExitStatus.PARTIAL, ExitStatus.CONFIG, ExitStatus.CONFLICT, ExitStatus.CORRUPT),
    first="--from --to --include --exclude --topic-map -g --metrics-port",
)
def run(
    env: Environment,
    *,
    choice: RunChoice,
    from_cluster: shared.FromOption = None,
    to_cluster: shared.ToOption = None,
) -> int:
    r"""Mirror topics until stopped by a signal.

    Message sets are copied unchanged, in the order of their partition. Offsets are committed in the
    source after the target has acknowledged, so that no message is lost when a mirror is killed.
    Several mirrors of one group share the partitions. With --dry-run it shows which topics would be
    mirrored, and the names of their target topics.

    $ pylogctl mirror run --from zk1:2181 --to zk2:2181 --dry-run
    $ pylogctl mirror run --from zk1:2181 --to zk2:2181 --yes
    $ pylogctl mirror run --from zk1:2181 --to brokers=b2:9092 --include 'app\..*' --topic-map \
        's/^/dc1./' --yes
    """
    from pylogctl.mirror.run import run as run_mirror

    source_env = at_cluster(env, from_cluster, takes_brokers=False)
    target_env = at_cluster(env, to_cluster)
    return run_mirror(env, source_env, target_env, choice)


@app.command(
    shared.OUTPUT + shared.CLUSTER,
    exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND, ExitStatus.THRESHOLD),
)
def status(
    env: Environment, *, choice: StatusChoice, from_cluster: shared.FromOption = None
) -> None:
    """Show the lag of a mirror, by the offsets committed in the source.

    Of the topics that the group consumes or has offsets of; with --include, of all that match.
    The last error of each topic is shown too, also of a mirror that has ended.

    $ pylogctl mirror status --from zk1:2181
    $ pylogctl mirror status --from zk1:2181 --interval 10s
    $ pylogctl mirror status --from zk1:2181 --fail-above 64MiB
    """
    from pylogctl.mirror.plan import show_status

    show_status(env, at_cluster(env, from_cluster, takes_brokers=False), choice)


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROGRESS,
    exits=(ExitStatus.PARTIAL, ExitStatus.CONFIG, ExitStatus.NOT_FOUND, ExitStatus.CORRUPT),
)
def verify(
    env: Environment,
    *,
    choice: VerifyChoice,
    from_cluster: shared.FromOption = None,
    to_cluster: shared.ToOption = None,
) -> None:
    """Compare topics with their mirrors, by CRC and length of every message.

    The order and the partitions of messages are ignored. Status 8 means that the target lacks
    messages of the source.

    $ pylogctl mirror verify --from zk1:2181 --to zk2:2181
    $ pylogctl mirror verify --from brokers=b1:9092 --to brokers=b2:9092 -o @-1d
    """
    from pylogctl.mirror.verify import verify as verify_topics

    verify_topics(env, choice, at_cluster(env, from_cluster), at_cluster(env, to_cluster))

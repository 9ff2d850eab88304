"""`pylogctl copy`: the messages of a topic to another one, byte for byte."""

from __future__ import annotations

import typer

from pylogctl.cli.context import at_cluster
from pylogctl.cli.declarations import argument, flag
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.options import (
    BROKERS,
    DRY_RUN,
    PROGRESS,
    REGISTRY,
    SUMMARY,
    TIMEOUT,
    AllowMissingOption,
    FromOption,
    MaxMessagesOption,
    OnCorruptOption,
    RateOption,
    StrictOffsetOption,
    ToOption,
    VerifyOption,
    accepts,
    offset_option,
)
from pylogctl.cli.tree import Command, new_app

app = new_app()


@app.command("copy", cls=Command)
@accepts(
    SUMMARY + REGISTRY + BROKERS + TIMEOUT + PROGRESS + DRY_RUN,
    exits=(
        ExitStatus.NOT_FOUND,
        ExitStatus.PARTIAL,
        ExitStatus.TIMEOUT,
        ExitStatus.CORRUPT,
        ExitStatus.UNREACHABLE,
        ExitStatus.REMOTE,
        ExitStatus.UNSUPPORTED,
    ),
    examples=(
        "pylogctl copy orders orders-backup --verify",
        "pylogctl copy orders orders -o @-1h --from zk1:2181 --to zk2:2181",
        "pylogctl copy orders test -n 1000 --to brokers=localhost:9092",
    ),
)
def copy(
    env: Environment,
    source: str = argument("SRC", "Topic to read."),
    target: str = argument("DST", "Topic to write to."),
    offset: list[str] | None = offset_option(
        "What to copy, START or START:END; see pylogctl help offsets. Default: start:end."
    ),
    max_messages: MaxMessagesOption = None,
    keep_partition: bool = flag(
        "--keep-partition",
        "Selection",
        "To partitions of the same name (broker-partition), or not at all. Default: to those in "
        "the same place.",
    ),
    rate: RateOption = None,
    verify: VerifyOption = False,
    on_corrupt: OnCorruptOption = "stop",
    strict_offset: StrictOffsetOption = False,
    allow_missing: AllowMissingOption = False,
    from_cluster: FromOption = None,
    to_cluster: ToOption = None,
) -> None:
    """Copy messages from topic to topic.

    The target may be in another cluster. Payloads are copied byte for byte, compressed sets as
    they are, and the messages of a partition keep their order. What arrives while the copy runs is
    left alone. Status 0 means that consumers can read all of it.
    """
    from broker.units import parse_rate
    from pylogctl.cli.failures import OnCorrupt
    from pylogctl.cli.offsets import make_span
    from pylogctl.copy.run import CopyPlan, run

    status = run(
        env,
        at_cluster(env, from_cluster),
        at_cluster(env, to_cluster),
        CopyPlan(
            source,
            target,
            make_span(env, offset or [], from_beginning=False, exit_at_end=True),
            max_messages=max_messages,
            keeps_names=keep_partition,
            on_corrupt=OnCorrupt(on_corrupt),
            rate=None if rate is None else parse_rate(rate),
            is_verified=verify,
            is_strict=strict_offset,
            allow_missing=allow_missing,
        ),
    )
    if status:
        raise typer.Exit(status)

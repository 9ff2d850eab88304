"""`pylogctl metrics`: what Prometheus reads of groups."""

from __future__ import annotations

from broker.units import ListenAddress
from pylogctl.cli import options as shared
from pylogctl.cli.declarations import flag, option
from pylogctl.cli.environment import Environment, ExitStatus, UsageError

app = shared.App()


@app.command(shared.CLUSTER, exits=(ExitStatus.CONFIG, ExitStatus.CONFLICT))
def serve(
    env: Environment,
    port: ListenAddress | None = option(
        "--port [HOST:]PORT",
        "Where to serve, without HOST for this machine alone; 0 picks a free port.",
        default="9308",
    ),
    interval: float = option(
        "--interval DUR", "Time between two looks at groups and brokers.", default="15s"
    ),
    window: int = option(
        "--window DUR", "History that the status of a group is judged by.", default="5m"
    ),
    no_partitions: bool = flag("--no-partitions", "Leave out the series of single partitions."),
) -> None:
    """Serve lag and status of all groups, seen from outside, until stopped by a signal.

    Groups need not know of it, and may be of other makes: what they have committed is compared with
    the ends of the logs. ZooKeeper and brokers are asked once each --interval, however often it is
    scraped.

    $ pylogctl metrics serve
    $ pylogctl metrics serve --port 0.0.0.0:9308 --interval 30s --window 10m
    """
    from pylogctl.metrics.groups import serve_groups

    assert port is not None  # it has a default
    if interval <= 0:
        raise UsageError("--interval must be above zero")
    if window < 2000 * interval:
        raise UsageError(
            "--window must be two intervals at least, or nothing can be judged",
            f"--interval is {interval:g}s",
        )
    serve_groups(
        env, port, interval_s=interval, window_ms=window, with_partitions=not no_partitions
    )

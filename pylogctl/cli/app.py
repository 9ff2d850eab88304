"""The root of the command tree: the commands with their help, so that `--help` imports none."""

from __future__ import annotations

from typing import ClassVar, cast

import typer

from pylogctl.cli.tree import CONTEXT_SETTINGS, RootCommand, RootGroup

_HELP = "pylogctl.help.command"


class Pylogctl(RootGroup):
    """The commands of pylogctl, and aliases of some."""

    entries: ClassVar[dict[str, RootCommand]] = {
        "broker": RootCommand("pylogctl.broker.command", "Start, stop and look at brokers."),
        "produce": RootCommand(
            "pylogctl.produce.command", "Write messages from stdin or files to a topic."
        ),
        "consume": RootCommand("pylogctl.consume.command", "Read messages of topics to stdout."),
        "copy": RootCommand("pylogctl.copy.command", "Copy messages from topic to topic."),
        "cluster": RootCommand(
            "pylogctl.cluster.command",
            "Look at the brokers, leaders and replicas of a whole cluster.",
        ),
        "top": RootCommand("pylogctl.top.command", "Watch a cluster live."),
        "topic": RootCommand(
            "pylogctl.topic.command", "List, describe, create, delete, count and sample topics."
        ),
        "config": RootCommand(
            "pylogctl.config.command", "Change settings of topics and brokers while they run."
        ),
        "user": RootCommand(
            "pylogctl.user.command",
            "Add, list and remove users, and set their passwords and quotas.",
        ),
        "acl": RootCommand(
            "pylogctl.acl.command", "Say who may do what, and find out why somebody may not."
        ),
        "group": RootCommand("pylogctl.group.command", "Look at, move and repair consumer groups."),
        "retry": RootCommand(
            "pylogctl.consume.retry", "List and drain messages whose handling failed."
        ),
        "log": RootCommand(
            "pylogctl.log.command",
            "Look into segment files, verify, mend and replay them; move logs.",
        ),
        "mirror": RootCommand("pylogctl.mirror.command", "Mirror topics into another cluster."),
        "metrics": RootCommand(
            "pylogctl.metrics.command", "Serve the lag and status of groups to Prometheus."
        ),
        "audit": RootCommand("pylogctl.audit.command", "Compare message counts along a pipeline."),
        "pipeline": RootCommand(
            "pylogctl.pipeline.command", "Load, query, compare and verify topics on Spark."
        ),
        "perf": RootCommand("pylogctl.perf.command", "Measure throughput and latency."),
        "zk": RootCommand(
            "pylogctl.zk.command", "Look into ZooKeeper, change nodes, or start a server."
        ),
        "web": RootCommand("pylogctl.web.command", "Serve a JSON API and pages over a cluster."),
        "context": RootCommand(
            "pylogctl.context.command", "Name clusters, and choose the one that commands use."
        ),
        "doctor": RootCommand(
            "pylogctl.doctor.command", "Check that everything needed is in place."
        ),
        "completion": RootCommand(_HELP, "Print a shell completion script.", "completion_app"),
        "man": RootCommand(_HELP, "Show a manual page.", "man_app"),
        "help": RootCommand(_HELP, "Explain a command or a topic.", "help_app"),
        "version": RootCommand(_HELP, "Show versions of program and libraries.", "version_app"),
    }
    hidden_entries: ClassVar[dict[str, RootCommand]] = {
        "properties": RootCommand(_HELP, "Show properties.", "properties_app")
    }
    examples: ClassVar[tuple[str, ...]] = (
        "pylogctl broker start --ephemeral",
        "printf 'a\\nb\\nc\\n' | pylogctl produce t",
        "pylogctl consume t --from-beginning -n 3",
        "pylogctl topic list",
        "pylogctl group lag billing --fail-above 64MiB",
    )
    shortcuts: ClassVar[dict[str, tuple[str, ...]]] = {
        "topics": ("topic", "list"),
        "groups": ("group", "list"),
        "brokers": ("broker", "list"),
        "cat": ("consume",),
        "cp": ("copy",),
        "tail": ("consume", "--offset", "-10"),
    }


app = typer.Typer(
    cls=Pylogctl,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT_SETTINGS,
)


@app.callback()
def pylogctl() -> None:
    """A commit-log broker you can pipe into, and the tools to run it."""


def root() -> RootGroup:
    """Return the root command."""
    return cast(RootGroup, typer.main.get_command(app))

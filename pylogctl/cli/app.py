"""The root of the command tree: the commands with their help, so that `--help` imports none."""

from __future__ import annotations

from typing import ClassVar, cast

import typer

from pylogctl.cli.tree import CONTEXT_SETTINGS, RootGroup

_HELP = "pylogctl.help.command"


class Pylogctl(RootGroup):
    """The commands of pylogctl, and aliases of some."""

    entries: ClassVar[dict[str, str]] = {
        "broker": "Start, stop and look at brokers.",
        "produce": "Write messages from stdin or files to a topic.",
        "consume": "Read messages of topics to stdout.",
        "copy": "Copy messages from topic to topic.",
        "cluster": "Look at the brokers, leaders and replicas of a whole cluster.",
        "top": "Watch a cluster live.",
        "topic": "List, describe, create, delete, count and sample topics.",
        "config": "Change settings of topics and brokers while they run.",
        "schema": "Register, show, check and delete the schemas of messages.",
        "user": "Add, list and remove users, and set their passwords and quotas.",
        "acl": "Say who may do what, and find out why somebody may not.",
        "group": "Look at, move and repair consumer groups.",
        "retry": "List and drain messages whose handling failed.",
        "log": "Look into segment files, verify, mend and replay them; move logs.",
        "archive": "List archived segments, and restore them.",
        "mirror": "Mirror topics into another cluster.",
        "metrics": "Serve the lag and status of groups to Prometheus.",
        "audit": "Compare message counts along a pipeline.",
        "pipeline": "Load, query, compare and verify topics on Spark.",
        "perf": "Measure throughput and latency.",
        "zk": "Look into ZooKeeper, change nodes, or start a server.",
        "web": "Serve a JSON API and pages over a cluster.",
        "plugins": "List plug-ins: partitioners, encoders, decoders and others by name.",
        "context": "Name clusters, and choose the one that commands use.",
        "doctor": "Check that everything needed is in place.",
        "completion": "Print a shell completion script.",
        "man": "Show a manual page.",
        "help": "Explain a command or a topic.",
        "version": "Show versions of program and libraries.",
    }
    homes: ClassVar[dict[str, str]] = {
        "retry": "pylogctl.consume.retry",
        **dict.fromkeys(("completion", "man", "help", "version", "properties"), _HELP),
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

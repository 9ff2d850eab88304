"""`pylogctl plugins`: the options of its commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pylogctl.cli.columns import Document, Fit, Rank, Row, Text
from pylogctl.cli.environment import Environment
from pylogctl.cli.options import OUTPUT, App
from pylogctl.cli.render import render

app = App()


class PluginRow(Row):
    """A name that a setting or option takes."""

    kind: Annotated[str, "what it is, such as a partitioner", Fit.WHOLE]
    name: Annotated[str, "what settings and options call it", Fit.WHOLE]
    package: Annotated[str, "package that it comes from, with its version"]
    target: Annotated[Text, "object that it names; null of pylogctl's own", Rank(1)]
    loads: Annotated[bool, "whether it can be imported and is of its kind"]
    problem: Annotated[Text, "why not", Fit.WRAP]


PLUGINS = Document("plugins.list/1", PluginRow, empty="no plug-ins")


@app.command(OUTPUT)
def list_(env: Environment) -> None:
    """List the names that settings and options take for plug-ins, and whether they load.

    These are pylogctl's own and the entry points of the group pylogctl.plugins in all installed
    packages, which are imported for it. Any other plug-in is named as module:name.

    $ pylogctl plugins list
    $ pylogctl plugins list --output json
    """
    render(env, PLUGINS, list(_rows()))


def _rows() -> Iterator[PluginRow]:
    from broker import __version__, plugins
    from broker.config import CLEANUP_POLICIES
    from broker.producer.named import ENCODERS
    from broker.producer.partitioner import PARTITIONERS
    from pylogctl.format.message_format import PRESETS

    own = {
        plugins.PARTITIONER: PARTITIONERS,
        plugins.ENCODER: [one for one in ENCODERS if "." not in one],
        plugins.DECODER: ["auto"],
        plugins.WRITER: [one.removeprefix("@") for one in PRESETS],
        plugins.POLICY: CLEANUP_POLICIES,
    }
    found = list(plugins.installed())
    for kind in plugins.KINDS.values():
        for name in own.get(kind, ()):
            yield PluginRow(kind.name, name, f"pylogctl {__version__}", None, True, None)
        for one in found:
            if one.kind is kind:
                problem = plugins.problem_of(one)
                target = one.entry.value
                yield PluginRow(kind.name, one.name, one.package, target, problem is None, problem)

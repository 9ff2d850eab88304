"""The options that several commands share, declared once, and the decorator that adds them.

- Options of connection, output and safety are named in `@accepts(...)`; the command gets their
  values as one `Environment`. An option that it does not name is unknown to it, so that none is
  accepted and then ignored.
- Options of some commands are annotations: `partition: PartitionsOption = None`.
- Options that make up one value are an `OptionGroup`: `to: Annotated[ClusterChoice, TO_CLUSTER]`.
  `options_of` makes one of a dataclass, so that an option stands in one place.

`pylogctl.cli.tree` moves shared options written before the command behind it.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args, get_origin

import typer

from pylogctl.cli.context import (
    ASKS_FOR_PROPERTIES,
    Environment,
    LogFormat,
    OutputFormat,
    SharedOptions,
    Streams,
    When,
    parse_properties,
)
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.units import parse_duration_s

_CommandFunction = Callable[..., None]


class SharedOption(NamedTuple):
    """An option: its parameter in the signature that Typer reads."""

    name: str
    annotation: Any
    default: object


class OptionalValue(NamedTuple):
    """The value of an option that may be left out: its pattern, and the default."""

    pattern: str
    default: str


class OptionGroup(NamedTuple):
    """Options that become one value: `parameter: Annotated[Kind, group]`."""

    options: tuple[SharedOption, ...]
    make: Callable[..., Any]  # called with the values of the options by their names
    optional: Mapping[str, OptionalValue] = MappingProxyType({})  # as in `Facts`


class Facts(NamedTuple):
    """Facts of a command for man pages, completions and tests, beyond its parameters."""

    exits: tuple[ExitStatus, ...] = ()
    examples: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    # Options whose value may be left out, by each of their flags.
    optional: Mapping[str, OptionalValue] = MappingProxyType({})


def fill_optional(args: list[str], optional: Mapping[str, OptionalValue]) -> list[str]:
    """Insert the default after each option whose value was left out."""
    filled: list[str] = []
    for place, word in enumerate(args):
        if word == "--":
            return [*filled, *args[place:]]
        filled.append(word)
        if word in optional:
            following = args[place + 1] if place + 1 < len(args) else ""
            if not re.fullmatch(optional[word].pattern, following):
                filled.append(optional[word].default)
    return filled


def _print_version(wanted: bool) -> None:
    if wanted:
        from pylogctl import __version__

        typer.echo(f"pylogctl {__version__}")
        raise typer.Exit


def shared_option(name: str, kind: Any, default: object, *flags: str, **texts: Any) -> SharedOption:
    """Return an option; `texts` has its `panel`, its `help` and further arguments for Typer."""
    panel = texts.pop("panel")
    option = typer.Option(*flags, rich_help_panel=panel, show_default=False, **texts)
    return SharedOption(name, Annotated[kind, option], default)


GENERAL = (
    shared_option(
        "quiet",
        bool,
        False,
        "-q",
        "--quiet",
        panel="General",
        help="No notes or summaries on stderr; errors stay.",
    ),
    shared_option(
        "verbosity",
        int,
        0,
        "-v",
        "--verbose",
        panel="General",
        count=True,
        envvar="PYLOGCTL_VERBOSE",
        help="Report more: -v resolved values, -vv requests, -vvv bytes on the wire.",
    ),
    shared_option(
        "log_format",
        LogFormat,
        "text",
        "--log-format",
        panel="General",
        help="Format of notes, warnings and errors on stderr.",
    ),
    shared_option(
        "color",
        When,
        "auto",
        "--color",
        panel="General",
        envvar="PYLOGCTL_COLOR",
        help="Colour and bold text. Auto: on terminals only.",
    ),
    shared_option(
        "no_color", bool, False, "--no-color", panel="General", help="Same as --color never."
    ),
    shared_option(
        "debug",
        bool,
        False,
        "--debug",
        panel="General",
        envvar="PYLOGCTL_DEBUG",
        help="Show the traceback of an error.",
    ),
    shared_option(
        "version",
        bool,
        False,
        "--version",
        panel="General",
        is_eager=True,
        hidden=True,
        callback=_print_version,
        help="Show the version and exit.",
    ),
)
OUTPUT = (
    shared_option(
        "output",
        OutputFormat | None,
        None,
        "--output",
        panel="Output",
        metavar="FMT",
        envvar="PYLOGCTL_OUTPUT",
        help="Document format. Default: table on a terminal, plain in a pipe.",
    ),
    shared_option(
        "columns",
        str,
        "",
        "--columns",
        metavar="A,B",
        panel="Output",
        help="Choose and order columns; `help` lists them.",
    ),
    shared_option(
        "sort",
        str,
        "",
        "--sort",
        metavar="[-]COL",
        panel="Output",
        help="Sort by a column; - reverses.",
    ),
    shared_option(
        "no_header",
        bool,
        False,
        "--no-header",
        panel="Output",
        help="Leave out the header line of table, plain, csv and tsv.",
    ),
    shared_option(
        "raw_numbers",
        bool,
        False,
        "--raw-numbers",
        panel="Output",
        help="No unit scaling in tables.",
    ),
)
SUMMARY = (
    shared_option(
        "output",
        OutputFormat | None,
        None,
        "--output",
        panel="Output",
        metavar="FMT",
        envvar="PYLOGCTL_OUTPUT",
        help="Write the result to stdout in this format, instead of a line on stderr.",
    ),
)
REGISTRY = (
    shared_option(
        "zookeeper",
        str | None,
        None,
        "-Z",
        "--zookeeper",
        metavar="HOST:PORT[,..][/CHROOT]",
        panel="Connection",
        envvar="PYLOGCTL_ZOOKEEPER",
        help="ZooKeeper. Default: localhost:2181.",
    ),
)
BROKERS = (
    shared_option(
        "brokers",
        str | None,
        None,
        "-b",
        "--broker",
        metavar="HOST:PORT[,..]",
        panel="Connection",
        envvar="PYLOGCTL_BROKER",
        help="Brokers, one is enough to find a cluster's; ZooKeeper is not needed then. "
        "Default: from ZooKeeper.",
    ),
)
PROPERTIES = (
    shared_option(
        "properties",
        list[str] | None,
        None,
        "-X",
        metavar="KEY=VALUE",
        panel="Connection",
        help="Any client property (repeatable); `-X list` shows all, `-X dump` those in "
        "effect. Environment: PYLOGCTL_X, one a line.",
    ),
)
TIMEOUT = (
    shared_option(
        "timeout",
        str | None,
        None,
        "--timeout",
        metavar="DUR",
        panel="Connection",
        envvar="PYLOGCTL_TIMEOUT",
        help="Limit of the whole request. Default: 10s for requests, none for streams.",
    ),
)
PROGRESS = (
    shared_option(
        "progress",
        When,
        "auto",
        "--progress",
        panel="General",
        envvar="PYLOGCTL_PROGRESS",
        help="Progress on stderr. Auto: on terminals only.",
    ),
)
CONFIRM = (
    shared_option(
        "assume_yes", bool, False, "-y", "--yes", panel="Safety", help="Answer yes to questions."
    ),
    shared_option(
        "no_input",
        bool,
        False,
        "--no-input",
        panel="Safety",
        envvar="PYLOGCTL_NO_INPUT",
        help="Never ask; a needed question becomes exit status 5.",
    ),
)
DRY_RUN = (
    shared_option(
        "dry_run",
        bool,
        False,
        "--dry-run",
        panel="Safety",
        help="Check everything, change nothing, show what would be done.",
    ),
)
PAGER = (
    shared_option(
        "no_pager", bool, False, "--no-pager", panel="Output", help="Never start a pager."
    ),
)
CONNECTION = (*REGISTRY, *BROKERS, *TIMEOUT)

# Options of some commands. A command annotates a parameter with one of these, so that an option of
# one meaning has the same flags, help and panel everywhere.

PartitionsOption = Annotated[
    str | None,
    typer.Option(
        "-p",
        "--partition",
        metavar="LIST",
        rich_help_panel="Selection",
        help="Partitions: 0, 2-0, *-0, 0,1 or 0..3. Default: all.",
    ),
]
StrictOffsetOption = Annotated[
    bool,
    typer.Option(
        "--strict-offset",
        rich_help_panel="Selection",
        help="An offset out of range is an error, not moved.",
    ),
]
MaxMessagesOption = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--max-messages",
        metavar="N",
        min=0,
        rich_help_panel="Limits",
        help="Stop after exactly N messages.",
    ),
]
RateOption = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="R",
        rich_help_panel="Limits",
        help="No faster than this: 1000/s, 5MiB/s.",
    ),
]
ThrottleOption = Annotated[
    str | None,
    typer.Option(
        "--throttle",
        metavar="RATE",
        rich_help_panel="Limits",
        help="Most bytes that each broker copies: 50MB/s; none lifts it. Default: as it is.",
    ),
]
CodecOption = Annotated[
    Literal["none", "gzip", "snappy", "lz4", "zstd"] | None,
    typer.Option(
        "-z",
        "--codec",
        rich_help_panel="Output",
        help="Compression; 0.7 knows only gzip and snappy. Default: none.",
    ),
]
FetchSizeOption = Annotated[
    str | None,
    typer.Option(
        "--fetch-size",
        metavar="SIZE",
        rich_help_panel="Connection",
        help="Bytes per partition and request. Default: 1MiB.",
    ),
]
OnCorruptOption = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        "--on-corrupt",
        rich_help_panel="Limits",
        help="Stop at a corrupt message with status 8, or leave it out and end with 6.",
    ),
]
VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify",
        rich_help_panel="Output",
        help="Read everything back and compare CRCs; status 8 on a difference.",
    ),
]
ExecuteOption = Annotated[
    bool,
    typer.Option(
        "--execute", rich_help_panel="Safety", help="Do it; without this only the plan is shown."
    ),
]
MessageFormatOption = Annotated[
    str | None,
    typer.Option(
        "-F",
        "--format",
        metavar="STR",
        rich_help_panel="Output",
        help="Write messages in this format; see pylogctl-formats(7).",
    ),
]


def offset_option(text: str) -> Any:
    """Return the annotation of a list of `--offset` values."""
    return typer.Option("-o", "--offset", metavar="SPEC", rich_help_panel="Selection", help=text)


def confirm_option(text: str) -> Any:
    """Return the annotation of `--confirm`; see `confirmation.confirm_name`."""
    return typer.Option("--confirm", metavar="NAME", rich_help_panel="Safety", help=text)


class TopicPatterns(NamedTuple):
    """Regular expressions that select topics by their whole name; see `selection.topic_filter`."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


ALL_TOPICS = TopicPatterns()


def _make_topic_patterns(
    include: list[str] | None,
    exclude: list[str] | None,
    whitelist: list[str] | None = None,
    blacklist: list[str] | None = None,
) -> TopicPatterns:
    return TopicPatterns(
        (*(include or ()), *(whitelist or ())), (*(exclude or ()), *(blacklist or ()))
    )


def topic_patterns(include_help: str) -> OptionGroup:
    """Return `--include` and `--exclude`, whose value is a `TopicPatterns`."""
    texts = {
        "include": include_help,
        "exclude": "Leave out topics whose whole name matches (repeatable).",
    }
    return OptionGroup(
        tuple(
            shared_option(
                name,
                list[str] | None,
                None,
                f"--{name}",
                metavar="RE",
                panel="Selection",
                help=text,
            )
            for name, text in texts.items()
        ),
        _make_topic_patterns,
    )


TOPIC_PATTERNS = topic_patterns("Only topics whose whole name matches (repeatable). Default: all.")
TOPIC_PATTERNS_07 = OptionGroup(
    (
        *TOPIC_PATTERNS.options,
        *(
            shared_option(name, list[str] | None, None, f"--{name}", panel="Selection", hidden=True)
            for name in ("whitelist", "blacklist")
        ),
    ),
    _make_topic_patterns,
)
"""`TOPIC_PATTERNS`, and hidden options with the names that Kafka 0.7 gives them."""


class ClusterChoice(NamedTuple):
    """One of the two clusters of a command; without any value it is that of `-Z` and `-b`."""

    zookeeper: str | None = None
    brokers: str | None = None


SAME_CLUSTER = ClusterChoice()


def _cluster_group(side: str, verb: str, *, registry_only: bool = False) -> OptionGroup:
    zookeeper = shared_option(
        f"{side}_zookeeper",
        str | None,
        None,
        f"--{side}-zookeeper",
        metavar="HOST:PORT[,..][/CHROOT]",
        panel="Connection",
        help=f"ZooKeeper of the cluster to {verb}. Default: --zookeeper.",
    )
    brokers = shared_option(
        f"{side}_broker",
        str | None,
        None,
        f"--{side}-broker",
        metavar="HOST:PORT[,..]",
        panel="Connection",
        help=f"Brokers to {verb}, without ZooKeeper. Default: --broker.",
    )

    def make(**values: str | None) -> ClusterChoice:
        return ClusterChoice(values[zookeeper.name], values.get(brokers.name))

    return OptionGroup((zookeeper,) if registry_only else (zookeeper, brokers), make)


FROM_CLUSTER = _cluster_group("from", "read from")
FROM_REGISTRY = _cluster_group("from", "read from", registry_only=True)
TO_CLUSTER = _cluster_group("to", "write to")

EVERY_GROUP = (
    *GENERAL, *OUTPUT, *CONNECTION, *PROPERTIES, *PROGRESS, *CONFIRM, *DRY_RUN, *PAGER,
)  # fmt: skip


def takes_value() -> dict[str, bool]:
    """Return every flag of every shared option, and whether a value follows it."""
    spellings: dict[str, bool] = {}
    for option in EVERY_GROUP:
        kind, info = get_args(option.annotation)
        is_flag = kind is bool or info.count
        flags = [text for text in (info.default, *info.param_decls) if isinstance(text, str)]
        spellings.update(dict.fromkeys(flags, not is_flag))
    return spellings


def accepts(
    *options: SharedOption,
    exits: tuple[ExitStatus, ...] = (),
    examples: tuple[str, ...] = (),
    optional: Mapping[str, OptionalValue] | None = None,
    dumps_properties: bool = False,
) -> Callable[[_CommandFunction], _CommandFunction]:
    """Add shared options to a command; its first parameter is an `Environment` with their values.

    Typer sees one signature with them, the `GENERAL` options, the command's own, and those of its
    groups. `exits` are statuses beside OK, USAGE, BUG and signals. With `dumps_properties` the
    command handles `-X dump` itself, as it has more sources of settings.
    """
    asks = ASKS_FOR_PROPERTIES - {"dump"} if dumps_properties else ASKS_FOR_PROPERTIES
    shared = (*options, *GENERAL)

    def decorate(function: _CommandFunction) -> _CommandFunction:
        named = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        groups = _groups_of(named)
        own = [option for one in named for option in _expanded(one, groups)]

        # Keyword arguments come from the signature built below, never from a caller.
        @functools.wraps(function)
        def run(ctx: typer.Context, **values: Any) -> None:
            chosen = {option.name: values.pop(option.name) for option in shared}
            streams = ctx.obj if isinstance(ctx.obj, Streams) else Streams.of_process()
            env = Environment(streams, os.environ, settings_of(chosen))
            values = _with_groups(values, groups)
            if env.settings.properties:
                from pylogctl.cli.properties import validate_given  # late: few runs set any

                validate_given(env, ctx.command_path)
            if asks.isdisjoint(env.settings.properties):
                function(env, **values)
                if env.left_out:
                    raise typer.Exit(ExitStatus.PARTIAL)
            else:
                from pylogctl.cli.properties import show_properties

                show_properties(env, ctx.command_path)

        choices = _choices_of([*own, *map(_parameter, shared)])
        skippable = dict(optional or {})
        for group in groups.values():
            skippable.update(group.optional)
        facts = Facts(exits, examples, choices, skippable)
        run.facts = facts  # type: ignore[attr-defined]  # functions take attributes
        run.__signature__ = _signature(own, shared)  # type: ignore[attr-defined]  # as above
        return cast(_CommandFunction, run)

    return decorate


def _signature(own: list[inspect.Parameter], shared: tuple[SharedOption, ...]) -> inspect.Signature:
    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    return inspect.Signature([context, *keywords, *map(_parameter, shared)])


def options_of(kind: Callable[..., Any]) -> OptionGroup:
    """Return the options of a dataclass; its fields are annotated as parameters of a command."""
    named = list(inspect.signature(kind, eval_str=True).parameters.values())
    groups = _groups_of(named)
    fields = [option for one in named for option in _expanded(one, groups)]
    optional: dict[str, OptionalValue] = {}
    for group in groups.values():
        optional.update(group.optional)
    return OptionGroup(
        tuple(SharedOption(one.name, one.annotation, one.default) for one in fields),
        lambda **values: kind(**_with_groups(values, groups)),
        optional,
    )


def _groups_of(parameters: list[inspect.Parameter]) -> dict[str, OptionGroup]:
    return {
        parameter.name: note
        for parameter in parameters
        for note in get_args(parameter.annotation)[1:]
        if isinstance(note, OptionGroup)
    }


def _with_groups(values: Mapping[str, Any], groups: Mapping[str, OptionGroup]) -> dict[str, Any]:
    """Return the values of parameters, those of each group's options replaced by one value."""
    made = dict(values)
    for name, group in groups.items():
        made[name] = group.make(**{one.name: made.pop(one.name) for one in group.options})
    return made


def _expanded(
    parameter: inspect.Parameter, groups: Mapping[str, OptionGroup]
) -> list[inspect.Parameter]:
    """Return the options of a parameter's group, or the parameter itself."""
    group = groups.get(parameter.name)
    return [parameter] if group is None else [_parameter(one) for one in group.options]


def _parameter(option: SharedOption) -> inspect.Parameter:
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=option.annotation,
    )


def _choices_of(parameters: list[inspect.Parameter]) -> dict[str, tuple[str, ...]]:
    """Return the allowed words of each `Literal` parameter."""
    choices = {}
    for parameter in parameters:
        kind = parameter.annotation
        for part in (
            kind,
            *get_args(kind),
            *(get_args(get_args(kind)[0]) if get_args(kind) else ()),
        ):
            if get_origin(part) is Literal:
                choices[parameter.name] = tuple(str(word) for word in get_args(part))
    return choices


def settings_of(values: Mapping[str, Any]) -> SharedOptions:
    """Return the shared options as one value; a command has the values of some of them only."""
    timeout = values.get("timeout")
    return SharedOptions(
        zookeeper=values.get("zookeeper"),
        brokers=tuple(filter(None, (values.get("brokers") or "").split(","))),
        properties=parse_properties(values["properties"]) if "properties" in values else {},
        output=values.get("output"),
        columns=tuple(filter(None, (values.get("columns") or "").split(","))),
        sort=values.get("sort") or "",
        header=not values.get("no_header"),
        raw_numbers=bool(values.get("raw_numbers")),
        timeout_s=None if timeout is None else parse_duration_s(timeout),
        color="never" if values.get("no_color") else values.get("color", "auto"),
        progress=values.get("progress", "auto"),
        quiet=bool(values.get("quiet")),
        verbosity=values.get("verbosity", 0),
        log_format=values.get("log_format", "text"),
        assume_yes=bool(values.get("assume_yes")),
        no_input=bool(values.get("no_input")),
        dry_run=bool(values.get("dry_run")),
        debug=bool(values.get("debug")),
        pager=not values.get("no_pager"),
    )

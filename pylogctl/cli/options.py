"""The options that several commands share, declared once, and the decorator that adds them.

Options of connection, output and safety are named in `@app.command(...)`; the command gets their
values as one `Environment`. An option that it does not name is unknown to it, so that none is
accepted and then ignored. `pylogctl.cli.declarations` has how a command declares its own.

`pylogctl.cli.tree` moves shared options written before the command behind it.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, get_args

import typer

from broker.partition_patterns import PartitionList
from broker.units import ListenAddress
from pylogctl import __version__
from pylogctl.cli import environment
from pylogctl.cli.confirmation import confirm_context
from pylogctl.cli.context import at_cluster, in_context, with_found_broker
from pylogctl.cli.declarations import (
    Choice,
    OptionalValue,
    OptionGroup,
    choices_of,
    connection,
    general,
    group_of,
    limits,
    option,
    outputs,
    parameters_of,
    safety,
    security,
    selection,
)
from pylogctl.cli.environment import Environment, ExitStatus, OutputFormat, SharedOptions, Streams
from pylogctl.cli.selection import TopicPatterns, split_patterns

_CommandFunction = Callable[..., int | None]


class Facts(NamedTuple):
    """Facts of a command for man pages, completions and tests, beyond its parameters."""

    exits: tuple[ExitStatus, ...] = ()
    examples: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    # Options whose value may be left out, by each of their flags.
    optional: Mapping[str, OptionalValue] = MappingProxyType({})
    changes: bool = False


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


def _print_version(wanted: bool) -> None:  # its result is the value of the option
    if wanted:
        typer.echo(f"pylogctl {__version__}")
        raise typer.Exit


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


# The names of shared options are those of `SharedOptions`.


class _General(Choice):
    quiet: bool = general.flag("-q, --quiet", "No notes or summaries on stderr; errors stay.")
    verbosity: int = general.option(
        "-v, --verbose",
        "Report more: -v resolved values, -vv requests, -vvv bytes on the wire.",
        default=0,
        count=True,
        envvar="PYLOGCTL_VERBOSE",
    )
    log_format: environment.LogFormat = general.option(
        "--log-format", "Format of notes, warnings and errors on stderr.", default="text"
    )
    color: environment.When = general.option(
        "--color",
        "Colour and bold text. Auto: on terminals only.",
        default="auto",
        envvar="PYLOGCTL_COLOR",
    )
    debug: bool = general.flag(
        "--debug", "Show the traceback of an error.", envvar="PYLOGCTL_DEBUG"
    )
    version: bool = general.flag(
        "--version",
        "Show the version and exit.",
        is_eager=True,
        hidden=True,
        callback=_print_version,
    )


_HELP_FIELDS: bool = outputs.flag(
    "--help-fields", "Show the fields of the documents with their types, and exit."
)


class _Output(Choice):
    output: OutputFormat | None = outputs.option(
        "--output FMT",
        "Document format. Default: table on a terminal, plain in a pipe.",
        envvar="PYLOGCTL_OUTPUT",
    )
    columns: Any = outputs.option(
        "--columns A,B", "Choose and order columns; `help` lists them.", parser=_words
    )
    sort: str = outputs.option("--sort [-]COL", "Sort by a column; - reverses.", default="")
    no_header: bool = outputs.flag(
        "--no-header", "Leave out the header line of table, plain, csv and tsv."
    )
    raw_numbers: bool = outputs.flag("--raw-numbers", "No unit scaling in tables.")
    wide: bool = outputs.flag("--wide", "All columns of tables, wider than the terminal or not.")
    help_fields: bool = _HELP_FIELDS


class _Summary(Choice):
    output: OutputFormat | None = outputs.option(
        "--output FMT",
        "Write the result to stdout in this format, instead of a line on stderr.",
        envvar="PYLOGCTL_OUTPUT",
    )
    help_fields: bool = _HELP_FIELDS


class _Confirm(Choice):
    assume_yes: bool = safety.flag("-y, --yes", "Answer yes to questions.")
    no_input: bool = safety.flag(
        "--no-input",
        "Never ask; a needed question becomes exit status 5.",
        envvar="PYLOGCTL_NO_INPUT",
    )


class _Others(Choice):
    zookeeper: str | None = connection.option(
        "-Z, --zookeeper HOST:PORT[,..][/CHROOT]",
        "ZooKeeper. Default: localhost:2181.",
        envvar="PYLOGCTL_ZOOKEEPER",
    )
    zk_credential: str | None = connection.option(
        "--zk-credential FILE",
        "File with a line user:password for ZooKeeper. Default: that of the embedded one.",
        envvar="PYLOGCTL_ZK_CREDENTIAL",
    )
    zk_tls_config: str | None = connection.option(
        "--zk-tls-config FILE",
        "File with zookeeper.ssl.* properties, for TLS with ZooKeeper.",
        envvar="PYLOGCTL_ZK_TLS_CONFIG",
    )
    brokers: Any = connection.option(
        "-b, --broker HOST:PORT[,..]",
        "Brokers, one is enough to find a cluster's; ZooKeeper is not needed then. Default: from "
        "ZooKeeper.",
        envvar="PYLOGCTL_BROKER",
        parser=_words,
    )
    context: str | None = connection.option(
        "-c, --context CONTEXT",
        "Cluster by its name; see `pylogctl context`. Default: the current context.",
        envvar="PYLOGCTL_CONTEXT",
    )
    properties: list[str] | None = connection.option(
        "-X KEY=VALUE",
        "Any client property (repeatable); `-X list` shows all, `-X dump` those in effect. "
        "Environment: PYLOGCTL_X, one a line.",
    )
    timeout_s: float | None = connection.option(
        "--timeout DUR",
        "Limit of the whole request. Default: 10s for requests, none for streams.",
        envvar="PYLOGCTL_TIMEOUT",
    )
    progress: environment.When = general.option(
        "--progress",
        "Progress on stderr. Auto: on terminals only.",
        default="auto",
        envvar="PYLOGCTL_PROGRESS",
    )
    dry_run: bool = safety.flag(
        "--dry-run", "Check everything, change nothing, show what would be done."
    )
    no_pager: bool = outputs.flag("--no-pager", "Never start a pager.")


class _Security(Choice):
    tls: bool = security.flag("--tls", "Speak TLS with brokers; implied by its files.")
    tls_ca: str | None = security.option(
        "--tls-ca FILE", "PEM file of the brokers' CA. Default: the system's CAs."
    )
    tls_cert: str | None = security.option(
        "--tls-cert FILE", "PEM file of the client's certificate, if brokers ask for it."
    )
    tls_key: str | None = security.option(
        "--tls-key FILE", "PEM file of its key. Default: that of the certificate."
    )
    user: str | None = security.option(
        "--user NAME", "Log in at brokers as this user. Password: PYLOGCTL_PASSWORD."
    )
    password_file: str | None = security.option(
        "--password-file FILE", "Read the password from the first line of a file."
    )
    password_fd: int | None = security.option(
        "--password-fd N", "Read the password from an open descriptor.", min=0
    )


GENERAL = _General.parameters()
OUTPUT = _Output.parameters()
SUMMARY = _Summary.parameters()
CONFIRM = _Confirm.parameters()
_ZOOKEEPER, _ZK_CREDENTIAL, _ZK_TLS, _BROKERS, CONTEXT, PROPERTIES, TIMEOUT, PROGRESS, *_REST = (
    (one,) for one in _Others.parameters()
)
DRY_RUN, PAGER = _REST
REGISTRY = (*_ZOOKEEPER, *_ZK_CREDENTIAL, *_ZK_TLS)
SECURITY = _Security.parameters()
TLS = SECURITY[:4]  # without a login
BROKERS = (*_BROKERS, *SECURITY)
CONNECTION = (*REGISTRY, *BROKERS, *TIMEOUT)
CLUSTER = REGISTRY + SECURITY + TIMEOUT  # a cluster that is found through ZooKeeper
CHANGE = CONFIRM + DRY_RUN

# Options of some commands. A command uses them as types of its parameters, so that an option of one
# meaning has the same flags, help and panel everywhere.

PartitionsOption = Annotated[
    PartitionList | None,
    selection.option("-p, --partition LIST", "Partitions: 0, 2-0, *-0, 0,1 or 0..3. Default: all."),
]
DeepOption = Annotated[
    bool,
    selection.option("--deep/--shallow", "Unfold compressed entries too (--deep, the default)."),
]
StrictOffsetOption = Annotated[
    bool, selection.option("--strict-offset", "An offset out of range is an error, not moved.")
]
AllowMissingOption = Annotated[
    bool,
    limits.flag(
        "--allow-missing",
        "Warn of partitions that cannot be read, and go on without them. Default: status 6.",
    ),
]
MaxMessagesOption = Annotated[
    int | None, limits.option("-n, --max-messages N", "Stop after exactly N messages.", min=0)
]
RateOption = Annotated[
    str | None, limits.option("--rate R", "No faster than this: 1000/s, 5MiB/s.")
]
ThrottleOption = Annotated[
    str | None,
    limits.option(
        "--throttle RATE",
        "Most bytes that each broker copies: 50MB/s; none lifts it. Default: as it is.",
    ),
]
CodecOption = Annotated[
    Literal["none", "gzip", "snappy", "lz4", "zstd"] | None,
    outputs.option("-z, --codec", "Compression; 0.7 knows only gzip and snappy. Default: none."),
]
OnCorruptOption = Annotated[
    Literal["stop", "skip"],
    limits.option(
        "--on-corrupt", "Stop at a corrupt message with status 8, or leave it out and end with 6."
    ),
]
SchemasOption = Annotated[
    bool,
    safety.flag(
        "--schemas",
        "Register the schemas of the topics in the target first, under the ids that messages have.",
    ),
]
MetricsPortOption = Annotated[
    ListenAddress | None,
    option(
        "--metrics-port [HOST:]PORT",
        "Serve metrics for Prometheus, without HOST for this machine alone; 0 picks a free port.",
    ),
]
VerifyOption = Annotated[
    bool,
    outputs.option("--verify", "Read everything back and compare CRCs; status 8 on a difference."),
]
ExecuteOption = Annotated[
    bool, safety.option("--execute", "Do it; without this only the plan is shown.")
]
MessageFormatOption = Annotated[
    str | None,
    outputs.option(
        "-F, --format STR",
        "Write messages in this format, or by a plug-in, @module:name; see pylogctl-formats(7).",
    ),
]
PayloadForm = Literal["utf8", "hex", "base64", "escape"]
PayloadOption = Annotated[PayloadForm, outputs.option("--payload", "How payloads are shown.")]


class DecodeChoice(Choice):
    """How payloads that have a schema are read."""

    decode: str | None = outputs.option(
        "--decode auto|NAME",
        "Make JSON of payloads by the schema whose id they start with; brokers have the schemas. "
        "NAME: text or JSON by a plug-in, such as module:name.",
    )
    reader: str | None = outputs.option(
        "--reader ID|latest",
        "With --decode: resolve values to this schema, or to the latest of the topic's subject.",
    )


NO_DECODE = DecodeChoice()


def offset_option(text: str) -> Any:
    """Declare `--offset` with this help."""
    return selection.option("-o, --offset SPEC", text)


def confirm_option(text: str) -> Any:
    """Declare `--confirm` with this help; see `confirmation.confirm_name`."""
    return safety.option("--confirm NAME", text)


ALL_TOPICS = TopicPatterns()


def _make_topic_patterns(
    include: list[str] | None,
    exclude: list[str] | None,
    whitelist: list[str] | None = None,
    blacklist: list[str] | None = None,
) -> TopicPatterns:
    return TopicPatterns(
        split_patterns((*(include or ()), *(whitelist or ()))),
        split_patterns((*(exclude or ()), *(blacklist or ()))),
    )


def topic_patterns(include_help: str) -> OptionGroup:
    """Return `--include` and `--exclude`, whose value is a `TopicPatterns`."""

    class _Patterns(Choice):
        include: list[str] | None = selection.option("--include RE[,..]", include_help)
        exclude: list[str] | None = selection.option(
            "--exclude RE[,..]", "Leave out topics whose whole name matches (repeatable)."
        )

    return OptionGroup(_Patterns.parameters(), _make_topic_patterns)


class _Patterns07(Choice):
    whitelist: list[str] | None = selection.option("--whitelist", hidden=True)
    blacklist: list[str] | None = selection.option("--blacklist", hidden=True)


TOPIC_PATTERNS = topic_patterns("Only topics whose whole name matches (repeatable). Default: all.")
TOPIC_PATTERNS_07 = OptionGroup(
    (*TOPIC_PATTERNS.options, *_Patterns07.parameters()), _make_topic_patterns
)
"""`TOPIC_PATTERNS`, and hidden options with the names that Kafka 0.7 gives them."""


_CLUSTERS = (
    "a context, HOST:PORT[,..][/CHROOT] of its ZooKeeper, or brokers=HOST:PORT[,..]. "
    "Default: that of -c, -Z or -b."
)
FromOption = Annotated[
    str | None, connection.option("--from CLUSTER", f"Cluster to read from: {_CLUSTERS}")
]
ToOption = Annotated[
    str | None, connection.option("--to CLUSTER", f"Cluster to write to: {_CLUSTERS}")
]
"""The two clusters of a command; that of `--context`, `-Z` or `-b` if one is not given."""

_ADDRESSES = frozenset(("zookeeper", "brokers"))
_EXITS = {  # statuses by the shared options of commands that may end with them
    "timeout_s": (ExitStatus.TIMEOUT, ExitStatus.UNREACHABLE, ExitStatus.REMOTE),
    "user": (ExitStatus.LOGIN, ExitStatus.NOT_ALLOWED),
}
MESSAGE_EXITS = (  # of commands that read or write messages until something ends them
    *(ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.PARTIAL),
    *(ExitStatus.CORRUPT, ExitStatus.UNSUPPORTED, ExitStatus.SIGPIPE),
)
EVERY_GROUP = (
    *GENERAL, *OUTPUT, *CONNECTION, *CONTEXT, *PROPERTIES, *PROGRESS, *CONFIRM, *DRY_RUN, *PAGER,
)  # fmt: skip


# --version is hidden, and that of a command has another meaning
SHARED_NAMES = frozenset({*(option.name for option in EVERY_GROUP), "help"}) - {"version"}


def takes_value() -> dict[str, bool]:
    """Return every flag of every shared option, and whether a value follows it."""
    spellings: dict[str, bool] = {}
    for one in EVERY_GROUP:
        kind, info = get_args(one.annotation)
        is_flag = kind is bool or info.count
        flags = [text for text in (info.default, *info.param_decls) if isinstance(text, str)]
        spellings.update(dict.fromkeys(flags, not is_flag))
    return spellings


@dataclass(frozen=True)
class App:
    """The commands of a module: those of a group, or some of the root that it is home of."""

    commands: dict[str, AcceptingCommand] = field(default_factory=dict)

    def command(
        self,
        options: tuple[inspect.Parameter, ...] = (),
        *,
        name: str = "",
        exits: tuple[ExitStatus, ...] = (),
        first: str = "",
        optional: Mapping[str, OptionalValue] | None = None,
        dumps_properties: bool = False,
        reports_failures: bool = False,
        changes: bool | None = None,
    ) -> Callable[[_CommandFunction], AcceptingCommand]:
        """Add a command with shared options; its function gets their values as an `Environment`.

        The docstring of the function is the help of the command, with examples at its end: lines
        that start with `$`, of which one that ends with a backslash continues in the next.

        Typer sees one signature with them, the `GENERAL` options, the command's own, and those of
        its groups. The function may return an exit status. `name` is that of the function if it is
        not given. `first` has the flags that help shows first, if the command has many. `exits` are
        statuses beside OK, USAGE, BUG, signals, and `_EXITS` of its options; with
        `reports_failures` these are part of its result. With `dumps_properties` the command handles
        `-X dump` itself, as it has more sources of settings. `changes` says whether it changes its
        cluster, or what it has instead, if that is not what its options say: those that do have
        `--yes` or `--dry-run`. Each takes `--yes`, asked or not, so that scripts need not know
        which ask.
        """
        names = {option.name for option in options}
        asks = "assume_yes" in names
        if changes is None:
            changes = asks or "dry_run" in names
        if not asks and (changes or "dry_run" in names):
            options = (*options, *CONFIRM)
        if asks or (changes and not names.isdisjoint(_ADDRESSES)):
            exits = (*exits, ExitStatus.DECLINED)

        own = ("dump",) if dumps_properties else ()

        def add(function: _CommandFunction) -> AcceptingCommand:
            made = AcceptingCommand(
                function,
                options,
                Facts(exits, (), tuple(first.split()), optional=optional or {}, changes=changes),
                asks=environment.ASKS_FOR_PROPERTIES.difference(own),
                reports_failures=reports_failures,
            )
            self.commands[name or function.__name__.strip("_").replace("_", "-")] = made
            return made

        return add


@dataclass(eq=False)
class AcceptingCommand:
    """A command function with shared options; see `App.command`.

    Its parameters are made when they are asked for, as most commands of a group are not called.
    """

    function: _CommandFunction
    options: tuple[inspect.Parameter, ...]
    declared: Facts
    asks: frozenset[str]
    reports_failures: bool

    def __post_init__(self) -> None:
        text, *examples = (inspect.getdoc(self.function) or "").split("\n$ ")
        self.__doc__ = text.rstrip()
        self.__name__ = self.function.__name__
        self.__annotations__: dict[str, Any] = {}  # Typer would evaluate the function's in vain
        self.examples = tuple(" ".join(re.split(r"\s*\\\n\s*", one.rstrip())) for one in examples)
        self._names = {option.name for option in self.options}
        self._has_context = not self._names.isdisjoint(_ADDRESSES)
        code = self.function.__code__
        own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        general = (one for one in GENERAL if one.name not in own)  # `schema show --version 2`
        self._shared = (*self.options, *(CONTEXT if self._has_context else ()), *general)

    @functools.cached_property
    def _own(self) -> OptionGroup:
        """The function's own options, which become the values of its parameters."""
        return group_of(parameters_of(self.function)[1:], dict)

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters as Typer reads them: the function's own options, and the shared ones."""
        context = inspect.Parameter(
            "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )
        return inspect.Signature([context, *self._own.options, *self._shared])

    @functools.cached_property
    def facts(self) -> Facts:
        """The facts that were declared, and those that follow from the options."""
        of_options = (
            ()
            if self.reports_failures
            else chain(*(_EXITS.get(option.name, ()) for option in self._shared))
        )
        return self.declared._replace(
            exits=(*self.declared.exits, *of_options),
            examples=self.examples,
            choices=choices_of((*self._own.options, *self._shared)),
            optional={**self.declared.optional, **self._own.optional},
        )

    # Keyword arguments come from the signature, never from a caller.
    def __call__(self, ctx: typer.Context, **values: Any) -> None:
        """Run the function with the values of all options."""
        chosen = {option.name: values.pop(option.name) for option in self._shared}
        streams = ctx.obj if isinstance(ctx.obj, Streams) else Streams.of_process()
        context = chosen.pop("context", None)
        given = _given(ctx, (option.name for option in self._shared))
        env = Environment(streams, os.environ, settings_of(chosen), given=given)
        if self._has_context:
            names_source = values.get("from_cluster") is not None
            takes_brokers = names_source or "brokers" in self._names
            env = in_context(env, context, takes_brokers=takes_brokers)
        if self._names >= _ADDRESSES:
            env = with_found_broker(env)
        changes_cluster = self._has_context and _changes_cluster(values, self.declared.changes)
        target = at_cluster(env, values.get("to_cluster"))
        values = self._own.make(**values)
        if env.settings.properties:
            from pylogctl.cli.properties import validate_given  # late: few runs set any

            validate_given(env, ctx.command_path)
        if env.settings.help_fields:
            from pylogctl.cli.fields import show_fields  # late: few runs ask for them

            show_fields(env, ctx.command_path)
        elif self.asks.isdisjoint(env.settings.properties):
            if changes_cluster:
                confirm_context(target, ctx.command_path)
            status = self.function(env, **values)
            if status or env.left_out:
                raise typer.Exit(status or ExitStatus.PARTIAL)
        else:
            from pylogctl.cli.properties import show_properties  # late: few runs ask

            show_properties(env, ctx.command_path)


def _given(ctx: Any, names: Iterable[str]) -> frozenset[str]:
    """Return the options that the command line has, not the environment or their defaults."""
    return frozenset(name for name in names if ctx.get_parameter_source(name).name == "COMMANDLINE")


def _changes_cluster(values: Mapping[str, Any], changes: bool) -> bool:
    """Return whether a run changes a cluster, given its own options; a plan only changes none."""
    return bool(values.get("to_topic")) or (changes and values.get("execute") is not False)


def settings_of(values: Mapping[str, Any]) -> SharedOptions:
    """Return the shared options as one value; a command has the values of some of them only."""
    named = {name: value for name, value in values.items() if value is not None}
    if "properties" in values:  # a command may also get those of the environment
        named["properties"] = environment.parse_properties(values["properties"])
    return SharedOptions(**named)

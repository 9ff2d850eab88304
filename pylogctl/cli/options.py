"""The options that several commands share, declared once, and the decorator that adds them.

- Options of connection, output and safety are named in `@accepts(...)`; the command gets their
  values as one `Environment`. An option that it does not name is unknown to it, so that none is
  accepted and then ignored.
- An option of one command is the default of a parameter:
  `topic: str | None = option("-t, --topic TOPIC", "Selection", "Only this topic.")`. The same may
  stand in a `Choice`; a parameter of that type then has the values of all its options.
- An option of several commands is a type: `partition: shared.PartitionsOption = None`.
- A value called DUR is parsed to seconds for the type `float`, to milliseconds for `int`; a SIZE is
  to bytes for `int`. A default is written as on the command line.
- An `OptionGroup` makes one value of options: `to: Annotated[ClusterChoice, TO_CLUSTER]`.

`pylogctl.cli.tree` moves shared options written before the command behind it.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    dataclass_transform,
    get_args,
    get_origin,
)

import typer

from broker.errors import ArgumentError
from broker.partition_patterns import PartitionList, parse_partition_list
from broker.units import (
    ListenAddress,
    parse_duration_ms,
    parse_duration_s,
    parse_listen_address,
    parse_size,
)
from pylogctl.cli.confirmation import confirm_context
from pylogctl.cli.context import at_cluster, in_context
from pylogctl.cli.environment import (
    ASKS_FOR_PROPERTIES,
    Environment,
    LogFormat,
    OutputFormat,
    SharedOptions,
    Streams,
    When,
    parse_properties,
)
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.selection import TopicPatterns

_CommandFunction = Callable[..., None]
_PARSERS: Mapping[tuple[str, object], Callable[[str], Any]] = {  # by value name and type
    ("DUR", float): parse_duration_s,
    ("DUR", int): parse_duration_ms,
    ("SIZE", int): parse_size,
    ("LIST", PartitionList): parse_partition_list,
    ("[HOST:]PORT", ListenAddress): parse_listen_address,
}


class Declaration(NamedTuple):
    """An option or argument for Typer, and its default: `...` if it is required."""

    info: Any
    default: object


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Choice:
    """The values of some options of a command; a field declares an option, or is such a value.

    The type checker takes it for a dataclass. It is none, as to make a class of those costs each
    start of a command 1 to 2 ms.
    """

    _declared: ClassVar[Mapping[str, object]] = {}

    def __init_subclass__(cls) -> None:
        own = {name: vars(cls).get(name, ...) for name in inspect.get_annotations(cls)}
        cls._declared = {**cls._declared, **own}
        for name, declared in own.items():
            if isinstance(declared, Declaration):
                setattr(cls, name, declared.default)

    def __init__(self, **values: Any) -> None:
        for name in self._declared:
            self.__dict__[name] = values[name] if name in values else getattr(type(self), name)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def changed(self, **values: Any) -> Self:
        """Return the same choice with other values."""
        return type(self)(**{**vars(self), **values})

    @classmethod
    def parameters(cls) -> tuple[inspect.Parameter, ...]:
        """Return the fields as the parameters of a function that declares the same options."""
        kinds: dict[str, Any] = {}
        for base in reversed(cls.__mro__[:-2]):  # without this class and `object`
            kinds.update(inspect.get_annotations(base, eval_str=True))
        return tuple(_parameter(name, kinds[name], value) for name, value in cls._declared.items())


class OptionalValue(NamedTuple):
    """The value of an option that may be left out: its pattern, and the default."""

    pattern: str
    default: str


class OptionGroup(NamedTuple):
    """Options that become one value: `parameter: Annotated[Kind, group]`."""

    options: tuple[inspect.Parameter, ...]
    make: Callable[..., Any]  # called with the values of the options by their names
    optional: Mapping[str, OptionalValue] = MappingProxyType({})  # as in `Facts`


class Facts(NamedTuple):
    """Facts of a command for man pages, completions and tests, beyond its parameters."""

    exits: tuple[ExitStatus, ...] = ()
    examples: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
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


def _print_version(wanted: bool) -> None:  # its result is the value of the option
    if wanted:
        from pylogctl import __version__

        typer.echo(f"pylogctl {__version__}")
        raise typer.Exit


def option(
    flags: str, panel: str, text: str | None = None, *, default: object = None, **more: Any
) -> Any:
    """Declare an option; after its flags stands the name of its value, if it takes one.

    `text` is its help, `more` has other arguments of `typer.Option`. A `default` of `...` makes the
    option required.
    """
    words = flags.split()
    metavar = None if words[-1].startswith("-") else words.pop()
    names = (word.rstrip(",") for word in words)
    return Declaration(
        typer.Option(*names, metavar=metavar, rich_help_panel=panel, help=text, **more), default
    )


def flag(flags: str, panel: str, text: str, **more: Any) -> Any:
    """Declare an option that takes no value, and is False if it is not given."""
    return option(flags, panel, text, default=False, **more)


def argument(name: str | None, text: str, *, default: object = ..., **more: Any) -> Any:
    """Declare an argument by the name that help shows; without a `default` it is required."""
    return Declaration(typer.Argument(metavar=name, help=text, **more), default)


def _option_parser(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser whose errors keep their hints; Typer would word a ValueError anew."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ArgumentError as error:
            raise UsageError(str(error), hints=error.hints) from error

    return parsed


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    """Return the parameter of an option as Typer reads it, with its declaration as annotation."""
    kind, *notes = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    for declared in (default, *notes):
        if isinstance(declared, Declaration):
            info = declared.info
            for part in (kind, *get_args(kind)):
                if info.parser is None and (parse := _PARSERS.get((info.metavar, part))):
                    info.parser = _option_parser(parse)
            annotation = Annotated[kind, info]
            if declared is default:
                default = declared.default
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=annotation,
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


# The names of shared options are those of `SharedOptions`.


class _General(Choice):
    quiet: bool = flag("-q, --quiet", "General", "No notes or summaries on stderr; errors stay.")
    verbosity: int = option(
        "-v, --verbose",
        "General",
        "Report more: -v resolved values, -vv requests, -vvv bytes on the wire.",
        default=0,
        count=True,
        envvar="PYLOGCTL_VERBOSE",
    )
    log_format: LogFormat = option(
        "--log-format", "General", "Format of notes, warnings and errors on stderr.", default="text"
    )
    color: When = option(
        "--color",
        "General",
        "Colour and bold text. Auto: on terminals only.",
        default="auto",
        envvar="PYLOGCTL_COLOR",
    )
    debug: bool = flag(
        "--debug", "General", "Show the traceback of an error.", envvar="PYLOGCTL_DEBUG"
    )
    version: bool = flag(
        "--version",
        "General",
        "Show the version and exit.",
        is_eager=True,
        hidden=True,
        callback=_print_version,
    )


_HELP_FIELDS: bool = flag(
    "--help-fields", "Output", "Show the fields of the documents with their types, and exit."
)


class _Output(Choice):
    output: OutputFormat | None = option(
        "--output FMT",
        "Output",
        "Document format. Default: table on a terminal, plain in a pipe.",
        envvar="PYLOGCTL_OUTPUT",
    )
    columns: Any = option(
        "--columns A,B", "Output", "Choose and order columns; `help` lists them.", parser=_words
    )
    sort: str = option("--sort [-]COL", "Output", "Sort by a column; - reverses.", default="")
    no_header: bool = flag(
        "--no-header", "Output", "Leave out the header line of table, plain, csv and tsv."
    )
    raw_numbers: bool = flag("--raw-numbers", "Output", "No unit scaling in tables.")
    wide: bool = flag("--wide", "Output", "All columns of tables, wider than the terminal or not.")
    help_fields: bool = _HELP_FIELDS


class _Summary(Choice):
    output: OutputFormat | None = option(
        "--output FMT",
        "Output",
        "Write the result to stdout in this format, instead of a line on stderr.",
        envvar="PYLOGCTL_OUTPUT",
    )
    help_fields: bool = _HELP_FIELDS


class _Confirm(Choice):
    assume_yes: bool = flag("-y, --yes", "Safety", "Answer yes to questions.")
    no_input: bool = flag(
        "--no-input",
        "Safety",
        "Never ask; a needed question becomes exit status 5.",
        envvar="PYLOGCTL_NO_INPUT",
    )


class _Others(Choice):
    zookeeper: str | None = option(
        "-Z, --zookeeper HOST:PORT[,..][/CHROOT]",
        "Connection",
        "ZooKeeper. Default: localhost:2181.",
        envvar="PYLOGCTL_ZOOKEEPER",
    )
    zk_credential: str | None = option(
        "--zk-credential FILE",
        "Connection",
        "File with a line user:password for ZooKeeper. Default: that of the embedded one.",
        envvar="PYLOGCTL_ZK_CREDENTIAL",
    )
    zk_tls_config: str | None = option(
        "--zk-tls-config FILE",
        "Connection",
        "File with zookeeper.ssl.* properties, for TLS with ZooKeeper.",
        envvar="PYLOGCTL_ZK_TLS_CONFIG",
    )
    brokers: Any = option(
        "-b, --broker HOST:PORT[,..]",
        "Connection",
        "Brokers, one is enough to find a cluster's; ZooKeeper is not needed then. Default: from "
        "ZooKeeper.",
        envvar="PYLOGCTL_BROKER",
        parser=_words,
    )
    context: str | None = option(
        "-c, --context CONTEXT",
        "Connection",
        "Cluster by its name; see `pylogctl context`. Default: the current context.",
        envvar="PYLOGCTL_CONTEXT",
    )
    properties: list[str] | None = option(
        "-X KEY=VALUE",
        "Connection",
        "Any client property (repeatable); `-X list` shows all, `-X dump` those in effect. "
        "Environment: PYLOGCTL_X, one a line.",
    )
    timeout_s: float | None = option(
        "--timeout DUR",
        "Connection",
        "Limit of the whole request. Default: 10s for requests, none for streams.",
        envvar="PYLOGCTL_TIMEOUT",
    )
    progress: When = option(
        "--progress",
        "General",
        "Progress on stderr. Auto: on terminals only.",
        default="auto",
        envvar="PYLOGCTL_PROGRESS",
    )
    dry_run: bool = flag(
        "--dry-run", "Safety", "Check everything, change nothing, show what would be done."
    )
    no_pager: bool = flag("--no-pager", "Output", "Never start a pager.")


class _Security(Choice):
    tls: bool = flag("--tls", "Security", "Speak TLS with brokers; implied by its files.")
    tls_ca: str | None = option(
        "--tls-ca FILE", "Security", "PEM file of the brokers' CA. Default: the system's CAs."
    )
    tls_cert: str | None = option(
        "--tls-cert FILE",
        "Security",
        "PEM file of the client's certificate, if brokers ask for it.",
    )
    tls_key: str | None = option(
        "--tls-key FILE", "Security", "PEM file of its key. Default: that of the certificate."
    )
    user: str | None = option(
        "--user NAME", "Security", "Log in at brokers as this user. Password: PYLOGCTL_PASSWORD."
    )
    password_file: str | None = option(
        "--password-file FILE", "Security", "Read the password from the first line of a file."
    )
    password_fd: int | None = option(
        "--password-fd N", "Security", "Read the password from an open descriptor.", min=0
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
BROKERS = (*_BROKERS, *SECURITY)
CONNECTION = (*REGISTRY, *BROKERS, *TIMEOUT)

# Options of some commands. A command uses them as types of its parameters, so that an option of one
# meaning has the same flags, help and panel everywhere.

PartitionsOption = Annotated[
    PartitionList | None,
    option(
        "-p, --partition LIST", "Selection", "Partitions: 0, 2-0, *-0, 0,1 or 0..3. Default: all."
    ),
]
StrictOffsetOption = Annotated[
    bool, option("--strict-offset", "Selection", "An offset out of range is an error, not moved.")
]
MaxMessagesOption = Annotated[
    int | None, option("-n, --max-messages N", "Limits", "Stop after exactly N messages.", min=0)
]
RateOption = Annotated[
    str | None, option("--rate R", "Limits", "No faster than this: 1000/s, 5MiB/s.")
]
ThrottleOption = Annotated[
    str | None,
    option(
        "--throttle RATE",
        "Limits",
        "Most bytes that each broker copies: 50MB/s; none lifts it. Default: as it is.",
    ),
]
CodecOption = Annotated[
    Literal["none", "gzip", "snappy", "lz4", "zstd"] | None,
    option("-z, --codec", "Output", "Compression; 0.7 knows only gzip and snappy. Default: none."),
]
OnCorruptOption = Annotated[
    Literal["stop", "skip"],
    option(
        "--on-corrupt",
        "Limits",
        "Stop at a corrupt message with status 8, or leave it out and end with 6.",
    ),
]
MetricsPortOption = Annotated[
    ListenAddress | None,
    option(
        "--metrics-port [HOST:]PORT",
        "Options",
        "Serve metrics for Prometheus, without HOST for this machine alone; 0 picks a free port.",
    ),
]
VerifyOption = Annotated[
    bool,
    option(
        "--verify", "Output", "Read everything back and compare CRCs; status 8 on a difference."
    ),
]
ExecuteOption = Annotated[
    bool, option("--execute", "Safety", "Do it; without this only the plan is shown.")
]
MessageFormatOption = Annotated[
    str | None,
    option("-F, --format STR", "Output", "Write messages in this format; see pylogctl-formats(7)."),
]
PayloadForm = Literal["utf8", "hex", "base64", "escape"]
PayloadOption = Annotated[PayloadForm, option("--payload", "Output", "How payloads are shown.")]


def offset_option(text: str) -> Any:
    """Declare `--offset` with this help."""
    return option("-o, --offset SPEC", "Selection", text)


def confirm_option(text: str) -> Any:
    """Declare `--confirm` with this help; see `confirmation.confirm_name`."""
    return option("--confirm NAME", "Safety", text)


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

    class _Patterns(Choice):
        include: list[str] | None = option("--include RE", "Selection", include_help)
        exclude: list[str] | None = option(
            "--exclude RE", "Selection", "Leave out topics whose whole name matches (repeatable)."
        )

    return OptionGroup(_Patterns.parameters(), _make_topic_patterns)


class _Patterns07(Choice):
    whitelist: list[str] | None = option("--whitelist", "Selection", hidden=True)
    blacklist: list[str] | None = option("--blacklist", "Selection", hidden=True)


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
    str | None,
    option("--from, --from-context CLUSTER", "Connection", f"Cluster to read from: {_CLUSTERS}"),
]
ToOption = Annotated[
    str | None,
    option("--to, --to-context CLUSTER", "Connection", f"Cluster to write to: {_CLUSTERS}"),
]
"""The two clusters of a command; that of `--context`, `-Z` or `-b` if one is not given."""

_EXITS = {  # statuses by the shared options of commands that may end with them
    "timeout_s": (ExitStatus.TIMEOUT, ExitStatus.UNREACHABLE, ExitStatus.REMOTE),
    "user": (ExitStatus.LOGIN, ExitStatus.NOT_ALLOWED),
    "assume_yes": (ExitStatus.DECLINED,),
}
EVERY_GROUP = (
    *GENERAL, *OUTPUT, *CONNECTION, *CONTEXT, *PROPERTIES, *PROGRESS, *CONFIRM, *DRY_RUN, *PAGER,
)  # fmt: skip


SHARED_NAMES = frozenset({*(option.name for option in EVERY_GROUP), "help"})


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
    *options: inspect.Parameter,
    exits: tuple[ExitStatus, ...] = (),
    examples: tuple[str, ...] = (),
    first: str = "",
    optional: Mapping[str, OptionalValue] | None = None,
    dumps_properties: bool = False,
    reports_failures: bool = False,
    changes: bool | None = None,
) -> Callable[[_CommandFunction], AcceptingCommand]:
    """Add shared options to a command; its first parameter is an `Environment` with their values.

    Typer sees one signature with them, the `GENERAL` options, the command's own, and those of its
    groups. `first` has the flags that help shows first, if the command has many. `exits` are
    statuses beside OK, USAGE, BUG, signals, and `_EXITS` of its options; with `reports_failures`
    these are part of its result. With `dumps_properties` the command handles `-X dump` itself, as
    it has more sources of settings. `changes` says whether it changes a cluster, if that is not
    what its options say: those that do have `--yes` or `--dry-run`.
    """
    names = {option.name for option in options}
    if changes is None:
        changes = not names.isdisjoint(("assume_yes", "dry_run"))
    return lambda function: AcceptingCommand(
        function,
        options,
        Facts(exits, examples, tuple(first.split()), optional=optional or {}),
        asks=ASKS_FOR_PROPERTIES - {"dump"} if dumps_properties else ASKS_FOR_PROPERTIES,
        reports_failures=reports_failures,
        changes=changes,
    )


class AcceptingCommand:
    """A command function with shared options; see `accepts`.

    Its parameters are made when they are asked for, as most commands of a group are not called.
    """

    def __init__(
        self,
        function: _CommandFunction,
        options: tuple[inspect.Parameter, ...],
        facts: Facts,
        *,
        asks: frozenset[str],
        reports_failures: bool,
        changes: bool,
    ) -> None:
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__annotations__: dict[str, Any] = {}  # Typer would evaluate the function's in vain
        self.examples = facts.examples
        names = {option.name for option in options}
        self._function = function
        self._names = names
        self._has_context = not names.isdisjoint(("zookeeper", "brokers"))
        self._shared = (*options, *(CONTEXT if self._has_context else ()), *GENERAL)
        self._declared = facts
        self._asks = asks
        self._reports_failures = reports_failures
        self._changes = changes

    @functools.cached_property
    def _parameters(self) -> tuple[dict[str, OptionGroup], list[inspect.Parameter]]:
        """The groups among the function's parameters, and its own options."""
        named = _parameters_of(self._function)[1:]
        groups = _groups_of(named)
        return groups, [option for one in named for option in _expanded(one, groups)]

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters as Typer reads them: the function's own options, and the shared ones."""
        return _signature((*self._parameters[1], *self._shared))

    @functools.cached_property
    def facts(self) -> Facts:
        """The facts that were declared, and those that follow from the options."""
        groups, own = self._parameters
        optional = dict(self._declared.optional)
        for group in groups.values():
            optional.update(group.optional)
        of_options = (
            ()
            if self._reports_failures
            else chain(*(_EXITS.get(option.name, ()) for option in self._shared))
        )
        return self._declared._replace(
            exits=(*self._declared.exits, *of_options),
            choices=_choices_of((*own, *self._shared)),
            optional=optional,
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
            env = in_context(env, context, takes_brokers="brokers" in self._names)
        settings = env.settings
        takes_addresses = {"zookeeper", "brokers"} <= self._names
        if takes_addresses and not settings.brokers and settings.zookeeper is None:
            from pylogctl.cli.discovery import with_found_broker  # late: loads sockets

            env = env.changed(settings=with_found_broker(settings))
        changes_cluster = self._has_context and _changes_cluster(values, self._changes)
        target = at_cluster(env, values.get("to_cluster"))
        values = _with_groups(values, self._parameters[0])
        if env.settings.properties:
            from pylogctl.cli.properties import validate_given  # late: few runs set any

            validate_given(env, ctx.command_path)
        if env.settings.help_fields:
            from pylogctl.cli.fields import show_fields  # late: few runs ask for them

            show_fields(env, ctx.command_path)
        elif self._asks.isdisjoint(env.settings.properties):
            if changes_cluster:
                confirm_context(target, ctx.command_path, can_say_yes="assume_yes" in self._names)
            self._function(env, **values)
            if env.left_out:
                raise typer.Exit(ExitStatus.PARTIAL)
        else:
            from pylogctl.cli.property_lists import show_properties

            show_properties(env, ctx.command_path)


def _given(ctx: Any, names: Iterable[str]) -> frozenset[str]:
    """Return the options that the command line has, not the environment or their defaults."""
    return frozenset(name for name in names if ctx.get_parameter_source(name).name == "COMMANDLINE")


def _changes_cluster(values: Mapping[str, Any], changes: bool) -> bool:
    """Return whether a run changes a cluster, given its own options; a plan only changes none."""
    return bool(values.get("to_topic")) or (changes and values.get("execute") is not False)


def _signature(options: Iterable[inspect.Parameter]) -> inspect.Signature:
    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    return inspect.Signature([context, *options])


def _options_of(kind: type[Choice]) -> OptionGroup:
    """Return the options that the fields of a `Choice` declare, and that become one value."""
    named = _parameters_of(kind)
    groups = _groups_of(named)
    optional: dict[str, OptionalValue] = {}
    for group in groups.values():
        optional.update(group.optional)
    return OptionGroup(
        tuple(option for one in named for option in _expanded(one, groups)),
        lambda **values: kind(**_with_groups(values, groups)),
        optional,
    )


def _parameters_of(kind: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function or `Choice`; see `_parameter`."""
    if isinstance(kind, type) and issubclass(kind, Choice):
        return list(kind.parameters())
    return [
        _parameter(one.name, one.annotation, one.default)
        for one in inspect.signature(kind, eval_str=True).parameters.values()
    ]


def _groups_of(parameters: Iterable[inspect.Parameter]) -> dict[str, OptionGroup]:
    groups: dict[str, OptionGroup] = {}
    for parameter in parameters:
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, Choice):
            groups[parameter.name] = _options_of(kind)
        for note in get_args(kind)[1:]:
            if isinstance(note, OptionGroup):
                groups[parameter.name] = note
    return groups


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
    return [parameter] if group is None else list(group.options)


def _choices_of(parameters: Iterable[inspect.Parameter]) -> dict[str, tuple[str, ...]]:
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
    named = {name: value for name, value in values.items() if value is not None}
    if "properties" in values:  # a command may also get those of the environment
        named["properties"] = parse_properties(values["properties"])
    return SharedOptions(**named)

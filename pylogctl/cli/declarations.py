"""How a command declares options, and what Typer reads of the declarations.

- An option of one command is the default of a parameter:
  `topic: str | None = selection.option("-t, --topic TOPIC", "Only this topic.")`, by the panel of
  help that it is shown in. The same may stand in a `Choice`; a parameter of that type then has the
  values of all its options.
- An option of several commands is a type: `partition: shared.PartitionsOption = None`.
- A value called DUR is parsed to seconds for the type `float`, to milliseconds for `int`; a SIZE is
  to bytes for `int`. A default is written as on the command line.
- An `OptionGroup` makes one value of options: `to: Annotated[ClusterChoice, TO_CLUSTER]`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args, get_origin

import typer

from broker import units
from broker.errors import ArgumentError
from broker.partition_patterns import PartitionList, parse_partition_list
from pylogctl.cli.environment import UsageError

_PARSERS: Mapping[tuple[str, object], Callable[[str], Any]] = {  # by value name and type
    ("DUR", float): units.parse_duration_s,
    ("DUR", int): units.parse_duration_ms,
    ("SIZE", int): units.parse_size,
    ("LIST", PartitionList): parse_partition_list,
    ("[HOST:]PORT", units.ListenAddress): units.parse_listen_address,
}


class Declaration(NamedTuple):
    """An option or argument for Typer, and its default: `...` if it is required."""

    info: Any
    default: object
    name: str = ""  # the long one of an option


@typing.dataclass_transform(frozen_default=True, kw_only_default=True)
class Choice:
    """The values of some options of a command; a field declares an option, or is such a value.

    Each subclass is a frozen dataclass.
    """

    _declared: ClassVar[Mapping[str, object]] = {}

    def __init_subclass__(cls) -> None:
        own = {name: vars(cls).get(name, ...) for name in inspect.get_annotations(cls)}
        cls._declared = {**cls._declared, **own}
        for name, declared in own.items():
            if isinstance(declared, Declaration):
                setattr(cls, name, declared.default)
        dataclass(frozen=True, kw_only=True)(cls)

    @property
    def by_option(self) -> dict[str, object]:
        """The values of the options that the fields declare, by the long names of these."""
        return {
            one.name: getattr(self, field)
            for field, one in self._declared.items()
            if isinstance(one, Declaration)
        }

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


class Panel(NamedTuple):
    """A heading of help, and how an option is declared below it."""

    heading: str

    def option(
        self, flags: str, text: str | None = None, *, default: object = None, **more: Any
    ) -> Any:
        """Declare an option; after its flags stands the name of its value, if it takes one.

        `text` is its help, `more` has other arguments of `typer.Option`. A `default` of `...` makes
        the option required.
        """
        words = flags.split()
        metavar = None if words[-1].startswith("-") else words.pop()
        names = [word.rstrip(",") for word in words]
        info = typer.Option(
            *names, metavar=metavar, rich_help_panel=self.heading, help=text, **more
        )
        return Declaration(info, default, names[-1])

    def flag(self, flags: str, text: str, **more: Any) -> Any:
        """Declare an option that takes no value, and is False if it is not given."""
        return self.option(flags, text, default=False, **more)


option, flag = Panel("Options").option, Panel("Options").flag
inputs, outputs = Panel("Input"), Panel("Output")
selection, limits, safety = Panel("Selection"), Panel("Limits"), Panel("Safety")
connection, security, general = Panel("Connection"), Panel("Security"), Panel("General")
replication = Panel("Replication")


def argument(name: str | None, text: str, *, default: object = ..., **more: Any) -> Any:
    """Declare an argument by the name that help shows; without a `default` it is required."""
    return Declaration(typer.Argument(metavar=name, help=text, **more), default)


def _option_parser(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser whose errors keep their hints; Typer would word a ValueError anew."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ArgumentError as error:
            raise UsageError(str(error), *error.hints) from error

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


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function; see `_parameter`."""
    return [
        _parameter(one.name, one.annotation, one.default)
        for one in inspect.signature(function, eval_str=True).parameters.values()
    ]


def group_of(parameters: Iterable[inspect.Parameter], make: Callable[..., Any]) -> OptionGroup:
    """Return parameters as one group, whose `make` calls that given with a value for each.

    A parameter that is a `Choice`, or is noted with a group, gets the value made of its options.
    """
    parts: list[tuple[str, OptionGroup | None, tuple[inspect.Parameter, ...]]] = []
    optional: dict[str, OptionalValue] = {}
    for parameter in parameters:
        kind = parameter.annotation
        group = next((note for note in get_args(kind)[1:] if isinstance(note, OptionGroup)), None)
        if isinstance(kind, type) and issubclass(kind, Choice):
            group = group_of(kind.parameters(), kind)
        parts.append((parameter.name, group, (parameter,) if group is None else group.options))
        optional.update({} if group is None else group.optional)

    def made(**values: Any) -> Any:
        for name, group, options in parts:
            if group is not None:
                values[name] = group.make(**{one.name: values.pop(one.name) for one in options})
        return make(**values)

    return OptionGroup(tuple(chain(*(options for *_, options in parts))), made, optional)


def choices_of(parameters: Iterable[inspect.Parameter]) -> dict[str, tuple[str, ...]]:
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

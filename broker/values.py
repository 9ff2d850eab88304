"""Values with named fields, whose classes are made quickly."""

from __future__ import annotations

from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(frozen_default=True)
class Value:
    """The base of an immutable value; its annotated names are its fields, as in a dataclass.

    The type checker takes it for a frozen dataclass. It is none, as the methods of those are
    compiled when they are imported: the requests of a client took a tenth of a start.
    """

    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        kinds = cls.__annotations__.items()  # texts, as annotations are not evaluated
        own = (name for name, kind in kinds if not kind.startswith("ClassVar"))
        cls.FIELDS = (*cls.FIELDS, *own)
        cls.__match_args__ = cls.FIELDS  # type: ignore[attr-defined, misc]  # as dataclasses do

    def __init__(self, *values: Any, **named: Any) -> None:
        if named or len(values) != len(self.FIELDS):
            values = self._ordered(values, named)
        self.__dict__.update(zip(self.FIELDS, values))  # noqa: B905  # as many; strict is slower

    def _ordered(self, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of all fields, with the defaults of those that are not given."""
        left = self.FIELDS[len(values) :]
        if len(values) > len(self.FIELDS) or not named.keys() <= set(left):
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(self.FIELDS)}")
        for name in left:
            if name not in named and not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} needs a value for '{name}'")
        return (*values, *(named.get(name, getattr(type(self), name, None)) for name in left))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is a value: '{name}' cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash(tuple(map(self.__dict__.get, self.FIELDS)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({shown})"


class Secret:
    """A password or key: its text is `***`, so that no message, log or listing shows it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return what is secret."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "***" if self._text else ""

"""`Value` behaves as the frozen dataclass that the type checker takes it for."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from broker.values import Value


class _Point(Value):
    KIND: ClassVar[str] = "point"

    x: int
    y: int = 2


class _Named(_Point):
    name: str = ""


def test_value_when_made_by_position_and_by_name_then_equal_with_defaults() -> None:
    assert _Point(1) == _Point(x=1, y=2) == _Point(1, y=2)
    assert hash(_Point(1)) == hash(_Point(y=2, x=1))
    assert _Point(1) != _Point(1, 3)
    assert repr(_Named(1, name="a")) == "_Named(x=1, y=2, name='a')"
    assert _Named(1, 2) != _Point(1, 2)


def test_value_when_matched_then_gives_its_fields_in_order() -> None:
    match _Named(1, 5, "a"):
        case _Named(x, y, name):
            assert (x, y, name) == (1, 5, "a")


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1, 2), {"y": 3}), ((), {"y": 1, "z": 1})],
)
def test_value_when_fields_are_missing_unknown_or_given_twice_then_type_error(
    values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match="_Point"):
        _Point(*values, **named)


def test_value_when_a_field_is_assigned_then_refused() -> None:
    point = _Point(1)
    with pytest.raises(AttributeError, match="'x' cannot be changed"):
        point.x = 5  # type: ignore[misc]  # as the type checker says
    assert point == _Point(1)

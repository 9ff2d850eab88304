"""Errors of the API are seen by the names by which programs catch them."""

from __future__ import annotations

import pickle
import traceback

import pytest

import pylogctl

ERRORS = [
    one
    for name in sorted(vars(pylogctl)["_MODULE_OF"])
    if isinstance(one := getattr(pylogctl, name), type) and issubclass(one, Exception)
]


@pytest.mark.parametrize("kind", ERRORS)
def test_error_when_raised_then_the_traceback_has_its_public_name(
    kind: type[pylogctl.Error],
) -> None:
    name = kind.__name__
    assert getattr(pylogctl, name) is kind

    error = kind("late")
    shown = traceback.format_exception_only(error)[0]
    assert shown.startswith(f"pylogctl.{name}")
    assert repr(error).startswith(f"{name}(")


@pytest.mark.parametrize("kind", ERRORS)
def test_error_when_pickled_then_is_the_same(kind: type[pylogctl.Error]) -> None:
    error = pickle.loads(pickle.dumps(kind("late")))
    assert (type(error), error.args) == (kind, kind("late").args)

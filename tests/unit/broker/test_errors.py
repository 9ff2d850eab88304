from __future__ import annotations

import inspect

import pytest

from broker import errors
from broker.errors import ERROR_OF_CODE, NO_ERROR, BrokerError, ServerError, error_for_code

CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, BaseException)
]
WITH_OWN_CODE = [kind for kind in CLASSES if "code" in vars(kind) and kind != ServerError]


@pytest.mark.parametrize("kind", CLASSES)
def test_error_when_raised_on_purpose_then_is_a_broker_error(kind: type[Exception]) -> None:
    assert issubclass(kind, BrokerError)


@pytest.mark.parametrize("kind", CLASSES)
def test_error_when_looked_up_then_says_what_it_means(kind: type[Exception]) -> None:
    assert kind.__doc__


def test_code_table_when_compared_with_the_classes_then_has_each_with_a_code_once() -> None:
    assert sorted(ERROR_OF_CODE.values(), key=repr) == sorted(WITH_OWN_CODE, key=repr)


@pytest.mark.parametrize("code", ERROR_OF_CODE)
def test_code_when_looked_up_then_the_class_has_that_code(code: int) -> None:
    assert ERROR_OF_CODE[code].code == code


@pytest.mark.parametrize("code", ERROR_OF_CODE)
def test_code_when_sent_then_fits_an_int16_and_is_not_the_one_for_success(code: int) -> None:
    assert -(2**15) <= code < 2**15
    assert code != NO_ERROR


def test_code_when_a_class_of_a_program_has_it_then_errors_of_brokers_are_of_our_classes() -> None:
    type("Mine", (ServerError,), {"code": 9999})
    type("Other", (ServerError,), {"code": 1})

    assert type(error_for_code(9999, "")) is errors.UnknownServerError
    assert type(error_for_code(1, "")) is errors.OffsetOutOfRangeError


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (-1, "UnknownServerError"),
        (1, "OffsetOutOfRangeError"),
        (2, "InvalidMessageError"),
        (3, "WrongPartitionError"),
        (4, "InvalidFetchSizeError"),
    ],
)
def test_code_when_it_is_one_of_07s_then_means_what_it_means_there(code: int, name: str) -> None:
    assert ERROR_OF_CODE[code] is getattr(errors, name)


@pytest.mark.parametrize("code", ERROR_OF_CODE)
def test_error_when_made_for_a_code_then_is_of_its_class_and_has_the_text(code: int) -> None:
    error = error_for_code(code, "topic 'a'")

    assert type(error) is ERROR_OF_CODE[code]
    assert (error.code, str(error)) == (code, "topic 'a'")


@pytest.mark.parametrize("code", [8, 99, 32767, -2])
def test_error_when_the_code_is_unknown_then_is_the_unknown_error(code: int) -> None:
    assert type(error_for_code(code, "text")) is errors.UnknownServerError


def test_not_leader_when_made_for_its_code_then_names_the_leader() -> None:
    error = error_for_code(errors.NotLeaderError.code, "broker 1 leads it", 1)

    assert isinstance(error, errors.NotLeaderError)
    assert error.leader == 1
    assert error.is_retriable

"""From exceptions to exit status and sentence."""

from __future__ import annotations

import errno

import pytest

from broker import errors
from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.cli.report import as_object, as_text, failure_of

LIBRARY_ERRORS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.BrokerError)
]


@pytest.mark.parametrize("kind", LIBRARY_ERRORS, ids=lambda kind: kind.__name__)
def test_every_library_error_has_a_status_and_keeps_its_text(kind: type[Exception]) -> None:
    failure = failure_of(kind("topic 'x' is gone"))
    assert failure is not None
    assert failure.status not in (ExitStatus.OK, ExitStatus.BUG)
    assert failure.message == "topic 'x' is gone"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.BrokerUnreachableError("x"), ExitStatus.UNREACHABLE),
        (errors.RegistryUnreachableError("x"), ExitStatus.UNREACHABLE),
        (errors.TopicNotFoundError("x"), ExitStatus.NOT_FOUND),
        (errors.TopicExistsError("x"), ExitStatus.CONFLICT),
        (errors.InvalidTopicError("x"), ExitStatus.USAGE),
        (errors.InvalidMessageError("x"), ExitStatus.CORRUPT),
        (errors.LogLockedError("x"), ExitStatus.CONFLICT),
        (errors.ConfigError("x"), ExitStatus.CONFIG),
        (errors.ProtocolError("x"), ExitStatus.REMOTE),
        (errors.RequestTimeoutError("x"), ExitStatus.TIMEOUT),
        (errors.StorageError("x"), ExitStatus.REMOTE),
        (errors.NotLeaderError("x"), ExitStatus.UNREACHABLE),
        (errors.ConflictError("x", "WORD"), ExitStatus.CONFLICT),
        (errors.NotReplicatedError("x"), ExitStatus.UNSUPPORTED),
        (errors.PartialError("x", ["done"]), ExitStatus.PARTIAL),
    ],
)
def test_library_error_ends_in_its_status(error: Exception, status: ExitStatus) -> None:
    failure = failure_of(error)
    assert failure is not None
    assert failure.status is status


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (errors.ConflictError("x", "WORD"), "WORD"),
        (errors.NotReplicatedError("x"), "NOT_REPLICATED"),
        (errors.PartialError("x"), "PARTIAL"),
    ],
)
def test_library_error_has_the_word_of_its_reason(error: Exception, word: str) -> None:
    failure = failure_of(error)
    assert failure is not None
    assert failure.code == word


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (FileNotFoundError(errno.ENOENT, "", "f"), 3, "'f': no such file or directory"),
        (PermissionError(errno.EACCES, "", "f"), 1, "'f': permission denied"),
        (OSError(errno.ENOSPC, ""), 1, "cannot write output: no space left on device"),
        (OSError(errno.EADDRINUSE, ""), 4, "address already in use"),
    ],
)
def test_system_error_is_told_with_the_file(error: OSError, status: int, message: str) -> None:
    failure = failure_of(error)
    assert failure is not None
    assert (failure.status, failure.message) == (status, message)


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError(), AssertionError("y")])
def test_any_other_error_is_a_bug(error: Exception) -> None:
    assert failure_of(error) is None


def test_cli_error_is_told_as_it_is_with_three_hints_at_most() -> None:
    error = CliError(ExitStatus.CONFLICT, "m", *"abcd", code="WORD", details={"n": 1})
    assert failure_of(error) is error
    assert as_text(error) == "error: m\n  a\n  b\n  c"
    assert '"hint": "a\\nb\\nc"' in as_object(error)
    assert UsageError("m").code == "USAGE"


def test_every_status_has_a_meaning() -> None:
    assert all(one.meaning for one in ExitStatus)


def test_text_of_a_failure_has_one_first_line_and_indented_hints() -> None:
    failure = UsageError("bad \x1b name", "try: this")
    assert as_text(failure) == "error: bad \\x1b name\n  try: this"


def test_object_of_a_failure_has_fixed_keys() -> None:
    code, details = "TOPIC_NOT_FOUND", {"topic": "t"}
    failure = CliError(ExitStatus.NOT_FOUND, "m", "h", code=code, details=details)
    assert as_object(failure) == (
        '{"error": {"code": "TOPIC_NOT_FOUND", "exit": 3, "message": "m", "hint": "h", '
        '"details": {"topic": "t"}}}'
    )

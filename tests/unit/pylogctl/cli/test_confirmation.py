"""Questions before a change."""

from __future__ import annotations

import io

import pytest

from pylogctl.cli.confirmation import confirm, confirm_name
from pylogctl.cli.environment import CliError, Environment, ExitStatus, SharedOptions, Streams


def _env(typed: bytes = b"", *, tty: bool = True, **settings: bool) -> Environment:
    streams = Streams(io.BytesIO(typed), None, io.StringIO(), stdin_is_tty=tty, stderr_is_tty=tty)
    return Environment(streams, {}, SharedOptions(**settings))  # type: ignore[arg-type]  # flags only


def _asked(env: Environment) -> str:
    """Return the questions, after checking that every typed byte was read."""
    assert isinstance(env.streams.stdin, io.BytesIO)
    assert isinstance(env.streams.stderr, io.StringIO)
    assert env.streams.stdin.read() == b""
    return env.streams.stderr.getvalue()


@pytest.mark.parametrize("typed", [b"y\n", b"yes\n", b"Y\n"])
def test_confirm_when_yes_is_typed_then_returns_after_the_question(typed: bytes) -> None:
    env = _env(typed)
    confirm(env, "broker stop", "stop broker 0?")
    assert _asked(env) == "stop broker 0? [y/N] "


@pytest.mark.parametrize("typed", [b"\n", b"n\n", b"yep\n", b""])
def test_confirm_when_anything_else_is_typed_then_declines(typed: bytes) -> None:
    with pytest.raises(CliError, match="not confirmed") as caught:
        confirm(_env(typed), "broker stop", "stop broker 0?")
    assert caught.value.status is ExitStatus.DECLINED


def test_confirm_when_yes_is_assumed_then_a_no_is_not_even_read() -> None:
    with pytest.raises(CliError, match="not confirmed"):
        confirm(_env(b"n\n"), "broker stop", "?")
    env = _env(b"n\n", assume_yes=True)
    confirm(env, "broker stop", "?")
    assert isinstance(env.streams.stdin, io.BytesIO)
    assert env.streams.stdin.read() == b"n\n"


@pytest.mark.parametrize("env", [_env(b"y\n", tty=False), _env(b"y\n", no_input=True)])
def test_confirm_when_no_question_is_possible_then_names_the_option_to_add(
    env: Environment,
) -> None:
    with pytest.raises(CliError, match="'broker stop' needs confirmation; add --yes") as caught:
        confirm(env, "broker stop", "?")
    assert caught.value.status is ExitStatus.DECLINED


def test_confirm_name_when_the_name_is_typed_then_returns_after_the_question() -> None:
    env = _env(b"orders\n")
    confirm_name(env, "topic delete", "orders", None)
    assert _asked(env) == "type 'orders' to confirm: "


def test_confirm_name_when_given_with_yes_then_needs_no_terminal() -> None:
    env = _env(tty=False, assume_yes=True)
    confirm_name(env, "topic delete", "orders", "orders")
    with pytest.raises(CliError, match="--confirm is 'orders', but must be 'payments'"):
        confirm_name(env, "topic delete", "payments", "orders")


@pytest.mark.parametrize(
    ("env", "given", "message"),
    [
        (_env(b"order\n"), None, "not confirmed"),
        (_env(tty=False), None, "add --yes --confirm orders"),
        (_env(tty=False, assume_yes=True), None, "add --yes --confirm orders"),
        (_env(tty=False), "orders", "add --yes --confirm orders"),
        (_env(assume_yes=True), "order", "--confirm is 'order', but must be 'orders'"),
    ],
)
def test_confirm_name_when_less_is_given_then_declines(
    env: Environment, given: str | None, message: str
) -> None:
    with pytest.raises(CliError, match=message) as caught:
        confirm_name(env, "topic delete", "orders", given)
    assert caught.value.status is ExitStatus.DECLINED

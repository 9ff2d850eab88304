"""Questions before a change."""

from __future__ import annotations

import io

import pytest

from pylogctl.cli.confirmation import confirm, confirm_name
from pylogctl.cli.context import Environment, Settings, Streams
from pylogctl.cli.errors import CliError, ExitStatus


def _env(answer: bytes = b"", *, tty: bool = True, **settings: bool) -> Environment:
    streams = Streams(io.BytesIO(answer), None, io.StringIO(), stdin_is_tty=tty, stderr_is_tty=tty)
    return Environment(streams, {}, Settings(**settings))  # type: ignore[arg-type]  # flags only


@pytest.mark.parametrize("answer", [b"y\n", b"yes\n", b"Y\n"])
def test_confirm_given_yes_returns(answer: bytes) -> None:
    confirm(_env(answer), "broker stop", "stop broker 0?")


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"yep\n", b""])
def test_confirm_given_anything_else_declines(answer: bytes) -> None:
    with pytest.raises(CliError, match="not confirmed") as caught:
        confirm(_env(answer), "broker stop", "stop broker 0?")
    assert caught.value.status is ExitStatus.DECLINED


def test_confirm_given_yes_beforehand_does_not_ask() -> None:
    confirm(_env(tty=False, assume_yes=True), "broker stop", "?")


@pytest.mark.parametrize("env", [_env(b"y\n", tty=False), _env(b"y\n", no_input=True)])
def test_confirm_where_nobody_can_be_asked_says_what_to_add(env: Environment) -> None:
    with pytest.raises(CliError, match="'broker stop' needs confirmation; add --yes") as caught:
        confirm(env, "broker stop", "?")
    assert caught.value.status is ExitStatus.DECLINED


def test_confirm_name_given_the_name_returns() -> None:
    confirm_name(_env(b"orders\n"), "topic delete", "orders", None)
    confirm_name(_env(tty=False, assume_yes=True), "topic delete", "orders", "orders")


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
def test_confirm_name_given_less_declines(
    env: Environment, given: str | None, message: str
) -> None:
    with pytest.raises(CliError, match=message) as caught:
        confirm_name(env, "topic delete", "orders", given)
    assert caught.value.status is ExitStatus.DECLINED

"""Commands with several targets."""

from __future__ import annotations

import io

import pytest

from broker.errors import TopicNotFoundError
from pylogctl.cli.environment import CliError, Environment, ExitStatus, Streams, UsageError
from pylogctl.cli.failures import Done, for_each, raise_failures


@pytest.fixture
def stderr() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def env(stderr: io.StringIO) -> Environment:
    return Environment(Streams(None, None, stderr), {})


def _length(target: str) -> int:
    if target.startswith("bad"):
        raise TopicNotFoundError(f"topic '{target}' not found")
    return len(target)


def test_for_each_when_all_go_well_gives_every_answer_once(env: Environment) -> None:
    answers, done = for_each(env, "topics", ["a", "bb", "a"], _length)
    raise_failures(env, done)
    assert answers == [1, 2]


def test_for_each_when_one_fails_does_the_rest_and_ends_as_partly_done(
    env: Environment, stderr: io.StringIO
) -> None:
    answers, done = for_each(env, "topics", ["bad", "a"], _length)
    assert answers == [1]
    with pytest.raises(CliError, match="1 of 2 topics failed") as caught:
        raise_failures(env, done)
    assert caught.value.status is ExitStatus.PARTIAL
    assert stderr.getvalue() == "error: topic 'bad' not found\n"


def test_for_each_when_several_fail_alike_tells_it_once(
    env: Environment, stderr: io.StringIO
) -> None:
    def fail(target: str) -> int:
        if target == "good":
            return 1
        raise UsageError("no")

    _, done = for_each(env, "topics", ["a", "b", "good"], fail)
    with pytest.raises(CliError, match="2 of 3 topics failed"):
        raise_failures(env, done)
    assert stderr.getvalue() == "error: no\n"


def test_for_each_when_a_single_target_fails_raises_its_failure(env: Environment) -> None:
    with pytest.raises(TopicNotFoundError):
        for_each(env, "topics", ["bad"], _length)


def test_for_each_when_all_fail_raises_the_last_and_tells_the_others(
    env: Environment, stderr: io.StringIO
) -> None:
    with pytest.raises(TopicNotFoundError, match="bad2"):
        for_each(env, "topics", ["bad1", "bad2"], _length)
    assert stderr.getvalue() == "error: topic 'bad1' not found\n"


def test_raise_failures_when_several_kinds_failed_then_reports_all_in_one_error(
    env: Environment, stderr: io.StringIO
) -> None:
    topics = Done([UsageError("bad topic")], 3, "topics")
    brokers = Done([UsageError("bad broker")], 2, "brokers")
    with pytest.raises(CliError, match="1 of 3 topics and 1 of 2 brokers failed"):
        raise_failures(env, topics, brokers)
    assert stderr.getvalue() == "error: bad topic\nerror: bad broker\n"

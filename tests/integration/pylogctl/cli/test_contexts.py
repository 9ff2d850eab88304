"""Clusters by name: files, the current context, what wins over it, and careful contexts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pylogctl import testing
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke

UNUSED = "127.0.0.1:1"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The user's file."""
    return tmp_path / "home/.config/pylogctl/config.toml"


@pytest.fixture
def prod(invoke: Invoke, pylog_broker: testing.Broker) -> str:
    """A context that is protected; its name."""
    added = invoke("context", "add", "prod", "-b", pylog_broker.address, "--protected")
    assert added.status == 0, added.stderr
    return "prod"


def test_context_when_added_and_used_then_commands_go_to_its_cluster(
    invoke: Invoke, pylog_broker: testing.Broker, pylog_topic: str
) -> None:
    assert invoke("context", "add", "here", "-b", pylog_broker.address).status == 0
    assert invoke("context", "add", "gone", "-b", UNUSED).status == 0
    assert (
        invoke("context", "use", "here").stderr
        == f"context 'here' is current: {pylog_broker.address}\n"
    )
    assert invoke("produce", pylog_topic, stdin=b"one\n").status == 0
    assert invoke("topic", "list", "--context", "gone").status == ExitStatus.UNREACHABLE
    assert invoke("context", "use", "gone").status == 0
    assert invoke("topic", "list").status == ExitStatus.UNREACHABLE
    assert invoke("context", "use", "-").status == 0
    assert invoke("consume", pylog_topic, "--from-beginning", "-e").text == "one\n"


def test_context_when_renamed_then_it_stays_current_and_default_and_its_cluster_answers(
    invoke: Invoke, config: Path, pylog_broker: testing.Broker
) -> None:
    assert invoke("context", "current").status == ExitStatus.NOT_FOUND
    assert invoke("context", "add", "old", "-b", pylog_broker.address).status == 0
    assert invoke("context", "add", "gone", "-b", UNUSED).status == 0
    config.write_text(f'default_context = "old"\n{config.read_text()}[contexts.old.producer]\n')
    assert invoke("context", "use", "gone").status == 0
    assert invoke("context", "use", "old").status == 0
    assert invoke("context", "rename", "old", "gone").status == ExitStatus.CONFLICT
    assert invoke("context", "rename", "old", "a b").status == ExitStatus.USAGE
    assert invoke("context", "rename", "old", "new").status == 0
    assert "old" not in config.read_text()
    assert invoke("context", "current").text == "new\n"
    tested = invoke("context", "test")
    assert tested.status == 0
    assert f"context 'new' works: {pylog_broker.address} has brokers 0\n" in tested.stderr
    assert invoke("context", "test", "gone").status == ExitStatus.UNREACHABLE


def test_context_when_an_address_is_given_then_that_wins_and_the_option_over_variables(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, pylog_broker: testing.Broker, prod: str
) -> None:
    address = pylog_broker.address
    assert invoke("context", "add", "gone", "-b", UNUSED).status == 0
    assert invoke("context", "use", "gone").status == 0
    assert invoke("topic", "list", "-b", address).status == 0
    monkeypatch.setenv("PYLOGCTL_CONTEXT", prod)
    assert invoke("context", "show", "--columns", "name", "--output", "name").text == "prod\n"
    assert invoke("topic", "list").status == 0
    monkeypatch.setenv("PYLOGCTL_BROKER", UNUSED)
    assert invoke("topic", "list").status == ExitStatus.UNREACHABLE
    assert invoke("topic", "list", "-c", prod).status == 0
    both = invoke("topic", "list", "-c", prod, "-b", address)
    assert both.status == ExitStatus.USAGE
    assert "name two clusters" in both.stderr
    shown = invoke("config", "show", "--origin", "--output", "csv").text
    assert f"brokers,{UNUSED},environment (PYLOGCTL_BROKER)" in shown


def test_context_when_it_is_protected_then_changes_need_its_name(
    invoke: Invoke, prod: str, pylog_topic: str
) -> None:
    assert invoke("context", "use", prod).status == 0
    named = ("--context", prod)
    for options in ((), named, ("--yes",)):
        refused = invoke("produce", pylog_topic, *options, stdin=b"one\n")
        assert refused.status == ExitStatus.DECLINED
        assert refused.stderr == "error: context 'prod' is protected; add --context prod --yes\n"
    assert invoke("produce", pylog_topic, *named, "--yes", stdin=b"one\n").status == 0
    assert invoke("topic", "describe", pylog_topic).status == 0
    stop = ("broker", "stop", "0", "--yes")
    assert "add --context prod --yes" in invoke(*stop).stderr
    assert invoke("broker", "stop", "--help-fields").status == 0


@pytest.mark.zookeeper
def test_context_when_it_is_read_only_then_changes_are_refused_and_reads_are_not(
    invoke: Invoke, zookeeper: str
) -> None:
    assert invoke("zk", "create", "/kept", "-Z", zookeeper, "--yes").status == 0
    assert invoke("context", "add", "ro", "-Z", zookeeper, "--read-only").status == 0
    assert invoke("context", "use", "ro").status == 0
    for command in (
        "zk create /a --yes",
        "config set --topic t retention.ms=1 --yes",
        "consume t --group g",
        "pipeline sql SELECT -t t --to-topic u",
    ):
        refused = invoke(*command.split())
        assert refused.status == ExitStatus.CONFLICT, refused.stderr
        assert "context 'ro' is read-only" in refused.stderr
    assert invoke("zk", "create", "/a", "--dry-run").status == 0
    assert invoke("zk", "ls", "/").text.splitlines()[1:] == ["kept"]


def test_context_when_it_is_the_target_of_a_copy_then_it_is_guarded_and_as_a_source_is_not(
    invoke: Invoke, pylog_broker: testing.Broker, pylog_topic: str
) -> None:
    address = pylog_broker.address
    assert invoke("produce", pylog_topic, "-b", address, stdin=b"one\n").status == 0
    assert invoke("context", "add", "ro", "-b", address, "--read-only").status == 0
    to_it = ("copy", pylog_topic, f"{pylog_topic}-a", "--to", "ro")
    for words in (to_it, (*to_it[:-2], "--to", "ro", "--from", f"brokers={address}")):
        refused = invoke(*words, "-b", address)
        assert refused.status == ExitStatus.CONFLICT, refused.stderr
        assert "context 'ro' is read-only" in refused.stderr
    from_it = ("copy", pylog_topic, f"{pylog_topic}-b", "--from", "ro")
    assert invoke(*from_it, "--to", f"brokers={address}").status == 0
    unknown = invoke(*from_it, "--to", "zk1")
    assert (unknown.status, "known contexts: ro" in unknown.stderr) == (ExitStatus.NOT_FOUND, True)


def test_context_when_it_has_no_zookeeper_then_a_command_that_needs_one_says_so(
    invoke: Invoke, prod: str
) -> None:
    source = ("mirror", "status", "--timeout", "1s", "--from", "127.0.0.1:1")
    for words in (("group", "list"), source[:-2]):
        result = invoke(*words, "-c", prod)
        assert result.status == ExitStatus.CONFIG
        assert "context 'prod' has brokers only" in result.stderr
    assert invoke(*source, "-c", prod).status == ExitStatus.UNREACHABLE


def test_context_file_when_changed_by_commands_then_the_rest_of_it_stays(
    invoke: Invoke, config: Path
) -> None:
    config.parent.mkdir(parents=True)
    config.write_text('# mine\ndefault_context = "a"\n\n[contexts.a]  # first\nbrokers = "h:1"\n')
    before = config.read_text()
    assert invoke("context", "add", "b", "-Z", "h:2/c", "--read-only").status == 0
    assert config.read_text() == f'{before}\n[contexts.b]\nzookeeper = "h:2/c"\nread_only = true\n'
    assert "name,current" in invoke("context", "list", "--output", "csv").text
    assert invoke("context", "add", "b", "-Z", "h:2").status == ExitStatus.CONFLICT
    assert invoke("context", "remove", "b").status == 0
    assert config.read_text().rstrip("\n") == before.rstrip("\n")
    assert invoke("context", "add", "b", "-Z", "h:2").status == 0
    config.write_text(config.read_text() + "[contexts.b.producer]\ncodec = 'snappy'\n")
    assert invoke("context", "use", "b").status == 0
    assert invoke("context", "remove", "b").status == 0
    assert invoke("context", "show", "--columns", "name", "--output", "name").text == "a\n"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[contexts.a\n", 1, "Expected"),
        ('[contexts.a]\nbrokers = "h:1"\nread_only = 1\n', 3, "read_only must be true or false"),
        ('[contexts.a]\nbrokers = "h:1"\ncolor = "pink"\n', 3, "color is one of red"),
        ('[contexts.a]\nbrokers = "h:1"\ntimeout = "x"\n', 3, "x"),
        ('[contexts.a]\nprotected = true\n', 1, "needs either zookeeper or brokers"),
        ("contexts.a = 1\n", 1, "must be a table"),
        ("contexts = 1\n", 1, "must be tables"),
        ("default_context = 3\n", 1, "must be a string"),
        ('[contexts.a] # x\nzookeeper = ""\n', 1, "needs either zookeeper or brokers"),
    ],
)  # fmt: skip
def test_context_file_when_malformed_then_its_line_is_named(
    invoke: Invoke, config: Path, text: str, line: int, words: str
) -> None:
    config.parent.mkdir(parents=True)
    config.write_text(text)
    result = invoke("topic", "list")
    assert result.status == ExitStatus.CONFIG
    assert f"{config}:{line}: " in result.stderr
    assert words in result.stderr


def test_context_file_when_a_key_is_unknown_then_warns_with_the_likely_one(
    invoke: Invoke, config: Path
) -> None:
    config.parent.mkdir(parents=True)
    config.write_text('[contexts.a]\nbrokers = "h:1"\nprotectd = true\n')
    assert (
        f"{config}:3: unknown key 'protectd'; did you mean 'protected'?"
        in invoke("context", "list").stderr
    )


def test_context_when_unknown_then_the_known_ones_are_named(invoke: Invoke, prod: str) -> None:
    result = invoke("topic", "list", "--context", "prd")
    assert result.status == ExitStatus.NOT_FOUND
    assert f"known contexts: {prod}" in result.stderr


def test_project_file_when_in_a_directory_above_then_counts_before_the_users(
    tmp_path: Path, pylog_broker: testing.Broker
) -> None:
    below = tmp_path / "project/src"
    below.mkdir(parents=True)
    (tmp_path / "project/.pylogctl.toml").write_text(
        f'default_context = "dev"\n[contexts.dev]\nbrokers = "{pylog_broker.address}"\n'
    )
    run = subprocess.run(
        [sys.executable, "-m", "pylogctl", "topic", "list"],
        cwd=below,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_context_when_added_with_zookeepers_credential_then_its_file_is_found_from_everywhere(
    invoke: Invoke, config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    added = invoke("context", "add", "closed", "-Z", UNUSED, "--zk-credential", "zk.secret")
    assert added.status == 0, added.stderr
    assert f'zk_credential = "{tmp_path / "zk.secret"}"' in config.read_text()

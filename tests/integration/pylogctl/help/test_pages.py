"""`pylogctl version`, `man`, `help` and `doctor`."""

from __future__ import annotations

import json
import tomllib

import pytest

from broker.protocol import codec
from broker.server.broker import Broker
from pylogctl import __version__
from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.help_page import TOPICS
from pylogctl.doctor.checks import Verdict, check_file_limit, check_python
from tests.support.command_line import REPOSITORY, Invoke


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__


def test_version_lists_program_libraries_and_wire_format(invoke: Invoke) -> None:
    rows = json.loads(invoke("version", "--output", "json").text)["data"]
    versions = {row["component"]: row["version"] for row in rows}
    assert versions["pylogctl"] == __version__
    assert versions["typer"].startswith("0.28")
    assert "Kafka 0.7" in versions["wire-format"]
    assert versions["codec"] == codec.describe()


@pytest.mark.parametrize("words", [["man", "log", "verify"], ["help", "log"], ["man", "log"]])
def test_page_of_a_command_is_shown(invoke: Invoke, words: list[str]) -> None:
    result = invoke(*words)
    assert result.status == 0
    assert result.text.startswith("NAME\n       pylogctl-log - look into segment files")


@pytest.mark.parametrize("topic", TOPICS)
def test_page_of_a_topic_is_shown(invoke: Invoke, topic: str) -> None:
    assert invoke("help", topic).text.startswith("NAME\n       pylogctl-")


def test_page_of_the_program_is_shown_without_a_word(invoke: Invoke) -> None:
    assert invoke("man").text.startswith("NAME\n       pylogctl - a commit-log broker")


def test_page_of_an_alias_is_that_of_its_command(invoke: Invoke) -> None:
    assert invoke("man", "cat").text == invoke("man", "consume").text


def test_page_that_does_not_exist_is_not_found(invoke: Invoke) -> None:
    result = invoke("help", "ofsets")
    assert result.status == ExitStatus.NOT_FOUND
    assert "no manual page for 'ofsets'; did you mean 'offsets'?" in result.stderr


def test_help_without_a_word_lists_the_commands(invoke: Invoke) -> None:
    assert invoke("help").text == invoke("--help").text


def test_doctor_with_a_broker_is_content(invoke: Invoke, running_broker: Broker) -> None:
    result = invoke("doctor", "-b", f"127.0.0.1:{running_broker.port}", "--output", "json")
    rows = {row["check"]: row for row in json.loads(result.text)["data"]}
    assert result.status == 0
    assert rows["broker"]["status"] == "ok"
    assert f"127.0.0.1:{running_broker.port} answers as broker 0" in rows["broker"]["detail"]
    assert rows["codecs"]["detail"] == "none, gzip, snappy, lz4, zstd"


@pytest.mark.parametrize("where", [["-b", "127.0.0.1:1"], ["-Z", "127.0.0.1:1"], ["-b", "x"]])
def test_doctor_without_anybody_there_fails(invoke: Invoke, where: list[str]) -> None:
    result = invoke("doctor", *where, "--timeout", "300ms")
    assert result.status == ExitStatus.FAILED
    assert "\nfail    " in result.text


def test_doctor_without_a_zookeeper_advises_what_works_on_any_machine(invoke: Invoke) -> None:
    result = invoke("doctor", "-Z", "127.0.0.1:1", "--timeout", "300ms")
    assert "registry: start one: pylogctl broker start\n" in result.stderr
    failed = invoke("topic", "list", "-Z", "127.0.0.1:1", "--timeout", "300ms").stderr
    assert "  try: pylogctl broker start, or doctor; -b HOST:PORT needs no ZooKeeper\n" in failed


def test_doctor_where_no_zookeeper_can_be_started_then_advises_to_name_one_or_do_without(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # a plain installation
    result = invoke("doctor", "-Z", "127.0.0.1:1", "--timeout", "300ms")
    assert "registry: none can be started here (java, above); name one" in result.stderr
    assert "start one:" not in result.stderr


def test_checks_judge_versions_and_limits() -> None:
    assert check_python((3, 10)).status is Verdict.FAIL
    assert check_python((3, 11)).status is Verdict.OK
    assert check_file_limit(1024).status is Verdict.WARN
    assert check_file_limit(-1).detail == "unlimited"

"""The command tree: every command is documented, and the command line is parsed as promised."""

from __future__ import annotations

import pytest

from docs.docgen import escape_literal
from pylogctl.cli import help_page
from pylogctl.cli.app import Pylogctl, root
from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.help_page import HELP_FLAGS, CommandNode
from pylogctl.cli.options import SHARED_NAMES
from pylogctl.cli.tree import describe, split_leading
from tests.support.command_line import REPOSITORY, Invoke

NODES = list(describe(root()).walk())
LEAVES = [node for node in NODES if not node.children]


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_every_command_has_help(node: CommandNode, invoke: Invoke) -> None:
    result = invoke(*node.path[1:], "--help")
    assert result.status == 0
    assert result.text.startswith(f"Usage: {node.name} ")
    assert node.summary in " ".join(result.text.split())


def test_help_of_a_group_when_shown_then_no_command_of_it_is_made(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("typer.main.get_command_from_info")
    assert "Usage: pylogctl zk " in invoke("zk", "--help").text


@pytest.mark.parametrize("node", LEAVES, ids=lambda node: node.name)
def test_every_command_has_examples_that_name_it(node: CommandNode) -> None:
    assert node.facts.examples
    assert all("pylogctl" in example for example in node.facts.examples)


def test_every_command_that_changes_something_takes_yes() -> None:
    changing = {}
    for node in LEAVES:
        names = {option.name for option in node.options}
        if node.facts.changes or not names.isdisjoint(("dry_run", "execute", "to_topic")):
            changing[node.name] = "assume_yes" in names
    assert {"pylogctl produce", "pylogctl topic create", "pylogctl log move"} <= changing.keys()
    assert {name for name, takes_yes in changing.items() if not takes_yes} == set()


@pytest.mark.parametrize("node", LEAVES, ids=lambda node: node.name)
def test_every_option_has_help_and_every_value_a_name(node: CommandNode) -> None:
    for option in node.options:
        assert option.help.endswith("."), option.name
        assert bool(option.metavar) == option.takes_value, option.name


@pytest.mark.parametrize("node", LEAVES, ids=lambda node: node.name)
def test_help_of_a_command_shows_its_options_and_help_all_explains_the_shared_ones_too(
    node: CommandNode, invoke: Invoke
) -> None:
    shown = _without_blanks(invoke(*node.path[1:], "--help").text)
    everything = _without_blanks(invoke(*node.path[1:], "--help-all").text)
    for option in node.options:
        explained = _without_blanks(option.synopsis + option.full_help)
        assert explained in everything, option.name
        assert (explained in shown) == (option.name not in SHARED_NAMES), option.name
        assert all(flag in shown for flag in option.flags), option.name
    for argument in node.arguments:
        assert _without_blanks(argument.help) in shown, argument.name


@pytest.mark.parametrize("node", LEAVES, ids=lambda node: node.name)
def test_help_shows_the_options_that_matter_first_and_at_most_ten(node: CommandNode) -> None:
    own = [option for option in node.options if option.name not in SHARED_NAMES]
    first = help_page.first_options(node)
    assert len(first) == len(set(first))
    assert min(len(own), 5) <= len(first) <= help_page.FIRST_COUNT
    assert len(own) > help_page.FIRST_COUNT or not node.facts.first  # nothing is to be chosen


@pytest.mark.parametrize("node", LEAVES, ids=lambda node: node.name)
def test_manual_page_of_a_command_shows_each_of_its_options(node: CommandNode) -> None:
    page = (REPOSITORY / f"man/man1/pylogctl-{node.path[1]}.1").read_text(encoding="utf-8")
    for flag in {flag for option in node.options for flag in option.flags} - HELP_FLAGS:
        assert escape_literal(flag) in page, flag


def _without_blanks(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("node", LEAVES, ids=lambda node: node.name)
def test_command_may_end_as_its_connections_and_questions_do(node: CommandNode) -> None:
    flags = {flag for option in node.options for flag in option.flags}
    connects = "--timeout" in flags and node.path[1] != "doctor"  # which reports what fails
    network = {ExitStatus.TIMEOUT, ExitStatus.UNREACHABLE, ExitStatus.REMOTE}
    assert (network <= set(node.facts.exits)) == connects
    never_asks = node.path[1] in ("context", "completion") or node.name.endswith(
        (
            "pipeline load",
            "pipeline compact",
            "retry drain",
            "log split",
            "log merge",
            "archive restore",
        )
    )
    assert (ExitStatus.DECLINED in node.facts.exits) == ("--yes" in flags and not never_asks)


@pytest.mark.parametrize("node", LEAVES, ids=lambda node: node.name)
def test_no_option_tells_its_default_twice(node: CommandNode) -> None:
    for option in node.options:
        assert option.full_help.count("Default:") <= 1, option.name


def test_short_letters_mean_the_same_in_every_command() -> None:
    meaning: dict[str, str] = {}
    for node in LEAVES:
        for option in node.options:
            for flag in option.flags:
                if len(flag) == 2:
                    long = max(option.flags, key=len)
                    assert meaning.setdefault(flag, long) == long, node.name


def test_static_help_of_the_root_is_what_the_commands_say() -> None:
    for node in describe(root()).children:
        assert Pylogctl.entries[node.path[1]] == node.summary + ".", node.name


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["lgo"], "no command 'lgo'; did you mean 'log'?"),
        (["log", "verfy"], "no command 'verfy'; did you mean 'verify'?"),
        (["log", "verify", "f", "--max-error", "1"], "no option '--max-error'; "
         "did you mean '--max-errors'?"),
        (["log", "verify"], "missing FILE|DIR"),
        (["log", "move"], "missing TOPIC[PARTITION]\n"),
        (["topic", "create", "t", "--partitions", "3000000000"], "--partitions: 3000000000 is not "
         "between 1 and 10000"),
        (["log", "dump", "f", "-n", "-1"], "--max-messages: -1 is below 0"),
        (["log", "dump", "f", "-n"], "option '-n' needs a value"),
        (["log", "dump", "f", "-n", "x"], "--max-messages: 'x' is not a whole number"),
        (["version", "--output", "xml"], "--output: 'xml' is not one of 'table', 'json'"),
        (["version", "extra"], "unexpected argument 'extra'"),
        (["--zookeeper", "h:1", "log", "verify", "f"],
         "option '--zookeeper' does not apply to 'pylogctl log verify'"),
        (["-n", "3", "log"], "no option '-n' before a command"),
        (["--ofset", "3", "log"], "no option '--ofset' before a command"),
        (["zk", "ls", "--timeout", "soon"], "not a duration: 'soon'"),
        (["-X", "nonsense", "consume"], "not a property: 'nonsense'"),
        (["group", "lag", "g", "--window", "soon"], "not a duration: 'soon'"),
        (["group", "lag", "g", "--min-lag", "much"], "not a size: 'much'"),
        (["consume", "t", "-p", "first"], "not a partition: 'first'"),
    ],
)  # fmt: skip
def test_command_line_that_is_wrong_is_told_in_one_sentence(
    invoke: Invoke, args: list[str], message: str
) -> None:
    result = invoke(*args)
    assert result.status == ExitStatus.USAGE
    assert result.stdout == b""
    assert result.stderr.startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("consume --bootstrap-server h:9092", "brokers are named with -b HOST:PORT"),
        ("perf produce t -n 5", "--messages N in `perf`"),
        ("consume --topic t", "the topic is an argument, as in: pylogctl consume TOPIC"),
        ("-C -t t", "to read messages: pylogctl consume TOPIC"),
        ("-P -t t", "to write messages: pylogctl produce TOPIC"),
        ("topic list -o json", "as in: --output json"),
        ("topic list --json", "as in: --output json"),
        ("group reset g --to-earliest", "pylogctl group reset GROUP --to start"),
        ("consume t --fetch-size 1MiB", "-X fetch.size=1048576"),
        ("perf produce t --acks 1", "-X request.required.acks=1"),
        ("topic list --no-color", "--color never"),
        ("--no-color topic list", "--color never"),
        ("ls", "here: pylogctl topic list"),
        ("create t", "here: pylogctl topic create TOPIC"),
        ("get topics", "here: pylogctl topic list"),
        ("get topic orders", "here: pylogctl topic describe NAME"),
        ("get /brokers", "here: pylogctl zk get PATH"),
        ("cluster info", "here: pylogctl cluster describe"),
        ("topic consume", "here: pylogctl consume TOPIC"),
        ("group seek", "here: pylogctl group reset GROUP --to @-10m"),
        ("consumer-groups --list", "here: pylogctl group"),
        ("group describe --group g", "as in: pylogctl group describe GROUP"),
        ("topic describe --topic t", "as in: pylogctl topic describe TOPIC"),
        ("web --port 80", "--listen HOST:PORT"),
        ("get broker", "here: pylogctl broker status ID"),
    ],
)
def test_word_of_another_tool_when_given_is_answered_with_the_one_here(
    invoke: Invoke, words: str, answer: str
) -> None:
    result = invoke(*words.split())
    assert result.status == ExitStatus.USAGE
    assert answer in result.stderr
    assert "did you mean" not in result.stderr


def test_tail_is_the_last_messages_and_those_that_follow(invoke: Invoke) -> None:
    assert root().expand_alias(["tail", "t"]) == ["consume", "--offset", "-10", "t"]
    last_three = ["consume", "--offset", "-3", "t", "-e"]
    assert root().expand_alias(["tail", "-n", "3", "t", "-e"]) == last_three
    assert root().expand_alias(["tail", "t", "-n", "3", "-e"]) == last_three
    assert invoke("tail", "--help").text.startswith("Usage: pylogctl consume")


@pytest.mark.parametrize(
    "args",
    [
        ["version", "--output", "csv", "--no-header"],
        ["--output", "csv", "--no-header", "version"],
        ["--output=csv", "version", "--no-header"],
        ["-q", "--output", "csv", "version", "--no-header", "-v"],
    ],
)
def test_shared_options_may_stand_before_or_after_the_command(
    invoke: Invoke, args: list[str]
) -> None:
    assert invoke(*args).text.startswith("pylogctl,")


def test_shared_options_may_stand_between_group_and_command(invoke: Invoke) -> None:
    assert invoke("log", "--output", "csv", "stat", "--help").status == 0


def test_an_option_after_the_command_goes_before_one_in_front(invoke: Invoke) -> None:
    assert invoke("--output", "json", "version", "--output", "csv").text.startswith("component,")


@pytest.mark.parametrize("args", [[], ["log"], ["-q", "zk"]])
def test_group_without_a_command_shows_short_help_and_fails(
    invoke: Invoke, args: list[str]
) -> None:
    result = invoke(*args)
    assert result.status == ExitStatus.USAGE
    assert result.stdout == b""
    assert result.failure is not None
    assert "missing command" in result.failure.message


def test_help_all_shows_every_command_of_a_group(invoke: Invoke) -> None:
    text = invoke("log", "--help-all").text
    for command in ("dump", "verify", "stat", "recover"):
        assert f"Usage: pylogctl log {command}" in text


def test_version_option_takes_an_output_format(invoke: Invoke) -> None:
    assert (
        invoke("--version", "--output", "jsonl").text == invoke("version", "--output", "jsonl").text
    )


def test_split_leading_keeps_values_with_their_options() -> None:
    assert split_leading(["-Z", "h:1/c", "-qv", "--timeout=3s", "log", "-x"]) == (
        [],
        ["-Z", "h:1/c", "-qv", "--timeout=3s"],
        ["log", "-x"],
    )


def test_split_leading_gives_help_to_the_group_itself() -> None:
    assert split_leading(["-q", "-h", "log"]) == (["-h"], ["-q"], ["log"])


def test_alias_stands_for_its_command(invoke: Invoke) -> None:
    assert invoke("cat", "--help").text.startswith("Usage: pylogctl consume")
    assert invoke("topics", "--help").text.startswith("Usage: pylogctl topic list")
    assert invoke("topic", "ls", "--help").text.startswith("Usage: pylogctl topic list")


def test_properties_are_listed_with_and_without_a_command(invoke: Invoke) -> None:
    everything = invoke("-X", "list", "--output", "name").text.split()
    consumer = invoke("consume", "-X", "list").text
    assert "num.partitions" in everything
    assert "fetch.size" in consumer
    assert "num.partitions" not in consumer


def test_properties_in_effect_are_shown_with_their_origin(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLOGCTL_X", "fetch.size=7\nsocket.timeout.ms=9")
    text = invoke("consume", "-X", "fetch.size=5", "-X", "dump").text
    rows = {line.split()[0]: line.split()[2:] for line in text.splitlines()}
    assert rows["fetch.size"] == ["5", "-X"]
    assert rows["socket.timeout.ms"] == ["9", "PYLOGCTL_X"]
    assert rows["fetch.wait.max.ms"] == ["500", "default"]


def test_commands_that_administer_take_yes_whether_they_ask_or_not() -> None:
    missing = []
    for node in LEAVES:
        flags = {flag for option in node.options for flag in option.flags}
        nouns = {"broker", "topic", "config", "group", "log", "mirror"}
        if "--dry-run" in flags and "--yes" not in flags and not nouns.isdisjoint(node.path):
            missing.append(node.path)
    assert missing == []

"""What the words of other tools are here: of Kafka's scripts, kcat, rpk.

Imported only for an error's hint.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

_BROKERS = "brokers are named with -b HOST:PORT, or found through ZooKeeper (-Z)"
_TOPIC = "the topic is an argument, as in: {} TOPIC"
_GROUP = "the group is an argument, as in: {} GROUP"
_CLUSTER = "pylogctl cluster describe"
_OUTPUT = "formats of documents are chosen with --output, as in: --output json"
_RESET = "to move offsets: pylogctl group reset GROUP --to"

_OPTIONS = {
    **dict.fromkeys(("--bootstrap-server", "--bootstrap-servers", "--brokers"), _BROKERS),
    **dict.fromkeys(("--broker-list", "-B"), _BROKERS),
    **dict.fromkeys(("--topic", "--topics", "-t"), _TOPIC),
    **dict.fromkeys(
        ("--json", "--format-json"),
        f"{_OUTPUT}; messages as JSON: --jsonl, in `pipeline sql` --json-payloads",
    ),
    "-o": f"{_OUTPUT}; -o of `consume` is an offset",
    "-C": "to read messages: pylogctl consume TOPIC",
    "-P": "to write messages: pylogctl produce TOPIC",
    "-L": "to see brokers and topics: pylogctl cluster describe, pylogctl topic list",
    "-Q": "offsets at a time: pylogctl topic offsets TOPIC --at @TIME",
    "-G": "to read as a group: pylogctl consume --group GROUP TOPIC",
    "-K": "keys choose partitions: produce --key-delimiter",
    "-c": "to stop after some messages: -n N",
    "-n": "the number of messages: --messages N in `perf`, -n N in `consume`, `produce` and `copy`",
    "-f": "messages are formatted with -F, as in: -F '%o %s\\n'",
    "--formatter": "messages are formatted with -F, as in: -F '%o %s\\n'",
    "--to-earliest": f"{_RESET} start",
    "--to-latest": f"{_RESET} end",
    "--to-offset": f"{_RESET} 4096",
    "--to-datetime": f"{_RESET} @2026-11-20T08:00",
    "--by-duration": f"{_RESET} @-10m",
    "--shift-by": f"{_RESET} shift:-100",
    "--reset-offsets": f"{_RESET} start",
    "--list": "pylogctl topic list, pylogctl group list",
    "--describe": "pylogctl topic describe TOPIC, pylogctl group describe GROUP",
    "--create": "pylogctl topic create TOPIC",
    "--delete": "pylogctl topic delete TOPIC, pylogctl group delete GROUP",
    "--alter": "pylogctl topic alter TOPIC, pylogctl config set",
    "--timeout-ms": "limits of time: --timeout 10s, --idle-timeout 10s",
    "--group": _GROUP,
    "--group-id": "the group is named with -g GROUP",
    "--port": "addresses are given whole: --listen HOST:PORT",
    "--follow": "`consume` follows unless -e ends it; the last messages first: pylogctl tail TOPIC",
    **dict.fromkeys(
        ("--consumer-property", "--producer-property", "--property", "--command-config"),
        "properties are given with -X KEY=VALUE; -X list shows them",
    ),
    "--no-color": "colours are chosen with --color never, or NO_COLOR=1",
    "--fetch-size": "bytes of a request: -X fetch.size=1048576",
    "--acks": "acknowledgements: -X request.required.acks=1",
}

_NEEDED = {
    **dict.fromkeys(("--topic", "--topics", "-t"), "topic"),
    "--group": "group",
    "--port": "listen",
}
"""What a command must have for the hint to be true of it."""

_LISTS = {"topics": "topic list", "groups": "group list", "brokers": "broker list"}
_COMMANDS = {
    **{f"get {name}": f"pylogctl {listed}" for name, listed in _LISTS.items()},
    **{f"get {name[:-1]}": f"pylogctl {name[:-1]} describe NAME" for name in ("topics", "groups")},
    "get broker": "pylogctl broker status ID",
    **{f"describe {name}": f"pylogctl {name} describe NAME" for name in ("topic", "group")},
    **dict.fromkeys(("consumer-groups", "kafka-consumer-groups"), "pylogctl group"),
    **dict.fromkeys(("console-consumer", "kafka-console-consumer"), "pylogctl consume TOPIC"),
    **dict.fromkeys(("console-producer", "kafka-console-producer"), "pylogctl produce TOPIC"),
    **dict.fromkeys(("configs", "kafka-configs"), "pylogctl config"),
    **dict.fromkeys(("acls", "kafka-acls"), "pylogctl acl"),
    **dict.fromkeys(("kafka-topics", "leader-election"), "pylogctl topic"),
    **dict.fromkeys(("dump-log", "kafka-dump-log"), "pylogctl log dump FILE"),
    **dict.fromkeys(("cluster info", "cluster list", "cluster metadata"), _CLUSTER),
    **dict.fromkeys(("topic consume", "topic read", "topic cat"), "pylogctl consume TOPIC"),
    **dict.fromkeys(("topic produce", "topic write"), "pylogctl produce TOPIC"),
    **dict.fromkeys(("topic tail", "log tail"), "pylogctl tail TOPIC"),
    **dict.fromkeys(("group seek", "group set-offset"), "pylogctl group reset GROUP --to @-10m"),
    **dict.fromkeys(("group consume", "group join"), "pylogctl consume --group GROUP TOPIC"),
    **dict.fromkeys(("ls", "list"), "pylogctl topic list, group list, broker list, zk ls"),
    **dict.fromkeys(
        ("create", "new", "delete", "rm", "describe", "desc", "alter", "offsets", "count"),
        "pylogctl topic {} TOPIC",
    ),
    **dict.fromkeys(("lag", "reset", "members"), "pylogctl group {} GROUP"),
    **dict.fromkeys(("start", "stop", "status"), "pylogctl broker {}"),
    **dict.fromkeys(("dump", "verify", "grep", "repair"), "pylogctl log {} FILE"),
    **dict.fromkeys(("get", "tree"), "pylogctl zk {} PATH"),
    "stat": "pylogctl zk get --stat PATH",
    **dict.fromkeys(("metadata", "info", "nodes"), _CLUSTER),
    "health": "pylogctl cluster health",
    "sub": "pylogctl consume TOPIC",
    "pub": "pylogctl produce TOPIC",
}


def hints_for_option(
    flag: str, command: str = "pylogctl consume", knows: Collection[str] = ("topic",)
) -> list[str]:
    """Return what an option of other tools is in a command, if that is known.

    `knows` has the names of the command's own arguments and options.
    """
    needed = _NEEDED.get(flag)
    if flag not in _OPTIONS or (needed and not {needed, f"{needed}s"} & {*knows}):
        return []
    return [_OPTIONS[flag].replace("{}", command)]


def hints_for_command(group: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return what the words of a command of other tools are here, if that is known."""
    for known in (" ".join([*group, *words][:2]), *([] if group else words[:1])):
        if known in _COMMANDS:
            return [f"here: {_COMMANDS[known].format(words[0])}"]
    return []

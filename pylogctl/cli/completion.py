"""Generates completion scripts for bash, zsh and fish from the command tree.

The scripts hold commands and options; only for names in a cluster do they call the program
(`pylogctl __complete KIND PREFIX`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from pylogctl.cli.help_page import TOPICS
from pylogctl.cli.nodes import ArgumentNode, CommandNode, OptionNode

DURATIONS = ("100ms", "1s", "10s", "1m", "5m", "1h")
OFFSETS = ("start", "end", "-10", "@-10m", "@-1h", "@today", "@yesterday")
SIZES = ("64KiB", "1MiB", "16MiB", "1GiB")
FILES = "@file"
DIRECTORIES = "@dir"

_KIND_OF_METAVAR: dict[str, tuple[str, ...]] = {
    "TOPIC": ("@topic",),
    "AUDIT-TOPIC": ("@topic",),
    "SRC": ("@topic",),
    "DST": ("@topic",),
    "GROUP": ("@group",),
    "G": ("@group",),
    "PATH": ("@zk-path",),
    "PARTITION": ("@partition",),
    "ID": ("@broker",),
    "ID|HOST:PORT": ("@broker",),
    "CONTEXT": ("@context",),
    "CLUSTER": ("@context",),
    "FILE": (FILES,),
    "FILE|DIR": (FILES,),
    "DIR": (DIRECTORIES,),
    "DUR": DURATIONS,
    "SIZE": SIZES,
    "SPEC": OFFSETS,
}


def _broker_settings(node: CommandNode) -> tuple[str, ...]:
    """Return the words for the first argument after `--broker`; empty if it is not of settings."""
    metavar = node.arguments[0].metavar.strip("[].") if node.arguments else ""
    if metavar not in {"NAME", "NAME=VALUE"} or not any("-b" in o.flags for o in node.options):
        return ()
    from broker.config import BrokerConfig

    sign = "=" if "=" in metavar else ""
    found = [one.name for one in BrokerConfig.PROPERTIES if one.field in BrokerConfig.DYNAMIC]
    return tuple(f"{name}{sign}" for name in found)


def _values_of(node: OptionNode | ArgumentNode) -> tuple[str, ...]:
    """Return the words to offer, or one mark `@kind` for files and names in a cluster."""
    metavar = node.metavar.strip("[].")
    if metavar in {"NAME", "NAME=VALUE"}:
        from broker.topic_settings import TOPIC_SETTINGS

        sign = "=" if "=" in metavar else ""
        return tuple(f"{one.property.name}{sign}" for one in TOPIC_SETTINGS)
    return node.choices or _KIND_OF_METAVAR.get(metavar, ())


def _option_values(node: CommandNode, option: OptionNode) -> tuple[str, ...]:
    """Return the words to offer for an option of a command: of its documents, the columns."""
    if option.name not in {"columns", "sort"}:
        return _values_of(option)
    from pylogctl.cli.fields import schemas_of

    names: dict[str, None] = {}
    for schema in schemas_of(node.name):
        names.update(dict.fromkeys(schema["properties"]["data"]["items"]["properties"]))
    return tuple(names)


def walk(node: CommandNode) -> Iterator[CommandNode]:
    """Yield a command and all commands below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def _leading(tree: CommandNode) -> tuple[OptionNode, ...]:
    """Return the options allowed before a command: all shared ones of the tree."""
    from pylogctl.cli.options import EVERY_GROUP

    shared = {option.name for option in EVERY_GROUP}
    found = {o.name: o for node in walk(tree) for o in node.options if o.name in shared}
    return tuple(found.values())


def _options(node: CommandNode, tree: CommandNode) -> tuple[OptionNode, ...]:
    return (*node.options, *_leading(tree)) if node.children else node.options


_BASH = r"""# bash completion for pylogctl. Made by `python -m pylogctl.cli.docgen`; do not edit.

__pylogctl_tables() {
    commands='' options='' valued='' words=''
    case $1 in
@TABLES@
    esac
}

__pylogctl_values() {
    case "$1 $2" in
@VALUES@
    *) words='' ;;
    esac
}

__pylogctl_lookup() {
    local line
    while IFS= read -r line; do
        COMPREPLY+=("$(printf %q "${line%%$'\t'*}")")
    done < <("${COMP_WORDS[0]}" __complete "$1" "$2" "${connection[@]}" 2>/dev/null)
}

__pylogctl_typed() {
    # Bash makes words of their own of ':' and '='; addresses are joined again.
    local i word after=''
    typed=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i > 1)) && [[ $after =~ ^:+$ || $word =~ ^:+$ ]] && [[ ${typed[-1]} != -* ]]; then
            typed[-1]+=$word
        else
            typed+=("$word")
        fi
        after=$word
    done
}

_pylogctl() {
    local path=pylogctl current previous commands options valued words word i last skip=''
    local -a connection=() typed=()
    COMPREPLY=()
    __pylogctl_typed
    last=$((${#typed[@]} - 1))
    current=${typed[last]}
    previous=${typed[last-1]}
    if [[ $current == '=' ]]; then
        current=''
    elif [[ $previous == '=' ]]; then
        previous=${typed[last-2]}
    fi
    __pylogctl_tables "$path"
    for ((i = 1; i < last; i++)); do
        word=${typed[i]}
        if [[ $word == '=' ]]; then
            skip=1
        elif [[ $skip ]]; then
            skip=''
        elif [[ $word == -* ]]; then
            [[ " $valued " == *" $word "* ]] && skip=1
            case $word in
            -Z | --zookeeper | -b | --broker | -c | --context)
                [[ ${typed[i+1]} == '=' ]] && connection+=("$word" "${typed[i+2]}") ||
                    connection+=("$word" "${typed[i+1]}")
                ;;
            esac
        elif [[ " $commands " == *" $word "* ]]; then
            path+=" $word"
            __pylogctl_tables "$path"
        fi
    done
    case "$path ${connection[*]}" in
@BROKERS@
    esac
    if [[ $previous == -* && " $valued " == *" $previous "* ]]; then
        __pylogctl_values "$path" "$previous"
    elif [[ $current == -* ]]; then
        words=$options
    elif [[ $commands ]]; then
        words=$commands
    fi
    case $words in
    @file) mapfile -t COMPREPLY < <(compgen -f -- "$current"); compopt -o filenames ;;
    @dir) mapfile -t COMPREPLY < <(compgen -d -- "$current"); compopt -o filenames ;;
    @*) __pylogctl_lookup "${words#@}" "$current" ;;
    *)
        # Of a list of columns the last is completed.
        word=''
        [[ $previous == --columns && $current == *,* ]] && word=${current%,*},
        mapfile -t COMPREPLY < <(compgen -P "$word" -W "$words" -- "${current#"$word"}")
        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
        ;;
    esac
    # Of a word with a colon bash replaces only what follows that.
    word=${current%"${COMP_WORDS[COMP_CWORD]##*:}"}
    [[ $current == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"$word"}")
}

complete -F _pylogctl pylogctl
"""


def bash(tree: CommandNode) -> str:
    """Return the completion script for bash."""
    tables = []
    values = []
    brokers = []
    for node in walk(tree):
        options = _options(node, tree)
        if found := _broker_settings(node):
            brokers.append(f"    {_after_broker(node)}) words={_quoted(' '.join(found))} ;;")
        flags = " ".join(flag for option in options for flag in option.flags)
        valued = " ".join(flag for o in options if o.takes_value for flag in o.flags)
        commands = " ".join(child.path[-1] for child in node.children)
        words = " ".join(_positional(node, tree))
        tables.append(
            f"    {_quoted(node.name)})\n"
            f"        commands={_quoted(commands)} words={_quoted(words)}\n"
            f"        options={_quoted(flags)}\n"
            f"        valued={_quoted(valued)} ;;"
        )
        for option in options:
            if option.takes_value and (found := _option_values(node, option)):
                cases = " | ".join(_quoted(f"{node.name} {flag}") for flag in option.flags)
                values.append(f"    {cases}) words={_quoted(' '.join(found))} ;;")
    return (
        _BASH.replace("@TABLES@", "\n".join(tables))
        .replace("@VALUES@", "\n".join(values))
        .replace("@BROKERS@", "\n".join(brokers))
    )


def _after_broker(node: CommandNode) -> str:
    """Return the pattern of bash and zsh for a command whose line has the option `--broker`."""
    return " | ".join(
        f"{_quoted(node.name)}*{_quoted(f' {flag} ')}*" for flag in ("-b", "--broker")
    )


def _positional(node: CommandNode, tree: CommandNode) -> tuple[str, ...]:
    """Return the words to offer for the first argument."""
    if node.path[1:] in {("help",), ("man",)}:
        return (*(child.path[-1] for child in tree.children), *TOPICS)
    return _values_of(node.arguments[0]) if node.arguments else ()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_ZSH = r"""#compdef pylogctl
# zsh completion for pylogctl. Made by `python -m pylogctl.cli.docgen`; do not edit.

__pylogctl_tables() {
    subcommands_=() flags_=() valued_=() choices_=()
    case $1 in
@TABLES@
    esac
}

__pylogctl_values() {
    choices_=()
    case "$1 $2" in
@VALUES@
    esac
}

__pylogctl_lookup() {
    local line
    local -a found
    while IFS= read -r line; do
        found+=("${line%%$'\t'*}")
    done < <("${words[1]}" __complete "$1" "$PREFIX" "${connection[@]}" 2>/dev/null)
    compadd -a found
}

_pylogctl() {
    local path_=pylogctl word previous skip='' i
    local -a subcommands_ flags_ valued_ choices_ connection names
    __pylogctl_tables "$path_"
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        if [[ -n $skip ]]; then
            skip=''
        elif [[ $word == -* ]]; then
            (( ${valued_[(Ie)$word]} )) && skip=1
            case $word in
            -Z|--zookeeper|-b|--broker|-c|--context) connection+=("$word" "${words[i+1]}") ;;
            esac
        else
            names=("${(@)subcommands_%%:*}")
            if (( ${names[(Ie)$word]} )); then
                path_+=" $word"
                __pylogctl_tables "$path_"
            fi
        fi
    done
    case "$path_ ${connection[*]}" in
@BROKERS@
    esac
    previous=${words[CURRENT-1]}
    if [[ $PREFIX == --*=* ]]; then
        previous=${PREFIX%%=*}
        compset -P '*='
        __pylogctl_values "$path_" "$previous"
    elif [[ $previous == -* ]] && (( ${valued_[(Ie)$previous]} )); then
        __pylogctl_values "$path_" "$previous"
    elif [[ $PREFIX == -* ]]; then
        _describe -o option flags_
        return
    elif (( $#subcommands_ )); then
        _describe command subcommands_
        return
    fi
    case ${choices_[1]} in
    @file) _files ;;
    @dir) _files -/ ;;
    @*) __pylogctl_lookup "${choices_[1]#@}" ;;
    *) compadd -a choices_ ;;
    esac
}

if [[ $funcstack[1] == _pylogctl ]]; then
    _pylogctl "$@"
else
    compdef _pylogctl pylogctl
fi
"""


def zsh(tree: CommandNode) -> str:
    """Return the completion script for zsh."""
    tables = []
    values = []
    brokers = []
    for node in walk(tree):
        options = _options(node, tree)
        if found := _broker_settings(node):
            words = " ".join(map(_quoted, found))
            brokers.append(f"    {_after_broker(node)}) choices_=({words}) ;;")
        described = [
            _quoted(f"{flag}:{_one_line(option.help)}")
            for option in options
            for flag in option.flags
        ]
        valued = [_quoted(flag) for o in options if o.takes_value for flag in o.flags]
        commands = [_quoted(f"{c.path[-1]}:{_one_line(c.summary)}") for c in node.children]
        tables.append(
            f"    {_quoted(node.name)})\n"
            f"        subcommands_=({' '.join(commands)})\n"
            f"        flags_=({' '.join(described)})\n"
            f"        valued_=({' '.join(valued)})\n"
            f"        choices_=({' '.join(map(_quoted, _positional(node, tree)))}) ;;"
        )
        for option in options:
            if option.takes_value and (found := _option_values(node, option)):
                cases = "|".join(_quoted(f"{node.name} {flag}") for flag in option.flags)
                values.append(f"    {cases}) choices_=({' '.join(map(_quoted, found))}) ;;")
    return (
        _ZSH.replace("@TABLES@", "\n".join(tables))
        .replace("@VALUES@", "\n".join(values))
        .replace("@BROKERS@", "\n".join(brokers))
    )


def _one_line(text: str) -> str:
    """Return a description for zsh, where a colon ends the name."""
    return text.partition(". ")[0].rstrip(".").replace(":", "\\:")


_FISH = r"""# fish completion for pylogctl. Made by `python -m pylogctl.cli.docgen`; do not edit.

function __pylogctl_at
    set -l words (commandline -opc)
    set -l valued @VALUED@
    set -l path
    set -l skip 0
    for word in $words[2..-1]
        if test $skip = 1
            set skip 0
        else if string match -q -- '-*' $word
            contains -- $word $valued; and set skip 1
        else if contains -- "$path $word" @PATHS@
            set path "$path $word"
        end
    end
    test "$path" = "$argv[1]"
end

function __pylogctl_lookup
    set -l words (commandline -opc)
    set -l connection
    for i in (seq 2 (count $words))
        if contains -- $words[$i] -Z --zookeeper -b --broker -c --context
            set -a connection $words[$i] $words[(math $i + 1)]
        end
    end
    pylogctl __complete $argv[1] (commandline -ct) $connection 2>/dev/null
end

complete -c pylogctl -f
@LINES@
"""


def fish(tree: CommandNode) -> str:
    """Return the completion script for fish."""
    lines = []
    valued: dict[str, None] = {}
    paths = []
    for node in walk(tree):
        at = "".join(f" {word}" for word in node.path[1:])
        if at:
            paths.append(_quoted(at))
        condition = f"complete -c pylogctl -n {_quoted(f'__pylogctl_at {shlex.quote(at)}')}"
        for child in node.children:
            lines.append(f"{condition} -a {child.path[-1]} -d {_quoted(child.summary)}")
        if of_brokers := _broker_settings(node):
            has_broker = "__fish_contains_opt -s b broker"
            at_command = f"__pylogctl_at {shlex.quote(at)}"
            lines.append(
                f"complete -c pylogctl -n {_quoted(f'{at_command}; and {has_broker}')} "
                f"{_fish_values(of_brokers)}"
            )
            condition_of_topics = _quoted(f"{at_command}; and not {has_broker}")
            lines.append(
                f"complete -c pylogctl -n {condition_of_topics} "
                f"{_fish_values(_positional(node, tree))}"
            )
        elif not node.children and (found := _positional(node, tree)):
            lines.append(f"{condition} {_fish_values(found)}")
        for option in _options(node, tree):
            lines.append(f"{condition} {_fish_option(node, option)}")
            valued.update(dict.fromkeys(option.flags if option.takes_value else ()))
    return (
        _FISH.replace("@VALUED@", " ".join(valued))
        .replace("@PATHS@", " ".join(paths))
        .replace("@LINES@", "\n".join(lines))
    )


def _fish_option(node: CommandNode, option: OptionNode) -> str:
    words = [
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
    ]
    words.append(f"-d {_quoted(option.help.partition('. ')[0].rstrip('.'))}")
    if option.takes_value:
        words.append("-r")
        words.append(_fish_values(_option_values(node, option)))
    return " ".join(filter(None, words))


def _fish_values(values: tuple[str, ...]) -> str:
    if not values:
        return ""
    if values == (FILES,):
        return "-F"
    if values == (DIRECTORIES,):
        return "-a '(__fish_complete_directories)'"
    if values[0].startswith("@") and len(values) == 1:
        return f"-a {_quoted(f'(__pylogctl_lookup {values[0][1:]})')}"
    return f"-a {_quoted(' '.join(values))}"


SHELLS: dict[str, Callable[[CommandNode], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
FILE_NAMES = {"bash": "pylogctl.bash", "zsh": "_pylogctl", "fish": "pylogctl.fish"}

"""Completion scripts for bash, zsh and fish: they ask the program what can be typed."""

from __future__ import annotations

_BASH = r"""# bash completion for pylogctl: asks the program.

_pylogctl() {
    local program=${COMP_WORDS[0]} current=$2 option='' line
    COMPREPLY=()
    [[ $program == '~/'* ]] && program=$HOME/${program:2}
    type -P "$program" >/dev/null || program=pylogctl # of an alias
    [[ $2 == --*=* ]] && option=${2%%=*}= current=${2#*=}
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <("$program" __complete bash "$2" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case ${COMPREPLY[0]} in
    @file) mapfile -t COMPREPLY < <(compgen -P "$option" -f -- "$current"); compopt -o filenames ;;
    @dir) mapfile -t COMPREPLY < <(compgen -P "$option" -d -- "$current"); compopt -o filenames ;;
    *=) compopt -o nospace ;;
    esac
}

complete -F _pylogctl pylogctl
"""

_ZSH = r"""#compdef pylogctl
# zsh completion for pylogctl: asks the program.

_pylogctl() {
    local line
    local -a names shown
    while IFS= read -r line; do
        names+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  }")
    done < <(${~words[1]} __complete zsh "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)
    [[ $PREFIX == --*=* ]] && compset -P '*='
    case ${names[1]} in
    @file) _files ;;
    @dir) _files -/ ;;
    *=) compadd -S '' -a names ;;
    *) compadd -l -d shown -a names ;;
    esac
}

if [[ $funcstack[1] == _pylogctl ]]; then
    _pylogctl "$@"
else
    compdef _pylogctl pylogctl
fi
"""

_FISH = r"""# fish completion for pylogctl: asks the program.

function __pylogctl_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set before[1] (string replace -r '^~/' ~/ -- $before[1])
    set -l found ($before[1] __complete fish $before[2..-1] "$current" 2>/dev/null)
    switch "$found[1]"
        case @file
            __fish_complete_path "$current"
        case @dir
            __fish_complete_directories "$current"
        case '*'
            string join -- \n $found
    end
end

complete -c pylogctl -f -a '(__pylogctl_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
FILE_NAMES = {"bash": "pylogctl.bash", "zsh": "_pylogctl", "fish": "pylogctl.fish"}

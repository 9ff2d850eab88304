# bash completion for pylogctl: asks the program.

_pylogctl() {
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} line
    COMPREPLY=()
    [[ $program == '~/'* ]] && program=$HOME/${program:2}
    type -P "$program" >/dev/null || program=pylogctl # of an alias
    [[ $current == [=:] ]] && current=''
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <("$program" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case ${COMPREPLY[0]} in
    @file) mapfile -t COMPREPLY < <(compgen -f -- "$current"); compopt -o filenames ;;
    @dir) mapfile -t COMPREPLY < <(compgen -d -- "$current"); compopt -o filenames ;;
    *=) compopt -o nospace ;;
    esac
}

complete -F _pylogctl pylogctl

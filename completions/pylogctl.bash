# bash completion for pylogctl: asks the program.

_pylogctl() {
    local current=${COMP_WORDS[COMP_CWORD]} line
    COMPREPLY=()
    [[ $current == [=:] ]] && current=''
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <("${COMP_WORDS[0]}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case ${COMPREPLY[0]} in
    @file) mapfile -t COMPREPLY < <(compgen -f -- "$current"); compopt -o filenames ;;
    @dir) mapfile -t COMPREPLY < <(compgen -d -- "$current"); compopt -o filenames ;;
    *=) compopt -o nospace ;;
    esac
}

complete -F _pylogctl pylogctl

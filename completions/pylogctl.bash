# bash completion for pylogctl: asks the program.

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

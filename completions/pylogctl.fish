# fish completion for pylogctl: asks the program.

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

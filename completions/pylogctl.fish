# fish completion for pylogctl. Made by `python -m pylogctl.cli.docgen`; do not edit.

function __pylogctl_at
    set -l words (commandline -opc)
    set -l valued --output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress --config --id --host --port --listen --data --zookeeper-port --metrics-port --ready-file --ready-fd --pid-file --log-file --throttle -D --delimiter -L --length-prefixed --csv-column --on-error -n --max-messages -p --partition --partitioner -k --key -K --key-delimiter -z --codec --batch-messages --batch-bytes --linger --rate --max-size --on-broker-loss --receipt --resume --audit --time-field --include --exclude -o --offset --wait-for-topic --order -g --group --commit --grep --grep-at --where --sample --skip --idle-timeout --on-corrupt --payload-encoding -F --format --to-dir --exec --retry-dir --retries --max-attempts --from --from-context --to --to-context --topic --since --view --into --filter --interval --batch --partitions --partitions-per-broker --replication-factor --set --confirm --plan --at --payload -t --bytes-in --bytes-out --work --connections --state --by --window --fail-above --min-lag --allowed-lag --count --wait-inactive --file --wait --jobs --max-errors --engine --on-broker --path --topic-map --streams --producers --queue --target-offset --tier --reference --grace --file-size --into-table --until --avro-schemas --avro-reader --date-field --date-regex --date-format --year --corrupt --master --spark-conf --keep --schema --to-topic --size --slide --session --top --top-by --value-field --key-field --pattern --time-format --time-zone --checkpoint --watermark --table --table-column --within --how --load --messages --duration --save --threads --payload-file --warmup --fail-below --depth --if-version --public-host --token-file
    set -l path
    set -l skip 0
    for word in $words[2..-1]
        if test $skip = 1
            set skip 0
        else if string match -q -- '-*' $word
            contains -- $word $valued; and set skip 1
        else if contains -- "$path $word" ' broker' ' broker start' ' broker stop' ' broker status' ' broker decommission' ' broker list' ' produce' ' consume' ' copy' ' cluster' ' cluster describe' ' cluster health' ' cluster recover' ' cluster keys' ' cluster rotate-key' ' cluster changes' ' top' ' topic' ' topic list' ' topic describe' ' topic create' ' topic alter' ' topic elect' ' topic reassign' ' topic delete' ' topic offsets' ' topic watermarks' ' topic sample' ' topic count' ' config' ' config set' ' config unset' ' config list' ' config show' ' config diff' ' user' ' user add' ' user list' ' user password' ' user quota' ' user remove' ' acl' ' acl add' ' acl remove' ' acl list' ' acl check' ' group' ' group list' ' group describe' ' group lag' ' group members' ' group verify' ' group watch' ' group reset' ' group export' ' group import' ' group clone' ' group delete' ' group rebalance' ' retry' ' retry list' ' retry drain' ' log' ' log dump' ' log grep' ' log index' ' log verify' ' log stat' ' log recover' ' log repair' ' log split' ' log merge' ' log replay' ' log move' ' log compare' ' mirror' ' mirror run' ' mirror status' ' mirror verify' ' metrics' ' metrics serve' ' metrics dump' ' audit' ' audit show' ' audit check' ' pipeline' ' pipeline load' ' pipeline compact' ' pipeline sql' ' pipeline window' ' pipeline join' ' pipeline audit' ' pipeline verify' ' perf' ' perf produce' ' perf consume' ' perf e2e' ' perf compare' ' perf report' ' zk' ' zk ls' ' zk tree' ' zk get' ' zk stat' ' zk find' ' zk watch' ' zk sessions' ' zk health' ' zk set' ' zk create' ' zk rm' ' zk export' ' zk import' ' zk diff' ' zk secure' ' zk open' ' zk shell' ' zk start' ' web' ' context' ' context list' ' context show' ' context use' ' context add' ' context current' ' context rename' ' context test' ' context remove' ' doctor' ' completion' ' man' ' help' ' version'
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
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a broker -d 'Start, stop and look at brokers'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a produce -d 'Write messages from stdin or files to a topic'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a consume -d 'Read messages of topics to stdout'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a copy -d 'Copy messages from topic to topic'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a cluster -d 'Look at the brokers, leaders and replicas of a whole cluster'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a top -d 'Watch a cluster live'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a topic -d 'List, describe, create, delete, count and sample topics'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a config -d 'Change settings of topics and brokers while they run'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a user -d 'Add, list and remove users, and set their passwords and quotas'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a acl -d 'Say who may do what, and find out why somebody may not'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a group -d 'Look at, move and repair consumer groups'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a retry -d 'List and drain messages whose handling failed'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a log -d 'Look into segment files, verify, mend and replay them; move logs'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a mirror -d 'Mirror topics into another cluster'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a metrics -d 'Serve the lag and status of groups to Prometheus'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a audit -d 'Compare message counts along a pipeline'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a pipeline -d 'Load, query, compare and verify topics on Spark'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a perf -d 'Measure throughput and latency'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a zk -d 'Look into ZooKeeper, change nodes, or start a server'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a web -d 'Serve a JSON API and pages over a cluster'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a context -d 'Name clusters, and choose the one that commands use'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a doctor -d 'Check that everything needed is in place'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a completion -d 'Print a shell completion script'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a man -d 'Show a manual page'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a help -d 'Explain a command or a topic'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -a version -d 'Show versions of program and libraries'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'''\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'''\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l columns -d 'Choose and order columns; `help` lists them' -r
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l sort -d 'Sort by a column; - reverses' -r
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'''\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -a start -d 'Run a broker until it is told to stop'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -a stop -d 'Shut a broker down without losing anything'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -a status -d 'Show the state of brokers, and name the partitions that their disks fail'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -a decommission -d 'Move all replicas away from a broker, so that it can be stopped for good'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -a list -d 'List the brokers of the cluster'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'id host port creator since session topics state first_topics all_topics broker zookeeper pid data phase uptime partitions bytes connections produce_rate fetch_rate last_flush clean_start registered failing storage software codec listeners certificate_expires directories failures retention_waits settings_problems metrics step seconds done note'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'id host port creator since session topics state first_topics all_topics broker zookeeper pid data phase uptime partitions bytes connections produce_rate fetch_rate last_flush clean_start registered failing storage software codec listeners certificate_expires directories failures retention_waits settings_problems metrics step seconds done note'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' broker'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l config -d 'Settings: Java properties, or TOML (*.toml)' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l id -d 'Number in the cluster' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l host -d 'Address to listen on' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l port -d 'Port to listen on; 0 picks a free one, -1: only --listen' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l listen -d 'Listen there as well; or plain://' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l data -d 'Data directory, or several: DIR,DIR' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l no-zookeeper -d 'Run without ZooKeeper'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l zookeeper-port -d 'Port of the embedded ZooKeeper; 0 picks a free one' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l metrics-port -d 'Serve metrics for Prometheus, without HOST for this machine alone; 0 picks a free port' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l metrics-no-partitions -d 'Serve no metrics of single partitions'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l ephemeral -d 'A temporary directory, no ZooKeeper, a free port; deleted at the end'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l check-config -d 'Validate the settings and their files, and end'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l ready-file -d 'Write the READY line there too' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l ready-fd -d 'And to this open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l daemon -d 'Go to the background once ready'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l pid-file -d 'Keep the process id there' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l log-file -d 'Write the log there, not to stderr' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l output -d 'Write the result to stdout in this format, instead of a line on stderr' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' broker start'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l pid-file -d 'Stop the process named there instead' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l force -d 'Do not wait for producers of 0.7; logs are still flushed'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l with-zookeeper -d 'Stop a broker that runs the embedded ZooKeeper although others use that'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l kill -d 'Kill the process if it has not stopped within --timeout'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l output -d 'Write the result to stdout in this format, instead of a line on stderr' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' broker stop'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'broker host port phase uptime topics partitions bytes connections produce_rate fetch_rate last_flush clean_start session registered failing storage pid data zookeeper software codec listeners certificate_expires directories failures retention_waits settings_problems metrics'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'broker host port phase uptime topics partitions bytes connections produce_rate fetch_rate last_flush clean_start session registered failing storage pid data zookeeper software codec listeners certificate_expires directories failures retention_waits settings_problems metrics'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' broker status'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l throttle -d 'Most bytes that each broker copies: 50MB/s; none lifts it' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition replicas target'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition replicas target'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' broker decommission'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'id host port creator since session topics state first_topics all_topics'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'id host port creator since session topics state first_topics all_topics'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' broker list'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s D -l delimiter -d 'What ends a message, escapes allowed; '\'''\'' makes one of all' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s 0 -l null -d 'Same as -D '\''\0'\'''
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s L -l length-prefixed -d 'A length stands before each message; u32be if left out' -r -a 'u32be u32le u64be varint'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l hex -d 'A hexadecimal line each'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l base64 -d 'A base64 line each'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l jsonl -d 'A JSON object each, as consume --jsonl writes it'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l strict -d 'Refuse unknown fields of --jsonl'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l whole -d 'All of the input is one message'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l each-file -d 'Each FILE is one message'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l csv-column -d 'One column of CSV with a header line' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l skip-empty -d 'Leave out messages without a byte'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l template -d 'Replace {i} {now} {uuid} {rand:16} in messages'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l on-error -d 'At a message that cannot be sent: stop, or leave it out and end with 6' -r -a 'stop skip'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s n -l max-messages -d 'Stop after exactly N messages' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s p -l partition -d 'Write to this one: 0, or 2-0 (broker-partition)' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l partitioner -d 'How partitions are chosen; sticky: one for the run, which keeps the order' -r -a 'sticky random round-robin hash'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s k -l key -d 'Key of all messages; chooses the partition, is not stored' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s K -l key-delimiter -d 'A key stands before the first STR of each message; it chooses the partition and is not stored' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l keep-partition -d 'The partition each --jsonl object names'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s z -l codec -d 'Compression; 0.7 knows only gzip and snappy' -r -a 'none gzip snappy lz4 zstd'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l batch-messages -d 'Messages of a request at most' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l batch-bytes -d 'Size of a request at most, unless one message is larger' -r -a '64KiB 1MiB 16MiB 1GiB'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l linger -d 'How long a message waits for more' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l sync -d 'One request per message, one after another'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l rate -d 'No faster than this: 1000/s, 5MiB/s' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l max-size -d 'Largest message; brokers have their own limit' -r -a '64KiB 1MiB 16MiB 1GiB'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l on-broker-loss -d 'When a broker is lost: send on to another partition (of topics without replicas), wait for the next leader, or fail' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l no-barrier -d 'End without waiting until all can be read: faster, but a crash of the machine can lose it and a consumer may not see it yet'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l verify -d 'Read everything back and compare CRCs; status 8 on a difference'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l tee -d 'Copy accepted input to stdout'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l receipt -d 'Write a JSON line for each message that is safe on disk' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l resume -d 'Leave out what this receipt says is sent already' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l audit -d 'Publish to TOPIC how many messages were confirmed in each time window, of 10m or DUR; pylogctl audit compares' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l time-field -d 'With --audit: field of JSON messages that has their time, such as .meta.ts' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l output -d 'Write the result to stdout in this format, instead of a line on stderr' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' produce'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l include -d 'Read every topic whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l exclude -d 'Leave out topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s p -l partition -d 'Partitions: 0, 2-0, *-0, 0,1 or 0..3' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s o -l offset -d 'Where to start, and to end: START[:END]; see pylogctl-offsets(7)' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l from-beginning -d 'Same as -o start'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l strict-offset -d 'An offset out of range is an error, not moved into it, or to the start if a group had stored it'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l wait-for-topic -d 'Wait for a topic that does not exist yet' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s e -l exit-at-end -l no-follow -l follow -s f -d 'Stop where each partition ended at the start'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l allow-missing -d 'Warn of partitions that cannot be read, and go on without them'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l order -d 'As messages come, or one partition after another (needs an end)' -r -a 'arrival partition'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s g -l group -d 'Share the topics with the other members of this group; all topics if none is named' -r -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l commit -d 'When the group'\''s offsets are stored' -r -a 'auto before exit none'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l metrics-port -d 'Serve metrics for Prometheus, without HOST for this machine alone; 0 picks a free port' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l grep -d 'Only messages whose payload matches; -n counts those' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s i -l ignore-case -d 'For --grep'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l invert -d 'Only messages --grep does not match'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l grep-at -d 'Where --grep is matched' -r -a 'consumer broker'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l where -d 'Only messages for which this holds, such as size>1000 (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l sample -d 'N of every M messages' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l skip -d 'Leave out the first N messages' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s n -l max-messages -d 'Stop after exactly N messages' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l idle-timeout -d 'Stop when nothing came for so long; status 7 if -n is not reached' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l on-corrupt -d 'Stop with status 8; leave out and end with 6; or write the stored bytes' -r -a 'stop skip raw'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s D -l delimiter -d 'Write this after each message, escapes allowed' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s 0 -l null -d 'Same as -D '\''\0'\'''
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s L -l length-prefixed -d 'Write the length before each message; u32be if left out' -r -a 'u32be u32le u64be varint'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l hex -d 'A hexadecimal line each'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l base64 -d 'A base64 line each'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l jsonl -d 'A JSON object each, with all that is known'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l payload-encoding -d 'How --jsonl writes payloads' -r -a 'auto utf8 base64 hex'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l raw -d 'Payloads exactly, nothing between them; on a terminal too without escapes'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s F -l format -d 'Write messages in this format; see pylogctl-formats(7)' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l to-dir -d 'A file for each message' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l no-final-delimiter -d 'Delimiter between messages, not after each'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l strict-framing -d 'A payload that holds the delimiter is an error (status 8)'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s u -l unbuffered -d 'Flush after each message'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l exec -d 'Run CMD for each message, its payload on stdin; {topic}, {partition}, {offset}, {next_offset}, {size} and {number} are filled in' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l retry-dir -d 'With --exec and --group: keep messages for which CMD fails in DIR, go on with the others, and run CMD for those again from time to time' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l retries -d 'Run CMD again so often at once, before a message is kept' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l max-attempts -d 'Give a message up after N runs of CMD in all; it stays in DIR' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' consume'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -s o -l offset -d 'What to copy, START or START:END; see pylogctl help offsets' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -s n -l max-messages -d 'Stop after exactly N messages' -r
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l keep-partition -d 'To partitions of the same name (broker-partition), or not at all'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l rate -d 'No faster than this: 1000/s, 5MiB/s' -r
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l verify -d 'Read everything back and compare CRCs; status 8 on a difference'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l on-corrupt -d 'Stop at a corrupt message with status 8, or leave it out and end with 6' -r -a 'stop skip'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l strict-offset -d 'An offset out of range is an error, not moved'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l allow-missing -d 'Warn of partitions that cannot be read, and go on without them'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l from -l from-context -d 'Cluster to read from: a context, HOST:PORT[,..][/CHROOT] of its ZooKeeper, or brokers=HOST:PORT[,..]' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l to -l to-context -d 'Cluster to write to: a context, HOST:PORT[,..][/CHROOT] of its ZooKeeper, or brokers=HOST:PORT[,..]' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l output -d 'Write the result to stdout in this format, instead of a line on stderr' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' copy'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -a describe -d 'Show the brokers, the controller, and how partitions are spread'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -a health -d 'Check that brokers are there, disks work, partitions are led, and replicas are in sync'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -a recover -d 'Make topics again that ZooKeeper has lost, over the logs that brokers have of them'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -a keys -d 'Show the keys with which brokers prove themselves, and who accepts which; not the secrets'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -a rotate-key -d 'Give the brokers another key to prove themselves with, while they run'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -a changes -d 'Show who led what, when and why, from the state-change logs of all brokers in one order'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'at time broker epochs partition change kind topic name controller_epoch leader_epoch leader isr version offset text state live address rack controller leads preferred replicas in_sync offline offline_partitions check result count detail all key made until brokers copies restored loss creation_id settings'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'at time broker epochs partition change kind topic name controller_epoch leader_epoch leader isr version offset text state live address rack controller leads preferred replicas in_sync offline offline_partitions check result count detail all key made until brokers copies restored loss creation_id settings'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' cluster'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'broker state live address rack controller leads preferred replicas in_sync offline offline_partitions'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'broker state live address rack controller leads preferred replicas in_sync offline offline_partitions'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' cluster describe'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'check result count detail all'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'check result count detail all'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' cluster health'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l topic -d 'Only this topic, also if something of it would be lost' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l discard -d 'Delete the logs of live brokers instead, as of a topic that was deleted'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l execute -d 'Do it; without this only the plan is shown'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'partition leader copies replicas restored loss topic creation_id settings'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'partition leader copies replicas restored loss topic creation_id settings'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' cluster recover'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'key state made until brokers'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'key state made until brokers'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' cluster keys'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l now -d 'The key has leaked: end it at once, and do not wait for any broker'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' cluster rotate-key'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l topic -d 'This topic' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -s p -l partition -d 'Partitions: 0, 2-0, *-0, 0,1 or 0..3' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l since -d 'What happened in the last 10m, 1h, 2d .., by the clocks of the brokers' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l follow -d 'Go on with what comes, until interrupted'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'at time broker epochs partition change kind topic name controller_epoch leader_epoch leader isr version offset text'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'at time broker epochs partition change kind topic name controller_epoch leader_epoch leader isr version offset text'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' cluster changes'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l view -d 'What to show first' -r -a 'overview brokers topics groups replication requests'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l into -d 'Go into this row: a topic, a group, a broker, or a request' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l filter -d 'Rows with this in a name; ~RE: that a regex finds' -r
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l interval -d 'Time between two looks, 500ms to 60s' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l batch -d 'Write N looks without escape codes, and end' -r
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'time broker name value address state cpu leads replicas under_replicated messages_in bytes_in bytes_out requests connections produce_p99 disk uptime age error group topic partition owner offset stored end lag_bytes commit_age rate eta status members partitions leader epoch isr start unflushed size segments lag stalled follower not_in_sync fetches request errors p50 p99 queue local remote send waiting replication_factor offline last'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'time broker name value address state cpu leads replicas under_replicated messages_in bytes_in bytes_out requests connections produce_p99 disk uptime age error group topic partition owner offset stored end lag_bytes commit_age rate eta status members partitions leader epoch isr start unflushed size segments lag stalled follower not_in_sync fetches request errors p50 p99 queue local remote send waiting replication_factor offline last'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' top'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a list -d 'List topics with their size'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a describe -d 'Show the partitions of topics: broker, state, offsets, segments, size and age'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a create -d 'Create a topic, its partitions spread over the brokers'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a alter -d 'Change how many partitions, or replicas, a topic has'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a elect -d 'Give leaderships back to the preferred replicas, the first of each partition'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a reassign -d 'Move partitions to other brokers, with their messages, while they are used'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a delete -d 'Delete topics from ZooKeeper and, with --data, from the brokers'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a offsets -d 'Find the offsets that an expression means in each partition now'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a watermarks -d 'Show the offsets that bound each partition: log start, high watermark, log end'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a sample -d 'Show a few messages of each partition, with their offsets'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -a count -d 'Count the messages of each partition, by reading all of them'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition start end bytes messages inner end_inner broker before partitions action leader replicas isr min_isr group state offline under_replicated address epoch lag lags segments last_append settings result reason name brokers target original copying left percent throttle offset next_offset size codec crc payload log_start high_watermark log_end pending_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition start end bytes messages inner end_inner broker before partitions action leader replicas isr min_isr group state offline under_replicated address epoch lag lags segments last_append settings result reason name brokers target original copying left percent throttle offset next_offset size codec crc payload log_start high_watermark log_end pending_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l include -d 'Only topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l exclude -d 'Leave out topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l count -d 'Count messages too, by reading all of them'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'name brokers partitions replicas offline under_replicated state bytes messages'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'name brokers partitions replicas offline under_replicated state bytes messages'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic list'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition leader state offline under_replicated address epoch replicas isr min_isr lag lags start end segments bytes last_append settings'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition leader state offline under_replicated address epoch replicas isr min_isr lag lags start end segments bytes last_append settings'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic describe'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l partitions -d 'Partitions of all brokers together' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l partitions-per-broker -d 'Partitions on each broker, without replicas' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -s b -l broker -d 'Broker to create it on (repeatable), by id' -r -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l if-not-exists -d 'Leave a topic that exists as it is: exit 0'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l replication-factor -d 'Copies of each partition, spread over the brokers by the controller' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l set -d 'With --replication-factor: a setting of the topic (repeatable)' -r -a 'segment.bytes= segment.ms= retention.ms= retention.bytes= flush.messages= flush.ms= flush.before.read= partition.count= min.insync.replicas= unclean.leader.election.enable='
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic broker before partitions action partition leader replicas isr min_isr'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic broker before partitions action partition leader replicas isr min_isr'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic create'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l partitions -d 'Partitions of all brokers together' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l partitions-per-broker -d 'Partitions on each broker, without replicas' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l replication-factor -d 'Copies of each partition to have' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic broker before partitions action'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic broker before partitions action'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic alter'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l unclean -d 'Let a replica lead that is not in sync, where there is no leader: acknowledged messages may be lost'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l confirm -d 'With --yes and --unclean: the topic'\''s name' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition result reason'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition result reason'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic elect'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l to -d 'Brokers to use' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l replication-factor -d 'Copies to have' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l plan -d 'With execute: the plan; - for stdin' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l throttle -d 'Most bytes that each broker copies: 50MB/s; none lifts it' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition replicas target original copying left percent throttle'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition replicas target original copying left percent throttle'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic reassign'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l data -d 'Delete the logs on brokers too, with all messages'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l group-offsets -d 'Delete the offsets that groups have stored, too'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l if-exists -d 'A topic that does not exist is no error: exit 0'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l confirm -d 'With --yes: the topic'\''s name (repeat it for each of several topics)' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic broker partitions group action'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic broker partitions group action'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic delete'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l at -d 'Offset expression, START or START:END' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -s p -l partition -d 'Partitions: 0, 2-0, *-0, 0,1 or 0..3' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l strict-offset -d 'An offset out of range is an error, not moved'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l allow-missing -d 'Warn of partitions that cannot be read, and go on without them'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition start end bytes inner end_inner'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition start end bytes inner end_inner'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic offsets'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -s p -l partition -d 'Partitions: 0, 2-0, *-0, 0,1 or 0..3' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition log_start high_watermark log_end pending_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition log_start high_watermark log_end pending_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic watermarks'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -s n -l max-messages -d 'Messages of each partition' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -s o -l offset -d 'Offsets to read, START or START:END' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -s p -l partition -d 'Partitions: 0, 2-0, *-0, 0,1 or 0..3' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l payload -d 'How payloads are shown' -r -a 'utf8 hex base64 escape'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l allow-missing -d 'Warn of partitions that cannot be read, and go on without them'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition offset next_offset inner size codec crc payload'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition offset next_offset inner size codec crc payload'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic sample'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -s o -l offset -d 'Offsets to read, START or START:END' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -s p -l partition -d 'Partitions: 0, 2-0, *-0, 0,1 or 0..3' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l strict-offset -d 'An offset out of range is an error, not moved'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l allow-missing -d 'Warn of partitions that cannot be read, and go on without them'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition start end bytes messages inner end_inner'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition start end bytes messages inner end_inner'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' topic count'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -a set -d 'Set settings of a topic or a broker, for good, and wait until brokers apply them'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -a unset -d 'Remove settings of a topic or a broker; those of the brokers'\'' files hold again'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -a list -d 'List the settings in ZooKeeper, or all that are in effect for a topic or on a broker'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -a show -d 'Show which cluster commands use here, and other options that files and variables set'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -a diff -d 'Show settings that differ: between brokers, from a broker'\''s file, from the defaults'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'setting value origin change doc start default others brokers topic broker before after node option applied'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'setting value origin change doc start default others brokers topic broker before after node option applied'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' config'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''; and __fish_contains_opt -s b broker' -a 'num.partitions= topic.partition.count.map= max.message.size= log.file.size= topic.log.file.size= log.roll.hours= log.roll.minutes= log.roll.ms= topic.log.roll.hours= log.retention.hours= log.retention.minutes= log.retention.ms= topic.log.retention.hours= log.retention.size= topic.log.retention.size= log.cleanup.interval.mins= log.retention.check.interval.ms= log.cleanup.times= log.flush.interval= topic.log.flush.interval= log.default.flush.interval.ms= topic.flush.intervals.ms= log.flush.before.read= log.checkpoint.interval.ms= max.fetch.wait.ms= max.fetch.positions= max.connections= max.connections.per.ip= quota.producer.default= quota.consumer.default= quota.request.default= quota.creation.default= max.partitions= max.connection.creation.rate= connections.max.idle.ms='
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''; and not __fish_contains_opt -s b broker' -a 'segment.bytes= segment.ms= retention.ms= retention.bytes= flush.messages= flush.ms= flush.before.read= partition.count= min.insync.replicas= unclean.leader.election.enable='
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -s t -l topic -d 'The settings of a topic' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -s b -l broker -d 'Those of a broker, by its id or its address' -r -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l absent -d 'Accept a topic that is not created yet, or a broker that is down'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic broker setting before after node'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic broker setting before after node'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' config set'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''; and __fish_contains_opt -s b broker' -a 'num.partitions topic.partition.count.map max.message.size log.file.size topic.log.file.size log.roll.hours log.roll.minutes log.roll.ms topic.log.roll.hours log.retention.hours log.retention.minutes log.retention.ms topic.log.retention.hours log.retention.size topic.log.retention.size log.cleanup.interval.mins log.retention.check.interval.ms log.cleanup.times log.flush.interval topic.log.flush.interval log.default.flush.interval.ms topic.flush.intervals.ms log.flush.before.read log.checkpoint.interval.ms max.fetch.wait.ms max.fetch.positions max.connections max.connections.per.ip quota.producer.default quota.consumer.default quota.request.default quota.creation.default max.partitions max.connection.creation.rate connections.max.idle.ms'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''; and not __fish_contains_opt -s b broker' -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -s t -l topic -d 'The settings of a topic' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -s b -l broker -d 'Those of a broker, by its id or its address' -r -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l all -d 'All settings; also repairs a damaged node'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic broker setting before after node'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic broker setting before after node'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' config unset'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -s t -l topic -d 'The settings of a topic' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -s b -l broker -d 'Those of a broker, by its id or its address' -r -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'setting value origin change doc topic broker node brokers default applied'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'setting value origin change doc topic broker node brokers default applied'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' config list'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l origin -d 'Say where each value comes from'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'option value origin'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'option value origin'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' config show'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -s t -l topic -d 'The settings of a topic' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -s b -l broker -d 'Those of a broker, by its id or its address' -r -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'setting value origin start default others brokers applied doc'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'setting value origin start default others brokers applied doc'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' config diff'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -a add -d 'Add a user, who logs in at brokers with a password, and wait until they know it'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -a list -d 'List the users; passwords and what checks them are not shown'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -a password -d 'Give a user another password; the one of before is not accepted any more'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -a quota -d 'Show quotas, or set what a user may use of each broker'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -a remove -d 'Remove users, and wait until brokers know it: their connections end within seconds'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'user mechanism iterations settings bytes_in bytes_out work connections'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'user mechanism iterations settings bytes_in bytes_out work connections'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' user'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l password-file -d 'Take the first line of a file as the password' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l password-fd -d 'Read the password from an open descriptor; 0 is stdin' -r
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l generate -d 'Make a password, and write it to stdout, once'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' user add'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'user mechanism iterations settings'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'user mechanism iterations settings'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' user list'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l password-file -d 'Take the first line of a file as the password' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l password-fd -d 'Read the password from an open descriptor; 0 is stdin' -r
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l generate -d 'Make a password, and write it to stdout, once'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' user password'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l bytes-in -d 'Most bytes a second from the user' -r
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l bytes-out -d 'Most bytes a second to the user' -r
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l work -d 'Most work for the user, of one thread'\''s time' -r
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l connections -d 'Most connections of the user at a time' -r
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'user bytes_in bytes_out work connections'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'user bytes_in bytes_out work connections'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' user quota'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' user remove'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -a add -d 'Allow a user to do something, and wait until all brokers judge by it'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -a remove -d 'Remove rules, and wait until all brokers judge without them'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -a list -d 'List the rules'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -a check -d 'Say whether a user may do something, and which rule decides it; status 15 if not'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'id effect principal operation resource host allowed role'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'id effect principal operation resource host allowed role'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' acl'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l deny -d 'Forbid it; that wins over all rules that allow it'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l host -d 'The IP address of the client; * is each' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'id effect principal operation resource host'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'id effect principal operation resource host'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' acl add'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'id effect principal operation resource host'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'id effect principal operation resource host'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' acl remove'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'id effect principal operation resource host'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'id effect principal operation resource host'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' acl list'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l host -d 'The IP address of the client; * is each' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'allowed role id effect principal operation resource host'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'allowed role id effect principal operation resource host'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' acl check'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a list -d 'List groups with their state and lag'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a describe -d 'Show the owners, offsets, lag and rate of a group; the last line is the total'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a lag -d 'Show how far a group is behind, and judge each partition'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a members -d 'Show the members of a group: subscription, time of joining, assigned partitions'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a verify -d 'Check that every partition has one live owner, and that no owner node is stale'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a watch -d 'Show the lag of a group repeatedly, until interrupted'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a reset -d 'Move a group to other offsets; shows the plan only, unless --execute is given'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a export -d 'Write the offsets of groups to stdout, in a form that `group import` reads'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a import -d 'Set the offsets of groups from a file; shows the plan only, unless --execute is given'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a clone -d 'Create a group with the offsets of another one'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a delete -d 'Delete a group: its offsets and all its nodes. A group with members is refused'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -a rebalance -d 'Make all members of a group rebalance, and wait until they have'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group path action topic partition owner offset stored end lag_bytes lag_msgs commit_age rate eta status state members topics partitions member committed age oldest_commit subscription streams since session old_owner new_owner current new delta_bytes direction note kind detail'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group path action topic partition owner offset stored end lag_bytes lag_msgs commit_age rate eta status state members topics partitions member committed age oldest_commit subscription streams since session old_owner new_owner current new delta_bytes direction note kind detail'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l state -d 'Only groups with members, with offsets only, or with neither' -r -a 'active empty dead'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group state members topics lag_bytes oldest_commit'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group state members topics lag_bytes oldest_commit'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group list'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l by -d 'One row for each of these' -r -a 'partition topic member group'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -s t -l topic -d 'Only this topic (repeatable)' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l count -d 'Count messages too, by reading all that lags'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l window -d 'Observe the group for so long, to know trends' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group topic partition owner offset stored end lag_bytes lag_msgs commit_age rate eta status state members topics partitions member'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group topic partition owner offset stored end lag_bytes lag_msgs commit_age rate eta status state members topics partitions member'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group describe'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -s t -l topic -d 'Only this topic (repeatable)' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l fail-above -d 'Exit 12 if the total lag is more: 64MiB, or 1000 messages, which are counted' -r
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l min-lag -d 'Show only partitions with at least so much, or with unknown lag' -r -a '64KiB 1MiB 16MiB 1GiB'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l allowed-lag -d 'Lag of a partition that is OK' -r -a '64KiB 1MiB 16MiB 1GiB'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l count -d 'Count messages too, by reading all that lags'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l window -d 'Observe the group for so long, to know trends' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group topic partition offset stored end lag_bytes lag_msgs age rate eta status'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group topic partition offset stored end lag_bytes lag_msgs age rate eta status'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group lag'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group member subscription topics streams partitions since session'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group member subscription topics streams partitions since session'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group members'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group kind topic partition owner detail'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group kind topic partition owner detail'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group verify'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l interval -d 'Time between two samples' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l count -d 'Stop after so many samples' -r
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group watch'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l to -d 'Where to: an offset expression, or shift:+N, shift:-SIZE, by:-1h, group:OTHER, file:PATH' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -s t -l topic -d 'Topic to reset (repeatable)' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l all-topics -d 'Reset all topics of the group'\''s members, offsets and owners'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -s p -l partition -d 'Partitions: 0, 2-0, *-0, 0,1 or 0..3' -r
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l execute -d 'Do it; without this only the plan is shown'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l force -d 'Do it although the group has members; they may write over it'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l wait-inactive -d 'Wait for the group to have no members; exit 7 if it still has' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group topic partition current new delta_bytes direction note'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group topic partition current new delta_bytes direction note'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group reset'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l output -d 'Format; zk07 is the one of Kafka 0.7'\''s export tool' -r -a 'jsonl csv zk07 table json tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group topic partition offset committed'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group topic partition offset committed'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group export'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l file -d 'Offsets to read; - for stdin' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l execute -d 'Do it; without this only the plan is shown'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l force -d 'Do it although the group has members; they may write over it'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l wait-inactive -d 'Wait for the group to have no members; exit 7 if it still has' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group topic partition current new delta_bytes direction note'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group topic partition current new delta_bytes direction note'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group import'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group topic partition current new delta_bytes direction note'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group topic partition current new delta_bytes direction note'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group clone'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l confirm -d 'The group'\''s name again; with --yes nothing is asked' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l if-exists -d 'A group that does not exist is no error: exit 0'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group path action'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group path action'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group delete'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l wait -d 'How long to wait for the rebalance to end' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'group topic partition old_owner new_owner'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'group topic partition old_owner new_owner'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' group rebalance'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -a list -d 'List the messages in a retry store, oldest first'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -a drain -d 'Take messages out of a retry store: run a command for each'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition offset next_offset inner size attempts state next_attempt error payload'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition offset next_offset inner size attempts state next_attempt error payload'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' retry'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition offset next_offset inner size attempts state next_attempt error payload'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition offset next_offset inner size attempts state next_attempt error payload'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' retry list'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -l all -d 'Every message, dead ones too'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -l exec -d 'Run CMD once for each message, as consume does' -r
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' retry drain'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a dump -d 'Show the messages of segment files'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a grep -d 'Show the messages of segment files whose payload matches'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a index -d 'List where each message, or compressed set, of segment files starts'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a verify -d 'Check every byte of segment files, and that the files of a log have no gap or overlap'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a stat -d 'Measure segment files: sizes, codecs and compression'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a recover -d 'Cut segment files after their last valid message'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a repair -d 'Write a copy of a segment file without its damaged spans'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a split -d 'Write the messages of a segment file before a position, and those behind it, as two'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a merge -d 'Write segment files of one log that follow one another, also archived ones, as one'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a replay -d 'Send the messages of segment files and archives to a topic'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a move -d 'Move a log to another data directory of a broker that runs'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -a compare -d 'Compare the replicas of partitions byte by byte, up to what is committed'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'log result start end bytes copies offset groups segments file pos size magic codec crc valid inner payload payload_b64 payload_hex topic partition broker directory seconds cut_at cut_bytes fault messages_kept later_segments backup done kind left_out_bytes target next_offset messages entries min avg max codecs ratio magics sizes payload_bytes valid_bytes expected found bytes_after skipped_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'log result start end bytes copies offset groups segments file pos size magic codec crc valid inner payload payload_b64 payload_hex topic partition broker directory seconds cut_at cut_bytes fault messages_kept later_segments backup done kind left_out_bytes target next_offset messages entries min avg max codecs ratio magics sizes payload_bytes valid_bytes expected found bytes_after skipped_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -s o -l offset -d 'Part to show' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -s n -l max-messages -d 'Stop after exactly N messages' -r
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l shallow -d 'Show compressed entries as one, not what is inside'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l no-payload -d 'Leave payloads out'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l payload -d 'How payloads are shown' -r -a 'utf8 hex base64 escape'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -s F -l format -d 'Write messages in this format; see pylogctl-formats(7)' -r
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file pos offset size magic codec crc valid inner payload payload_b64 payload_hex'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file pos offset size magic codec crc valid inner payload payload_b64 payload_hex'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log dump'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -s o -l offset -d 'Part to search' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -s n -l max-messages -d 'Stop after exactly N messages' -r
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -s i -l ignore-case -d 'Ignore the case of letters'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l invert -d 'Messages that do not match'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -s F -l format -d 'Write messages in this format; see pylogctl-formats(7)' -r
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file pos offset size magic codec crc valid inner payload payload_b64 payload_hex'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file pos offset size magic codec crc valid inner payload payload_b64 payload_hex'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log grep'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file pos offset bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file pos offset bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log index'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l deep -l shallow -d 'Unfold compressed entries too (--deep, the default)'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l jobs -d 'Processes' -r
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l max-errors -d 'Stop in a file after N problems' -r
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l engine -d 'Implementation of CRC-32; zlib and crcmod are independent, crcmod is slow' -r -a 'codec zlib crcmod'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file pos kind expected found bytes_after skipped_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file pos kind expected found bytes_after skipped_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log verify'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file bytes entries messages min avg max codecs ratio fault magics sizes payload_bytes valid_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file bytes entries messages min avg max codecs ratio fault magics sizes payload_bytes valid_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log stat'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l execute -d 'Do it; without this only the plan is shown'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l no-backup -d 'Do not keep the cut bytes in a side file'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l confirm -d 'With --yes: the file'\''s name, or `all` for several files' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file bytes cut_at cut_bytes fault messages_kept later_segments backup done'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file bytes cut_at cut_bytes fault messages_kept later_segments backup done'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log recover'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l to -d 'The copy; it must not exist' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file pos kind left_out_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file pos kind left_out_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log repair'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l at -d 'Position in the file at which a message starts' -r
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l to -d 'Where the two segments go' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file start end'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file start end'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log split'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l to -d 'Where the segment goes' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file start end'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file start end'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log merge'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s t -l topic -d 'Topic to write to' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s p -l partition -d 'Write to this one: 0, or 2-0 (broker-partition)' -r
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s o -l offset -d 'Part of each file to send' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l rate -d 'No faster than this: 1000/s, 5MiB/s' -r
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l output -d 'Write the result to stdout in this format, instead of a line on stderr' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log replay'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l to -d 'A data directory of the broker, a path on its machine' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l on-broker -d 'Whose log' -r -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic partition broker directory bytes seconds'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic partition broker directory bytes seconds'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log move'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -s p -l partition -d 'Partitions: 0, 2-0, *-0, 0,1 or 0..3' -r
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l path -d 'Compare files instead (repeatable): data directories of brokers, directories of logs, or segments' -r
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'log result start end bytes copies offset groups segments'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'log result start end bytes copies offset groups segments'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' log compare'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -a run -d 'Mirror topics until stopped by a signal'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -a status -d 'Show the lag of a mirror, by the offsets committed in the source'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -a verify -d 'Compare topics with their mirrors, by CRC and length of every message'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic target partitions target_partitions bytes action group messages seconds last_error error_time corrupt end mirrored lag_bytes rate mirrors failing target_messages missing surplus digest target_digest status'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic target partitions target_partitions bytes action group messages seconds last_error error_time corrupt end mirrored lag_bytes rate mirrors failing target_messages missing surplus digest target_digest status'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' mirror'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l include -d 'Only topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l exclude -d 'Leave out topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l topic-map -d 'Substitution that makes the name of the target topic, such as s/^/a./ (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -s g -l group -d 'Consumer group in the source that has the offsets of the mirror' -r -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l streams -d 'Threads that consume from the source' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l producers -d 'Threads that send to the target' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l queue -d 'Capacity of the queue of each producer, in message sets' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l metrics-port -d 'Serve metrics for Prometheus, without HOST for this machine alone; 0 picks a free port' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l on-corrupt -d 'Stop at a corrupt message with status 8, or leave it out and end with 6' -r -a 'stop skip'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l from -l from-context -d 'Cluster to read from: a context, HOST:PORT[,..][/CHROOT] of its ZooKeeper, or brokers=HOST:PORT[,..]' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l to -l to-context -d 'Cluster to write to: a context, HOST:PORT[,..][/CHROOT] of its ZooKeeper, or brokers=HOST:PORT[,..]' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l output -d 'Write the result to stdout in this format, instead of a line on stderr' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic target partitions target_partitions bytes action group messages seconds last_error error_time corrupt'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic target partitions target_partitions bytes action group messages seconds last_error error_time corrupt'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' mirror run'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l include -d 'Only topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l exclude -d 'Leave out topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -s g -l group -d 'Consumer group in the source that has the offsets of the mirror' -r -a '(__pylogctl_lookup group)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l interval -d 'Sample twice, this long apart, and show rates' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l fail-above -d 'Status 12 if the lag is larger than this' -r -a '64KiB 1MiB 16MiB 1GiB'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l from -l from-context -d 'Cluster to read from: a context, HOST:PORT[,..][/CHROOT] of its ZooKeeper, or brokers=HOST:PORT[,..]' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic end mirrored lag_bytes rate mirrors failing error_time last_error corrupt'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic end mirrored lag_bytes rate mirrors failing error_time last_error corrupt'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' mirror status'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l include -d 'Only topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l exclude -d 'Leave out topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l topic-map -d 'Substitution that makes the name of the target topic, such as s/^/a./ (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -s o -l offset -d 'Offsets to compare in the source, START or START:END' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l target-offset -d 'Offsets to compare in the target' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l exact -d 'Status 8 also if the target has surplus messages, such as duplicates'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l from -l from-context -d 'Cluster to read from: a context, HOST:PORT[,..][/CHROOT] of its ZooKeeper, or brokers=HOST:PORT[,..]' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l to -l to-context -d 'Cluster to write to: a context, HOST:PORT[,..][/CHROOT] of its ZooKeeper, or brokers=HOST:PORT[,..]' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic target messages target_messages missing surplus digest target_digest status'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic target messages target_messages missing surplus digest target_digest status'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' mirror verify'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -a serve -d 'Serve lag and status of all groups, seen from outside, until stopped by a signal'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -a dump -d 'Write what one scrape would read: of a broker, or of all groups'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l columns -d 'Choose and order columns; `help` lists them' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l sort -d 'Sort by a column; - reverses' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' metrics'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l port -d 'Where to serve, without HOST for this machine alone; 0 picks a free port' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l interval -d 'Time between two looks at groups and brokers' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l window -d 'History that the status of a group is judged by' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l no-partitions -d 'Leave out the series of single partitions'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' metrics serve'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' metrics dump'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -a show -d 'Show how many messages each tier has counted, by topic and time window'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -a check -d 'Compare the counts of tiers with the counts of the producers'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic start end tier expected found difference expected_bytes found_bytes status messages bytes'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic start end tier expected found difference expected_bytes found_bytes status messages bytes'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' audit'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -s o -l offset -d 'Counts to read, START or START:END' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l include -d 'Only topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l exclude -d 'Leave out topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l tier -d 'Only this tier (repeatable)' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic start end tier messages bytes'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic start end tier messages bytes'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' audit show'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -s o -l offset -d 'Counts to read, START or START:END' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l include -d 'Only topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l exclude -d 'Leave out topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l tier -d 'Only this tier (repeatable)' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l count -d 'Count the messages on the brokers, by reading them, as tier '\''log'\'''
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l time-field -d 'With --count: field of JSON messages that has their time, such as .meta.ts' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l reference -d 'Tier whose counts are expected' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l grace -d 'How long after its end a window may still be reported' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l fail-above -d 'Status 12 if counts differ by more messages than this' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l all -d 'Show windows whose counts agree, too'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic start end tier expected found difference expected_bytes found_bytes status'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic start end tier expected found difference expected_bytes found_bytes status'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' audit check'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -a load -d 'Load the messages since the last load into files or a table, each once'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -a compact -d 'Join the small files of loads into one load with fewer, larger files'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -a sql -d 'Query topics with SQL'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -a window -d 'Count messages per key in windows of the messages'\'' own time, and sum a number of them'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -a join -d 'Join the messages of a topic with those of another topic, or with a table'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -a audit -d 'Compare the messages in topics, and in loads of them, with the counts of the producers'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -a verify -d 'Validate every byte of segment files, on many machines in parallel'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic start end tier expected found lost late duplicated status path files bytes messages load partition payload_bytes left_out_bytes crc_sum tasks lost_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic start end tier expected found lost late duplicated status path files bytes messages load partition payload_bytes left_out_bytes crc_sum tasks lost_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l to -d 'Directory of the loads, on a file system that all machines see' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l format -d 'Format of the files' -r -a 'parquet json text'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l file-size -d 'Target size of files: those under half of it are joined by topic and day' -r -a '64KiB 1MiB 16MiB 1GiB'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l into-table -d 'Append to a table of a catalog that --spark-conf names, such as iceberg:lake.logs.web, or to that of Delta at a path; made if it is missing' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l group -d 'Name of the consumer of these loads; a directory or table belongs to one group' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l include -d 'Instead of TOPIC: topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l path -d 'Read segment files, directories or patterns instead of brokers (repeatable)' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l from -d 'Offset to start at; earlier loads with later messages are retired, and their messages loaded again' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l until -d 'Offset to end at' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l avro-schemas -d 'Payloads are a zero byte, a schema id in four bytes and an Avro record: write the records as JSON' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l avro-reader -d 'Instead of JSON, write columns of the schema ID, to which all records are resolved' -r -a '(__pylogctl_lookup broker)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l date-field -d 'Date of messages: this field of JSON or Avro payloads, such as .meta.ts' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l date-regex -d 'Date of messages: the first group of RE, searched for in payloads' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l date-format -d 'Format of these dates, such as '\''%b %d %T'\''' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l year -d 'Year of dates whose --date-format has none' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l allow-data-loss -d 'Continue if messages to be read are gone, and report the missing offsets'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l corrupt -d 'How to treat messages that are damaged or cannot be decoded' -r -a 'fail skip'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l master -d 'Where Spark runs: local[CORES,ATTEMPTS], or a cluster'\''s address' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l spark-conf -d 'A setting of Spark (repeatable), such as spark.driver.memory=2g (1g by default), or spark.ui.enabled=true, which says the address of its pages' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'load topic partition start end messages payload_bytes left_out_bytes crc_sum bytes tasks lost_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'load topic partition start end messages payload_bytes left_out_bytes crc_sum bytes tasks lost_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline load'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l file-size -d 'Target size of files: those under half of it are joined by topic and day' -r -a '64KiB 1MiB 16MiB 1GiB'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l keep -d 'Leave the newest N loads alone; joined loads can only be loaded again together' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l master -d 'Where Spark runs: local[CORES,ATTEMPTS], or a cluster'\''s address' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l spark-conf -d 'A setting of Spark (repeatable), such as spark.driver.memory=2g (1g by default), or spark.ui.enabled=true, which says the address of its pages' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path files bytes messages load topic partition start end payload_bytes left_out_bytes crc_sum'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path files bytes messages load topic partition start end payload_bytes left_out_bytes crc_sum'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline compact'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -s t -l topic -d 'Topic to query, a view of its name (repeatable)' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l path -d 'Read segment files, directories or patterns instead of brokers (repeatable)' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l from -d 'Offset to start at; see pylogctl help offsets' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l until -d 'Offset to end at' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l json-payloads -d 'Payloads are JSON objects: make columns of their fields'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l schema -d 'Payloads are JSON objects with these fields, such as '\''id BIGINT, user STRING'\''' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l allow-data-loss -d 'Continue if messages to be read are gone, and report the missing offsets'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l corrupt -d 'How to treat messages that are damaged or cannot be decoded' -r -a 'fail skip'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l into-table -d 'Append to a table of a catalog that --spark-conf names, such as iceberg:lake.logs.web, or to that of Delta at a path; made if it is missing' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l into -d 'Write the result to a file: .parquet, .json (an object a line) or .csv' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l to-topic -d 'Write the result to a topic: its column `value`, or each row as JSON' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l master -d 'Where Spark runs: local[CORES,ATTEMPTS], or a cluster'\''s address' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l spark-conf -d 'A setting of Spark (repeatable), such as spark.driver.memory=2g (1g by default), or spark.ui.enabled=true, which says the address of its pages' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l columns -d 'Choose and order columns; `help` lists them' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l sort -d 'Sort by a column; - reverses' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline sql'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l size -d 'Length of a window' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l slide -d 'Distance between the starts of sliding windows' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l session -d 'Instead of --size: sessions, which end when their key has no message for this time' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l top -d 'Of each window only the N keys with the most messages' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l top-by -d 'Column that --top is by; sums need a value' -r -a 'messages sum average maximum'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l value-field -d 'Field of JSON messages with a number, such as .price: its sum, average, minimum and maximum per key' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l key-field -d 'Field of JSON messages with their key, such as .user.id' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l time-field -d 'Field of JSON messages with their time, such as .meta.ts' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l pattern -d 'Instead of fields: a regular expression with groups named key and time' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l time-format -d 'Format of times, such as '\''%b %d %T'\''' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l time-zone -d 'Zone of times without one, such as Europe/Paris' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l year -d 'Year of times without one' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l path -d 'Read segment files, directories or patterns instead of brokers (repeatable)' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l from -d 'Offset to start at; see pylogctl help offsets' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l until -d 'Offset to end at' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l allow-data-loss -d 'Continue if messages to be read are gone, and report the missing offsets'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l corrupt -d 'How to treat messages that are damaged or cannot be decoded' -r -a 'fail skip'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l stream -d 'Process new messages continuously, until stopped; --into is then a directory'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l checkpoint -d 'Directory of the offsets and the state of a stream, for a restart' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -s e -l exit-at-end -d 'Stop at the end offsets of the start'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l watermark -d 'How far behind the newest event an event may be to be counted' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l metrics-port -d 'Serve metrics for Prometheus, without HOST for this machine alone; 0 picks a free port' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l into-table -d 'Append to a table of a catalog that --spark-conf names, such as iceberg:lake.logs.web, or to that of Delta at a path; made if it is missing' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l into -d 'Write the result to a file: .parquet, .json (an object a line) or .csv' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l to-topic -d 'Write the result to a topic: its column `value`, or each row as JSON' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l master -d 'Where Spark runs: local[CORES,ATTEMPTS], or a cluster'\''s address' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l spark-conf -d 'A setting of Spark (repeatable), such as spark.driver.memory=2g (1g by default), or spark.ui.enabled=true, which says the address of its pages' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l columns -d 'Choose and order columns; `help` lists them' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l sort -d 'Sort by a column; - reverses' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline window'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l table -d 'Table to join with instead of a topic, .parquet, .json or .csv' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l table-column -d 'Column of the table with the key' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l within -d 'Maximum difference in time of two events to be joined' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l how -d 'Drop messages of TOPIC without a match (inner), or keep them (left)' -r -a 'inner left'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l key-field -d 'Field of JSON messages with their key, such as .user.id' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l time-field -d 'Field of JSON messages with their time, such as .meta.ts' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l pattern -d 'Instead of fields: a regular expression with groups named key and time' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l time-format -d 'Format of times, such as '\''%b %d %T'\''' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l time-zone -d 'Zone of times without one, such as Europe/Paris' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l year -d 'Year of times without one' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l path -d 'Read segment files, directories or patterns instead of brokers (repeatable)' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l from -d 'Offset to start at; see pylogctl help offsets' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l until -d 'Offset to end at' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l allow-data-loss -d 'Continue if messages to be read are gone, and report the missing offsets'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l corrupt -d 'How to treat messages that are damaged or cannot be decoded' -r -a 'fail skip'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l stream -d 'Process new messages continuously, until stopped; --into is then a directory'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l checkpoint -d 'Directory of the offsets and the state of a stream, for a restart' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -s e -l exit-at-end -d 'Stop at the end offsets of the start'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l watermark -d 'How far behind the newest event an event may be to be counted' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l metrics-port -d 'Serve metrics for Prometheus, without HOST for this machine alone; 0 picks a free port' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l into-table -d 'Append to a table of a catalog that --spark-conf names, such as iceberg:lake.logs.web, or to that of Delta at a path; made if it is missing' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l into -d 'Write the result to a file: .parquet, .json (an object a line) or .csv' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l to-topic -d 'Write the result to a topic: its column `value`, or each row as JSON' -r -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l master -d 'Where Spark runs: local[CORES,ATTEMPTS], or a cluster'\''s address' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l spark-conf -d 'A setting of Spark (repeatable), such as spark.driver.memory=2g (1g by default), or spark.ui.enabled=true, which says the address of its pages' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l columns -d 'Choose and order columns; `help` lists them' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l sort -d 'Sort by a column; - reverses' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline join'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l load -d 'Directory of loads to compare, too' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l include -d 'Instead of TOPIC: topics whose whole name matches (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l time-field -d 'Field of JSON messages with their time, as given to produce --time-field' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l reference -d 'Tier whose counts are expected' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l grace -d 'How long after its end a window may still be reported' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l fail-above -d 'Status 12 if counts differ by more messages than this' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l all -d 'Show windows whose counts agree, too'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l master -d 'Where Spark runs: local[CORES,ATTEMPTS], or a cluster'\''s address' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l spark-conf -d 'A setting of Spark (repeatable), such as spark.driver.memory=2g (1g by default), or spark.ui.enabled=true, which says the address of its pages' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'topic start end tier expected found lost late duplicated status'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'topic start end tier expected found lost late duplicated status'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline audit'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l deep -l shallow -d 'Unfold compressed entries too (--deep, the default)'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l master -d 'Where Spark runs: local[CORES,ATTEMPTS], or a cluster'\''s address' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l spark-conf -d 'A setting of Spark (repeatable), such as spark.driver.memory=2g (1g by default), or spark.ui.enabled=true, which says the address of its pages' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l columns -d 'Choose and order columns; `help` lists them' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l sort -d 'Sort by a column; - reverses' -r
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' pipeline verify'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -a produce -d 'Send messages as fast as possible and measure it'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -a consume -d 'Read messages as fast as possible, decode every one, and measure it'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -a e2e -d 'Measure how long messages take from producer to consumer at a fixed rate'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -a compare -d 'Compare two saved runs, figure by figure'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -a report -d 'List saved runs, a row for each'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'figure before after change_percent verdict decides messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes rate late_ms missing acks flush overhead_bytes topic partitions batch codec threads file command started options pylogctl git_revision python platform processors'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'figure before after change_percent verdict decides messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes rate late_ms missing acks flush overhead_bytes topic partitions batch codec threads file command started options pylogctl git_revision python platform processors'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l messages -d 'Stop after so many' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l duration -d 'Stop after so long' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l interval -d 'Time from row to row' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l save -d 'Write result, intervals, options and platform to a JSON file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l threads -d 'Threads that work at the same time' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l compat07 -d 'CSV with the columns and number formats of Kafka 0.7'\''s tools'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l size -d 'Bytes of payload, or a range to choose from evenly' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l payload-file -d 'Send the lines of a file over and over, the first 64 MiB of it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l batch -d 'Messages in a batch' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -s z -l codec -d 'Compression; 0.7 knows only gzip and snappy' -r -a 'none gzip snappy lz4 zstd'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l rate -d 'No faster than this: 1000/s, 5MiB/s' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l warmup -d 'Messages to send before the clock starts' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes overhead_bytes topic partitions batch codec acks threads'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes overhead_bytes topic partitions batch codec acks threads'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' perf produce'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l messages -d 'Stop after so many' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l duration -d 'Stop after so long' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l interval -d 'Time from row to row' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l save -d 'Write result, intervals, options and platform to a JSON file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l threads -d 'Threads that work at the same time' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l compat07 -d 'CSV with the columns and number formats of Kafka 0.7'\''s tools'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -s p -l partition -d 'Partitions: 0, 2-0, *-0, 0,1 or 0..3' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -s o -l offset -d 'Offsets to read, START[:END]' -r -a 'start end -10 @-10m @-1h @today @yesterday'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l simple -d 'Read one partition (default: 0), one fetch request at a time, as Kafka 0.7'\''s simple consumer'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' perf consume'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -a '(__pylogctl_lookup topic)'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l messages -d 'Stop after so many' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l duration -d 'Stop after so long' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l interval -d 'Time from row to row' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l save -d 'Write result, intervals, options and platform to a JSON file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l rate -d 'Send so much, even if the broker is slower: 10000/s, 5MiB/s' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l size -d 'Bytes of payload, at least 16, or a range to choose from evenly' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -s z -l codec -d 'Compression; 0.7 knows only gzip and snappy' -r -a 'none gzip snappy lz4 zstd'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l warmup -d 'Messages to send before any is counted' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes rate late_ms missing acks flush'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes rate late_ms missing acks flush'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' perf e2e'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l fail-below -d 'Status 12 if the second run is worse by more than this' -r
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'figure before after change_percent verdict decides'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'figure before after change_percent verdict decides'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' perf compare'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -F
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'file command topic messages seconds msg_per_s mib_per_s p50_ms p99_ms p99_9_ms max_ms overhead_bytes acks flush cpu_s rss_bytes started options pylogctl git_revision python platform processors'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'file command topic messages seconds msg_per_s mib_per_s p50_ms p99_ms p99_9_ms max_ms overhead_bytes acks flush cpu_s rss_bytes started options pylogctl git_revision python platform processors'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' perf report'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a ls -d 'List the children of a node'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a tree -d 'Draw a node and everything below it'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a get -d 'Write the value of a node, byte for byte'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a stat -d 'Show version, size, times and owner of a node'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a find -d 'Find nodes by their paths or values'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a watch -d 'Write a line for each change of a node and its children, until stopped'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a sessions -d 'List the sessions with ephemeral nodes: who is registered by which'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a health -d 'Ask each server how it is: by four-letter words, or its admin server at port 8080'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a set -d 'Replace the value of a node; the former one is saved'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a create -d 'Create a persistent node, and its parents where they are missing'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a rm -d 'Delete a node; its value is saved'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a export -d 'Write a node and everything below it as lines of JSON, with exact values'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a import -d 'Create and set nodes as an export has them'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a diff -d 'Compare a node and everything below it with an export or another ZooKeeper'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a secure -d 'Close the brokers'\'' nodes to all but the user of the credential'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a open -d 'Open the brokers'\'' nodes to all clients, the way back from `zk secure`'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a shell -d 'Run these commands from a prompt or from standard input, one a line'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -a start -d 'Run an embedded ZooKeeper server until it is told to stop'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'tree nodes to_change path action bytes ephemeral before after difference here other value version children modified decoded hex server state mode answered_by connections outstanding watches problem facts name session brokers members paths zookeeper pid data log_file owner created czxid mzxid cversion aversion depth time event'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'tree nodes to_change path action bytes ephemeral before after difference here other value version children modified decoded hex server state mode answered_by connections outstanding watches problem facts name session brokers members paths zookeeper pid data log_file owner created czxid mzxid cversion aversion depth time event'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -s l -l long -d 'Show version, size, children and times'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -s R -l recursive -d 'Show everything below'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'name version bytes children ephemeral modified'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'name version bytes children ephemeral modified'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk ls'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l depth -d 'Levels to go down' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l data -d 'Show values too'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l raw -d 'Do not decode the values of known nodes'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path depth value version bytes children ephemeral modified decoded'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path depth value version bytes children ephemeral modified decoded'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk tree'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l hex -d 'Write it in hexadecimal'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l json -d 'Parse it and write it as JSON'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l raw -d 'Write it exactly, on a terminal too'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -s s -l stat -d 'Show version, size, times and owner too'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path value hex version bytes children ephemeral modified decoded'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path value hex version bytes children ephemeral modified decoded'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk get'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path version bytes children ephemeral modified owner created czxid mzxid cversion aversion'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path version bytes children ephemeral modified owner created czxid mzxid cversion aversion'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk stat'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l data -d 'Also find nodes whose value matches'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path value version bytes children ephemeral modified decoded'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path value version bytes children ephemeral modified decoded'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk find'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -s R -l recursive -d 'Watch everything below'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'time event path version value decoded'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'time event path version value decoded'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk watch'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'session nodes brokers members paths'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'session nodes brokers members paths'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk sessions'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'server state mode answered_by connections outstanding nodes ephemeral watches version problem facts'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'server state mode answered_by connections outstanding nodes ephemeral watches version problem facts'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk health'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l if-version -d 'Only if the node has this version' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path action bytes ephemeral before after'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path action bytes ephemeral before after'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk set'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path action bytes ephemeral before after'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path action bytes ephemeral before after'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk create'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -s R -l recursive -d 'Delete everything below, too'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l confirm -d 'The path again; with --yes nothing is asked' -r -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path action bytes ephemeral before after'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path action bytes ephemeral before after'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk rm'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk export'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l file -d 'What `zk export` wrote; `-` is standard input' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l execute -d 'Do it; without this only the plan is shown'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path action bytes ephemeral before after'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path action bytes ephemeral before after'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk import'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -a '(__pylogctl_lookup zk-path)'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'path difference here other'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'path difference here other'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk diff'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'tree nodes to_change'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'tree nodes to_change'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk secure'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'tree nodes to_change'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'tree nodes to_change'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk open'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk shell'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -l data -d 'Data directory' -r -a '(__fish_complete_directories)'
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -l port -d '0 picks a free one' -r
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -l output -d 'Write the result to stdout in this format, instead of a line on stderr' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' zk start'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l listen -d 'Port 0 picks a free one' -r
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l public-host -d 'Name by which browsers reach it, besides that of --listen, as through a proxy (repeatable)' -r
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l token-file -d 'Token that clients have to give, at least 16 characters; by default a new one, in the address that is printed' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l no-token -d 'Serve all who reach it; on loopback only, as behind a proxy'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l allow-changes -d 'Let clients change topics and groups, and produce'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l hide-messages -d 'Show nobody what is in messages'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l output -d 'Write the result to stdout in this format, instead of a line on stderr' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' web'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -a list -d 'List the contexts of all configuration files'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -a show -d 'Show a context'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -a use -d 'Have commands use a context from now on; -Z, -b and --context go over it'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -a add -d 'Add a context to the user'\''s configuration file'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -a current -d 'Write the name of the current context; status 3 if none is'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -a rename -d 'Rename a context in its configuration file; what is current stays so'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -a test -d 'Connect to the cluster of a context, and say which brokers it has'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -a remove -d 'Remove a context from its configuration file'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -s X -d 'Any client property (repeatable); `-X list` shows all, `-X dump` those in effect' -r
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'name current zookeeper brokers timeout tls user protected read_only color file'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'name current zookeeper brokers timeout tls user protected read_only color file'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l progress -d 'Progress on stderr' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'name current zookeeper brokers timeout tls user protected read_only color file'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'name current zookeeper brokers timeout tls user protected read_only color file'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' context list'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'name current zookeeper brokers timeout tls user protected read_only color file'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'name current zookeeper brokers timeout tls user protected read_only color file'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' context show'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context use'\''' -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' context use'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' context use'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' context use'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' context use'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' context use'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' context use'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context use'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' context use'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -s Z -l zookeeper -d 'ZooKeeper of the cluster' -r
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -s b -l broker -d 'Its brokers, if it has no ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l protected -d 'Changes ask for the context'\''s name'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l read-only -d 'Changes are refused'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' context add'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context current'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' context current'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' context current'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' context current'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context current'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' context current'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context rename'\''' -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' context rename'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' context rename'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' context rename'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' context rename'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' context rename'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' context rename'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context rename'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' context rename'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context test'\''' -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' context test'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' context test'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' context test'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' context test'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' context test'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context test'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' context test'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' context remove'\''' -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' context remove'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' context remove'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' context remove'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' context remove'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' context remove'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' context remove'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' context remove'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' context remove'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'status check detail hint'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'status check detail hint'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -s Z -l zookeeper -d 'ZooKeeper' -r
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l zk-credential -d 'File with a line user:password for ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l zk-tls-config -d 'File with zookeeper.ssl.* properties, for TLS with ZooKeeper' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -s b -l broker -d 'Brokers, one is enough to find a cluster'\''s; ZooKeeper is not needed then' -r
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l tls -d 'Speak TLS with brokers; implied by its files'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l tls-ca -d 'PEM file of the brokers'\'' CA' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l tls-cert -d 'PEM file of the client'\''s certificate, if brokers ask for it' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l tls-key -d 'PEM file of its key' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l user -d 'Log in at brokers as this user' -r -a 'segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l password-file -d 'Read the password from the first line of a file' -r -F
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l password-fd -d 'Read the password from an open descriptor' -r
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l timeout -d 'Limit of the whole request' -r -a '100ms 1s 10s 1m 5m 1h'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -s c -l context -d 'Cluster by its name; see `pylogctl context`' -r -a '(__pylogctl_lookup context)'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' doctor'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -a 'bash zsh fish'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -l install -d 'Write it to where the shell looks for it'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -l dry-run -d 'Check everything, change nothing, show what would be done'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -s y -l yes -d 'Answer yes to questions'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -l no-input -d 'Never ask; a needed question becomes exit status 5'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' completion'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' man'\''' -a 'broker produce consume copy cluster top topic config user acl group retry log mirror metrics audit pipeline perf zk web context doctor completion man help version offsets formats framing patterns exit-codes environment properties segment'
complete -c pylogctl -n '__pylogctl_at '\'' man'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' man'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' man'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' man'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' man'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' man'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' man'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' help'\''' -a 'broker produce consume copy cluster top topic config user acl group retry log mirror metrics audit pipeline perf zk web context doctor completion man help version offsets formats framing patterns exit-codes environment properties segment'
complete -c pylogctl -n '__pylogctl_at '\'' help'\''' -l no-pager -d 'Never start a pager'
complete -c pylogctl -n '__pylogctl_at '\'' help'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' help'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' help'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' help'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' help'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' help'\''' -s h -l help -l help-all -d 'Show this message and exit'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l output -d 'Document format' -r -a 'table json jsonl csv tsv plain markdown name'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l columns -d 'Choose and order columns; `help` lists them' -r -a 'component version'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l sort -d 'Sort by a column; - reverses' -r -a 'component version'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l no-header -d 'Leave out the header line of table, plain, csv and tsv'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l raw-numbers -d 'No unit scaling in tables'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l wide -d 'All columns of tables, wider than the terminal or not'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l help-fields -d 'Show the fields of the documents with their types, and exit'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -s q -l quiet -d 'No notes or summaries on stderr; errors stay'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -s v -l verbose -d 'Report more: -v resolved values, -vv requests, -vvv bytes on the wire'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l log-format -d 'Format of notes, warnings and errors on stderr' -r -a 'text json'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l color -d 'Colour and bold text' -r -a 'auto always never'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -l debug -d 'Show the traceback of an error'
complete -c pylogctl -n '__pylogctl_at '\'' version'\''' -s h -l help -l help-all -d 'Show this message and exit'

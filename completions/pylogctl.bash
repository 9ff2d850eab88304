# bash completion for pylogctl. Made by `python -m pylogctl.cli.docgen`; do not edit.

__pylogctl_tables() {
    commands='' options='' valued='' words=''
    case $1 in
    'pylogctl')
        commands='broker produce consume copy cluster top topic config user acl group retry log mirror metrics audit pipeline perf zk web context doctor completion man help version' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl broker')
        commands='start stop status decommission list' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl broker start')
        commands='' words=''
        options='--config --id --host --port --listen --data --no-zookeeper --zookeeper-port --metrics-port --metrics-no-partitions --ephemeral --check-config --ready-file --ready-fd --daemon --pid-file --log-file --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--config --id --host --port --listen --data --zookeeper-port --metrics-port --ready-file --ready-fd --pid-file --log-file --output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color' ;;
    'pylogctl broker stop')
        commands='' words='@broker'
        options='--pid-file --force --with-zookeeper --kill --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--pid-file --output -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl broker status')
        commands='' words='@broker'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl broker decommission')
        commands='' words='@broker'
        options='--throttle --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--throttle --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl broker list')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl produce')
        commands='' words='@topic'
        options='-D --delimiter -0 --null -L --length-prefixed --hex --base64 --jsonl --strict --whole --each-file --csv-column --skip-empty --template --on-error -n --max-messages -p --partition --partitioner -k --key -K --key-delimiter --keep-partition -z --codec --batch-messages --batch-bytes --linger --sync --rate --max-size --on-broker-loss --no-barrier --verify --tee --receipt --resume --audit --time-field --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd -X --timeout --progress --dry-run -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-D --delimiter -L --length-prefixed --csv-column --on-error -n --max-messages -p --partition --partitioner -k --key -K --key-delimiter -z --codec --batch-messages --batch-bytes --linger --rate --max-size --on-broker-loss --receipt --resume --audit --time-field --output -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd -X --timeout --progress -c --context --log-format --color' ;;
    'pylogctl consume')
        commands='' words='@topic'
        options='--include --exclude -p --partition -o --offset --from-beginning --strict-offset --wait-for-topic -e --exit-at-end --no-follow --follow -f --allow-missing --order -g --group --commit --metrics-port --grep -i --ignore-case --invert --grep-at --where --sample --skip -n --max-messages --idle-timeout --on-corrupt -D --delimiter -0 --null -L --length-prefixed --hex --base64 --jsonl --payload-encoding --raw -F --format --to-dir --no-final-delimiter --strict-framing -u --unbuffered --exec --retry-dir --retries --max-attempts -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd -X --timeout --progress -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--include --exclude -p --partition -o --offset --wait-for-topic --order -g --group --commit --metrics-port --grep --grep-at --where --sample --skip -n --max-messages --idle-timeout --on-corrupt -D --delimiter -L --length-prefixed --payload-encoding -F --format --to-dir --exec --retry-dir --retries --max-attempts -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd -X --timeout --progress -c --context --log-format --color' ;;
    'pylogctl copy')
        commands='' words='@topic'
        options='-o --offset -n --max-messages --keep-partition --rate --verify --on-corrupt --strict-offset --allow-missing --from --from-context --to --to-context --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress --dry-run -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-o --offset -n --max-messages --rate --on-corrupt --from --from-context --to --to-context --output -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl cluster')
        commands='describe health recover keys rotate-key changes' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl cluster describe')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl cluster health')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl cluster recover')
        commands='' words=''
        options='--topic --discard --execute --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--topic --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl cluster keys')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl cluster rotate-key')
        commands='' words=''
        options='--now -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl cluster changes')
        commands='' words='@file'
        options='--topic -p --partition --since --follow --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--topic -p --partition --since --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl top')
        commands='' words=''
        options='--view --into --filter --interval --batch --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--view --into --filter --interval --batch --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic')
        commands='list describe create alter elect reassign delete offsets watermarks sample count' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl topic list')
        commands='' words=''
        options='--include --exclude --count --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--include --exclude --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl topic describe')
        commands='' words='@topic'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic create')
        commands='' words='@topic'
        options='--partitions --partitions-per-broker -b --broker --if-not-exists --replication-factor --set --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--partitions --partitions-per-broker -b --broker --replication-factor --set --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic alter')
        commands='' words='@topic'
        options='--partitions --partitions-per-broker --replication-factor --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--partitions --partitions-per-broker --replication-factor --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic elect')
        commands='' words='@topic'
        options='--unclean --confirm --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--confirm --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic reassign')
        commands='' words=''
        options='--to --replication-factor --plan --throttle --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--to --replication-factor --plan --throttle --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic delete')
        commands='' words='@topic'
        options='--data --group-offsets --if-exists --confirm --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--confirm --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic offsets')
        commands='' words='@topic'
        options='--at -p --partition --strict-offset --allow-missing --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--at -p --partition --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic watermarks')
        commands='' words='@topic'
        options='-p --partition --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-p --partition --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic sample')
        commands='' words='@topic'
        options='-n --max-messages -o --offset -p --partition --payload --allow-missing --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-n --max-messages -o --offset -p --partition --payload --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl topic count')
        commands='' words='@topic'
        options='-o --offset -p --partition --strict-offset --allow-missing --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-o --offset -p --partition --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl config')
        commands='set unset list show diff' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl config set')
        commands='' words='segment.bytes= segment.ms= retention.ms= retention.bytes= flush.messages= flush.ms= flush.before.read= partition.count= min.insync.replicas= unclean.leader.election.enable='
        options='-t --topic -b --broker --absent --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-t --topic -b --broker --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl config unset')
        commands='' words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable'
        options='-t --topic -b --broker --all --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-t --topic -b --broker --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl config list')
        commands='' words=''
        options='-t --topic -b --broker --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-t --topic -b --broker --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl config show')
        commands='' words=''
        options='--origin --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl config diff')
        commands='' words=''
        options='-t --topic -b --broker --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-t --topic -b --broker --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl user')
        commands='add list password quota remove' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl user add')
        commands='' words=''
        options='--password-file --password-fd --generate -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --timeout --dry-run -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--password-file --password-fd -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --timeout -c --context --log-format --color' ;;
    'pylogctl user list')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl user password')
        commands='' words=''
        options='--password-file --password-fd --generate -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --timeout --dry-run -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--password-file --password-fd -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --timeout -c --context --log-format --color' ;;
    'pylogctl user quota')
        commands='' words=''
        options='--bytes-in --bytes-out --work --connections --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout --dry-run -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--bytes-in --bytes-out --work --connections --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl user remove')
        commands='' words=''
        options='-Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --timeout -c --context --log-format --color' ;;
    'pylogctl acl')
        commands='add remove list check' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl acl add')
        commands='' words=''
        options='--deny --host --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--host --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl acl remove')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl acl list')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl acl check')
        commands='' words=''
        options='--host --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--host --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group')
        commands='list describe lag members verify watch reset export import clone delete rebalance' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl group list')
        commands='' words=''
        options='--state --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--state --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group describe')
        commands='' words='@group'
        options='--by -t --topic --count --window --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--by -t --topic --window --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl group lag')
        commands='' words='@group'
        options='-t --topic --fail-above --min-lag --allowed-lag --count --window --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-t --topic --fail-above --min-lag --allowed-lag --window --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl group members')
        commands='' words='@group'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group verify')
        commands='' words='@group'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group watch')
        commands='' words='@group'
        options='--interval --count -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--interval --count -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group reset')
        commands='' words='@group'
        options='--to -t --topic --all-topics -p --partition --execute --force --wait-inactive --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--to -t --topic -p --partition --wait-inactive --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group export')
        commands='' words='@group'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group import')
        commands='' words='@group'
        options='--file --execute --force --wait-inactive --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--file --wait-inactive --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group clone')
        commands='' words='@group'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group delete')
        commands='' words='@group'
        options='--confirm --if-exists --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--confirm --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl group rebalance')
        commands='' words='@group'
        options='--wait --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--wait --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl retry')
        commands='list drain' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl retry list')
        commands='' words='@dir'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort --log-format --color' ;;
    'pylogctl retry drain')
        commands='' words='@dir'
        options='--all --exec -y --yes --no-input -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--exec --log-format --color' ;;
    'pylogctl log')
        commands='dump grep index verify stat recover repair split merge replay move compare' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl log dump')
        commands='' words='@file'
        options='-o --offset -n --max-messages --shallow --no-payload --payload -F --format --output --columns --sort --no-header --raw-numbers --wide --help-fields --no-pager -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-o --offset -n --max-messages --payload -F --format --output --columns --sort --log-format --color' ;;
    'pylogctl log grep')
        commands='' words=''
        options='-o --offset -n --max-messages -i --ignore-case --invert -F --format --output --columns --sort --no-header --raw-numbers --wide --help-fields --no-pager -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-o --offset -n --max-messages -F --format --output --columns --sort --log-format --color' ;;
    'pylogctl log index')
        commands='' words='@file'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields --no-pager -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort --log-format --color' ;;
    'pylogctl log verify')
        commands='' words='@file'
        options='--deep --shallow --jobs --max-errors --engine --output --columns --sort --no-header --raw-numbers --wide --help-fields --progress -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--jobs --max-errors --engine --output --columns --sort --progress --log-format --color' ;;
    'pylogctl log stat')
        commands='' words='@file'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields --progress -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort --progress --log-format --color' ;;
    'pylogctl log recover')
        commands='' words='@file'
        options='--execute --no-backup --confirm --output --columns --sort --no-header --raw-numbers --wide --help-fields -y --yes --no-input --dry-run -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--confirm --output --columns --sort --log-format --color' ;;
    'pylogctl log repair')
        commands='' words='@file'
        options='--to --output --columns --sort --no-header --raw-numbers --wide --help-fields -y --yes --no-input --dry-run -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--to --output --columns --sort --log-format --color' ;;
    'pylogctl log split')
        commands='' words='@file'
        options='--at --to --output --columns --sort --no-header --raw-numbers --wide --help-fields -y --yes --no-input -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--at --to --output --columns --sort --log-format --color' ;;
    'pylogctl log merge')
        commands='' words='@file'
        options='--to --output --columns --sort --no-header --raw-numbers --wide --help-fields -y --yes --no-input -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--to --output --columns --sort --log-format --color' ;;
    'pylogctl log replay')
        commands='' words='@file'
        options='-t --topic -p --partition -o --offset --rate --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --progress --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-t --topic -p --partition -o --offset --rate --output -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl log move')
        commands='' words=''
        options='--to --on-broker --output --columns --sort --no-header --raw-numbers --wide --help-fields --progress -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--to --on-broker --output --columns --sort --progress -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl log compare')
        commands='' words='@topic'
        options='-p --partition --path --output --columns --sort --no-header --raw-numbers --wide --help-fields --progress -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-p --partition --path --output --columns --sort --progress -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl mirror')
        commands='run status verify' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl mirror run')
        commands='' words=''
        options='--include --exclude --topic-map -g --group --streams --producers --queue --metrics-port --on-corrupt --from --from-context --to --to-context --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd -X --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--include --exclude --topic-map -g --group --streams --producers --queue --metrics-port --on-corrupt --from --from-context --to --to-context --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd -X --timeout -c --context --log-format --color' ;;
    'pylogctl mirror status')
        commands='' words=''
        options='--include --exclude -g --group --interval --fail-above --from --from-context --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--include --exclude -g --group --interval --fail-above --from --from-context --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl mirror verify')
        commands='' words=''
        options='--include --exclude --topic-map -o --offset --target-offset --exact --from --from-context --to --to-context --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--include --exclude --topic-map -o --offset --target-offset --from --from-context --to --to-context --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl metrics')
        commands='serve dump' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl metrics serve')
        commands='' words=''
        options='--port --interval --window --no-partitions -Z --zookeeper --zk-credential --zk-tls-config --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--port --interval --window -Z --zookeeper --zk-credential --zk-tls-config --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl metrics dump')
        commands='' words='@broker'
        options='-Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl audit')
        commands='show check' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl audit show')
        commands='' words='@topic'
        options='-o --offset --include --exclude --tier --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-o --offset --include --exclude --tier --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl audit check')
        commands='' words='@topic'
        options='-o --offset --include --exclude --tier --count --time-field --reference --grace --fail-above --all --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-o --offset --include --exclude --tier --time-field --reference --grace --fail-above --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl pipeline')
        commands='load compact sql window join audit verify' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl pipeline load')
        commands='' words='@topic'
        options='--to --format --file-size --into-table --group --include --path --from --until --avro-schemas --avro-reader --date-field --date-regex --date-format --year --allow-data-loss --corrupt --master --spark-conf --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress --dry-run -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--to --format --file-size --into-table --group --include --path --from --until --avro-schemas --avro-reader --date-field --date-regex --date-format --year --corrupt --master --spark-conf --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl pipeline compact')
        commands='' words='@dir'
        options='--file-size --keep --master --spark-conf --output --columns --sort --no-header --raw-numbers --wide --help-fields --progress --dry-run -y --yes --no-input -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--file-size --keep --master --spark-conf --output --columns --sort --progress --log-format --color' ;;
    'pylogctl pipeline sql')
        commands='' words=''
        options='-t --topic --path --from --until --json-payloads --schema --allow-data-loss --corrupt --into-table --into --to-topic --master --spark-conf --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-t --topic --path --from --until --schema --corrupt --into-table --into --to-topic --master --spark-conf --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl pipeline window')
        commands='' words='@topic'
        options='--size --slide --session --top --top-by --value-field --key-field --time-field --pattern --time-format --time-zone --year --path --from --until --allow-data-loss --corrupt --stream --checkpoint -e --exit-at-end --watermark --metrics-port --into-table --into --to-topic --master --spark-conf --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--size --slide --session --top --top-by --value-field --key-field --time-field --pattern --time-format --time-zone --year --path --from --until --corrupt --checkpoint --watermark --metrics-port --into-table --into --to-topic --master --spark-conf --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl pipeline join')
        commands='' words='@topic'
        options='--table --table-column --within --how --key-field --time-field --pattern --time-format --time-zone --year --path --from --until --allow-data-loss --corrupt --stream --checkpoint -e --exit-at-end --watermark --metrics-port --into-table --into --to-topic --master --spark-conf --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--table --table-column --within --how --key-field --time-field --pattern --time-format --time-zone --year --path --from --until --corrupt --checkpoint --watermark --metrics-port --into-table --into --to-topic --master --spark-conf --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --progress -c --context --log-format --color' ;;
    'pylogctl pipeline audit')
        commands='' words='@topic'
        options='--load --include --time-field --reference --grace --fail-above --all --master --spark-conf --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--load --include --time-field --reference --grace --fail-above --master --spark-conf --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl pipeline verify')
        commands='' words='@file'
        options='--deep --shallow --master --spark-conf --output --columns --sort --no-header --raw-numbers --wide --help-fields --progress -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--master --spark-conf --output --columns --sort --progress --log-format --color' ;;
    'pylogctl perf')
        commands='produce consume e2e compare report' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl perf produce')
        commands='' words='@topic'
        options='--messages --duration --interval --save --threads --compat07 --size --payload-file --batch -z --codec --rate --warmup --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -X --progress --dry-run -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--messages --duration --interval --save --threads --size --payload-file --batch -z --codec --rate --warmup --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -X --progress -c --context --log-format --color' ;;
    'pylogctl perf consume')
        commands='' words='@topic'
        options='--messages --duration --interval --save --threads --compat07 -p --partition -o --offset --simple --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -X --progress -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--messages --duration --interval --save --threads -p --partition -o --offset --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -X --progress -c --context --log-format --color' ;;
    'pylogctl perf e2e')
        commands='' words='@topic'
        options='--messages --duration --interval --save --rate --size -z --codec --warmup --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -X --progress -y --yes --no-input -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--messages --duration --interval --save --rate --size -z --codec --warmup --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -X --progress -c --context --log-format --color' ;;
    'pylogctl perf compare')
        commands='' words=''
        options='--fail-below --output --columns --sort --no-header --raw-numbers --wide --help-fields -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--fail-below --output --columns --sort --log-format --color' ;;
    'pylogctl perf report')
        commands='' words='@file'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort --log-format --color' ;;
    'pylogctl zk')
        commands='ls tree get stat find watch sessions health set create rm export import diff secure open shell start' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl zk ls')
        commands='' words='@zk-path'
        options='-l --long -R --recursive --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk tree')
        commands='' words='@zk-path'
        options='--depth --data --raw --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--depth --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk get')
        commands='' words='@zk-path'
        options='--hex --json --raw -s --stat --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk stat')
        commands='' words='@zk-path'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk find')
        commands='' words='@zk-path'
        options='--data --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk watch')
        commands='' words='@zk-path'
        options='-R --recursive --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk sessions')
        commands='' words='@zk-path'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk health')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk set')
        commands='' words='@zk-path'
        options='--if-version --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--if-version --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk create')
        commands='' words='@zk-path'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk rm')
        commands='' words='@zk-path'
        options='-R --recursive --confirm --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--confirm --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk export')
        commands='' words='@zk-path'
        options='-Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk import')
        commands='' words=''
        options='--file --execute --output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--file --output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk diff')
        commands='' words='@zk-path'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk secure')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk open')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config --timeout -y --yes --no-input --dry-run -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk shell')
        commands='' words=''
        options='-Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-Z --zookeeper --zk-credential --zk-tls-config --timeout -c --context --log-format --color' ;;
    'pylogctl zk start')
        commands='' words=''
        options='--data --port --output --help-fields -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--data --port --output --log-format --color' ;;
    'pylogctl web')
        commands='' words=''
        options='--listen --public-host --token-file --no-token --allow-changes --hide-messages --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--listen --public-host --token-file --output -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl context')
        commands='list show use add current rename test remove' words=''
        options='-h --help --help-all --output --help-fields -Z --zookeeper --zk-credential --zk-tls-config -X -c --context -q --quiet -v --verbose --log-format --color --debug -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -y --yes --no-input --dry-run --columns --sort --no-header --raw-numbers --wide --progress --no-pager'
        valued='--output -Z --zookeeper --zk-credential --zk-tls-config -X -c --context --log-format --color -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout --columns --sort --progress' ;;
    'pylogctl context list')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort --log-format --color' ;;
    'pylogctl context show')
        commands='' words='@context'
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort --log-format --color' ;;
    'pylogctl context use')
        commands='' words='@context'
        options='-y --yes --no-input -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--log-format --color' ;;
    'pylogctl context add')
        commands='' words=''
        options='-Z --zookeeper --zk-credential --zk-tls-config -b --broker --protected --read-only --tls --tls-ca --tls-cert --tls-key --user --password-file -y --yes --no-input -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='-Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --log-format --color' ;;
    'pylogctl context current')
        commands='' words=''
        options='-q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--log-format --color' ;;
    'pylogctl context rename')
        commands='' words='@context'
        options='-y --yes --no-input -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--log-format --color' ;;
    'pylogctl context test')
        commands='' words='@context'
        options='--timeout -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--timeout --log-format --color' ;;
    'pylogctl context remove')
        commands='' words='@context'
        options='-y --yes --no-input -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--log-format --color' ;;
    'pylogctl doctor')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort -Z --zookeeper --zk-credential --zk-tls-config -b --broker --tls-ca --tls-cert --tls-key --user --password-file --password-fd --timeout -c --context --log-format --color' ;;
    'pylogctl completion')
        commands='' words='bash zsh fish'
        options='--install --dry-run -y --yes --no-input -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--log-format --color' ;;
    'pylogctl man')
        commands='' words='broker produce consume copy cluster top topic config user acl group retry log mirror metrics audit pipeline perf zk web context doctor completion man help version offsets formats framing patterns exit-codes environment properties segment'
        options='--no-pager -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--log-format --color' ;;
    'pylogctl help')
        commands='' words='broker produce consume copy cluster top topic config user acl group retry log mirror metrics audit pipeline perf zk web context doctor completion man help version offsets formats framing patterns exit-codes environment properties segment'
        options='--no-pager -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--log-format --color' ;;
    'pylogctl version')
        commands='' words=''
        options='--output --columns --sort --no-header --raw-numbers --wide --help-fields -q --quiet -v --verbose --log-format --color --debug -h --help --help-all'
        valued='--output --columns --sort --log-format --color' ;;
    esac
}

__pylogctl_values() {
    case "$1 $2" in
    'pylogctl --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl --zk-credential') words='@file' ;;
    'pylogctl --zk-tls-config') words='@file' ;;
    'pylogctl -c' | 'pylogctl --context') words='@context' ;;
    'pylogctl --log-format') words='text json' ;;
    'pylogctl --color') words='auto always never' ;;
    'pylogctl --tls-ca') words='@file' ;;
    'pylogctl --tls-cert') words='@file' ;;
    'pylogctl --tls-key') words='@file' ;;
    'pylogctl --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl --password-file') words='@file' ;;
    'pylogctl --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl --progress') words='auto always never' ;;
    'pylogctl broker --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl broker --zk-credential') words='@file' ;;
    'pylogctl broker --zk-tls-config') words='@file' ;;
    'pylogctl broker -c' | 'pylogctl broker --context') words='@context' ;;
    'pylogctl broker --log-format') words='text json' ;;
    'pylogctl broker --color') words='auto always never' ;;
    'pylogctl broker --tls-ca') words='@file' ;;
    'pylogctl broker --tls-cert') words='@file' ;;
    'pylogctl broker --tls-key') words='@file' ;;
    'pylogctl broker --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl broker --password-file') words='@file' ;;
    'pylogctl broker --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl broker --columns') words='id host port creator since session topics state first_topics all_topics broker zookeeper pid data phase uptime partitions bytes connections produce_rate fetch_rate last_flush clean_start registered failing storage software codec listeners certificate_expires directories failures retention_waits settings_problems metrics step seconds done note' ;;
    'pylogctl broker --sort') words='id host port creator since session topics state first_topics all_topics broker zookeeper pid data phase uptime partitions bytes connections produce_rate fetch_rate last_flush clean_start registered failing storage software codec listeners certificate_expires directories failures retention_waits settings_problems metrics step seconds done note' ;;
    'pylogctl broker --progress') words='auto always never' ;;
    'pylogctl broker start --config') words='@file' ;;
    'pylogctl broker start --data') words='@dir' ;;
    'pylogctl broker start --ready-file') words='@file' ;;
    'pylogctl broker start --pid-file') words='@file' ;;
    'pylogctl broker start --log-file') words='@file' ;;
    'pylogctl broker start --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl broker start --zk-credential') words='@file' ;;
    'pylogctl broker start --zk-tls-config') words='@file' ;;
    'pylogctl broker start -c' | 'pylogctl broker start --context') words='@context' ;;
    'pylogctl broker start --log-format') words='text json' ;;
    'pylogctl broker start --color') words='auto always never' ;;
    'pylogctl broker stop --pid-file') words='@file' ;;
    'pylogctl broker stop --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl broker stop --zk-credential') words='@file' ;;
    'pylogctl broker stop --zk-tls-config') words='@file' ;;
    'pylogctl broker stop --tls-ca') words='@file' ;;
    'pylogctl broker stop --tls-cert') words='@file' ;;
    'pylogctl broker stop --tls-key') words='@file' ;;
    'pylogctl broker stop --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl broker stop --password-file') words='@file' ;;
    'pylogctl broker stop --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl broker stop -c' | 'pylogctl broker stop --context') words='@context' ;;
    'pylogctl broker stop --log-format') words='text json' ;;
    'pylogctl broker stop --color') words='auto always never' ;;
    'pylogctl broker status --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl broker status --columns') words='broker host port phase uptime topics partitions bytes connections produce_rate fetch_rate last_flush clean_start session registered failing storage pid data zookeeper software codec listeners certificate_expires directories failures retention_waits settings_problems metrics' ;;
    'pylogctl broker status --sort') words='broker host port phase uptime topics partitions bytes connections produce_rate fetch_rate last_flush clean_start session registered failing storage pid data zookeeper software codec listeners certificate_expires directories failures retention_waits settings_problems metrics' ;;
    'pylogctl broker status --zk-credential') words='@file' ;;
    'pylogctl broker status --zk-tls-config') words='@file' ;;
    'pylogctl broker status --tls-ca') words='@file' ;;
    'pylogctl broker status --tls-cert') words='@file' ;;
    'pylogctl broker status --tls-key') words='@file' ;;
    'pylogctl broker status --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl broker status --password-file') words='@file' ;;
    'pylogctl broker status --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl broker status -c' | 'pylogctl broker status --context') words='@context' ;;
    'pylogctl broker status --log-format') words='text json' ;;
    'pylogctl broker status --color') words='auto always never' ;;
    'pylogctl broker decommission --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl broker decommission --columns') words='topic partition replicas target' ;;
    'pylogctl broker decommission --sort') words='topic partition replicas target' ;;
    'pylogctl broker decommission --zk-credential') words='@file' ;;
    'pylogctl broker decommission --zk-tls-config') words='@file' ;;
    'pylogctl broker decommission --tls-ca') words='@file' ;;
    'pylogctl broker decommission --tls-cert') words='@file' ;;
    'pylogctl broker decommission --tls-key') words='@file' ;;
    'pylogctl broker decommission --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl broker decommission --password-file') words='@file' ;;
    'pylogctl broker decommission --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl broker decommission --progress') words='auto always never' ;;
    'pylogctl broker decommission -c' | 'pylogctl broker decommission --context') words='@context' ;;
    'pylogctl broker decommission --log-format') words='text json' ;;
    'pylogctl broker decommission --color') words='auto always never' ;;
    'pylogctl broker list --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl broker list --columns') words='id host port creator since session topics state first_topics all_topics' ;;
    'pylogctl broker list --sort') words='id host port creator since session topics state first_topics all_topics' ;;
    'pylogctl broker list --zk-credential') words='@file' ;;
    'pylogctl broker list --zk-tls-config') words='@file' ;;
    'pylogctl broker list --tls-ca') words='@file' ;;
    'pylogctl broker list --tls-cert') words='@file' ;;
    'pylogctl broker list --tls-key') words='@file' ;;
    'pylogctl broker list --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl broker list --password-file') words='@file' ;;
    'pylogctl broker list --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl broker list -c' | 'pylogctl broker list --context') words='@context' ;;
    'pylogctl broker list --log-format') words='text json' ;;
    'pylogctl broker list --color') words='auto always never' ;;
    'pylogctl produce -L' | 'pylogctl produce --length-prefixed') words='u32be u32le u64be varint' ;;
    'pylogctl produce --csv-column') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl produce --on-error') words='stop skip' ;;
    'pylogctl produce --partitioner') words='sticky random round-robin hash' ;;
    'pylogctl produce -z' | 'pylogctl produce --codec') words='none gzip snappy lz4 zstd' ;;
    'pylogctl produce --batch-bytes') words='64KiB 1MiB 16MiB 1GiB' ;;
    'pylogctl produce --linger') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl produce --max-size') words='64KiB 1MiB 16MiB 1GiB' ;;
    'pylogctl produce --receipt') words='@file' ;;
    'pylogctl produce --resume') words='@file' ;;
    'pylogctl produce --time-field') words='@zk-path' ;;
    'pylogctl produce --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl produce --zk-credential') words='@file' ;;
    'pylogctl produce --zk-tls-config') words='@file' ;;
    'pylogctl produce --tls-ca') words='@file' ;;
    'pylogctl produce --tls-cert') words='@file' ;;
    'pylogctl produce --tls-key') words='@file' ;;
    'pylogctl produce --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl produce --password-file') words='@file' ;;
    'pylogctl produce --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl produce --progress') words='auto always never' ;;
    'pylogctl produce -c' | 'pylogctl produce --context') words='@context' ;;
    'pylogctl produce --log-format') words='text json' ;;
    'pylogctl produce --color') words='auto always never' ;;
    'pylogctl consume -o' | 'pylogctl consume --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl consume --wait-for-topic') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl consume --order') words='arrival partition' ;;
    'pylogctl consume -g' | 'pylogctl consume --group') words='@group' ;;
    'pylogctl consume --commit') words='auto before exit none' ;;
    'pylogctl consume --grep-at') words='consumer broker' ;;
    'pylogctl consume --idle-timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl consume --on-corrupt') words='stop skip raw' ;;
    'pylogctl consume -L' | 'pylogctl consume --length-prefixed') words='u32be u32le u64be varint' ;;
    'pylogctl consume --payload-encoding') words='auto utf8 base64 hex' ;;
    'pylogctl consume --to-dir') words='@dir' ;;
    'pylogctl consume --retry-dir') words='@dir' ;;
    'pylogctl consume --zk-credential') words='@file' ;;
    'pylogctl consume --zk-tls-config') words='@file' ;;
    'pylogctl consume --tls-ca') words='@file' ;;
    'pylogctl consume --tls-cert') words='@file' ;;
    'pylogctl consume --tls-key') words='@file' ;;
    'pylogctl consume --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl consume --password-file') words='@file' ;;
    'pylogctl consume --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl consume --progress') words='auto always never' ;;
    'pylogctl consume -c' | 'pylogctl consume --context') words='@context' ;;
    'pylogctl consume --log-format') words='text json' ;;
    'pylogctl consume --color') words='auto always never' ;;
    'pylogctl copy -o' | 'pylogctl copy --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl copy --on-corrupt') words='stop skip' ;;
    'pylogctl copy --from' | 'pylogctl copy --from-context') words='@context' ;;
    'pylogctl copy --to' | 'pylogctl copy --to-context') words='@context' ;;
    'pylogctl copy --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl copy --zk-credential') words='@file' ;;
    'pylogctl copy --zk-tls-config') words='@file' ;;
    'pylogctl copy --tls-ca') words='@file' ;;
    'pylogctl copy --tls-cert') words='@file' ;;
    'pylogctl copy --tls-key') words='@file' ;;
    'pylogctl copy --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl copy --password-file') words='@file' ;;
    'pylogctl copy --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl copy --progress') words='auto always never' ;;
    'pylogctl copy -c' | 'pylogctl copy --context') words='@context' ;;
    'pylogctl copy --log-format') words='text json' ;;
    'pylogctl copy --color') words='auto always never' ;;
    'pylogctl cluster --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl cluster --zk-credential') words='@file' ;;
    'pylogctl cluster --zk-tls-config') words='@file' ;;
    'pylogctl cluster -c' | 'pylogctl cluster --context') words='@context' ;;
    'pylogctl cluster --log-format') words='text json' ;;
    'pylogctl cluster --color') words='auto always never' ;;
    'pylogctl cluster --tls-ca') words='@file' ;;
    'pylogctl cluster --tls-cert') words='@file' ;;
    'pylogctl cluster --tls-key') words='@file' ;;
    'pylogctl cluster --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl cluster --password-file') words='@file' ;;
    'pylogctl cluster --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl cluster --columns') words='at time broker epochs partition change kind topic name controller_epoch leader_epoch leader isr version offset text state live address rack controller leads preferred replicas in_sync offline offline_partitions check result count detail all key made until brokers copies restored loss creation_id settings' ;;
    'pylogctl cluster --sort') words='at time broker epochs partition change kind topic name controller_epoch leader_epoch leader isr version offset text state live address rack controller leads preferred replicas in_sync offline offline_partitions check result count detail all key made until brokers copies restored loss creation_id settings' ;;
    'pylogctl cluster --progress') words='auto always never' ;;
    'pylogctl cluster describe --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl cluster describe --columns') words='broker state live address rack controller leads preferred replicas in_sync offline offline_partitions' ;;
    'pylogctl cluster describe --sort') words='broker state live address rack controller leads preferred replicas in_sync offline offline_partitions' ;;
    'pylogctl cluster describe --zk-credential') words='@file' ;;
    'pylogctl cluster describe --zk-tls-config') words='@file' ;;
    'pylogctl cluster describe --tls-ca') words='@file' ;;
    'pylogctl cluster describe --tls-cert') words='@file' ;;
    'pylogctl cluster describe --tls-key') words='@file' ;;
    'pylogctl cluster describe --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl cluster describe --password-file') words='@file' ;;
    'pylogctl cluster describe --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl cluster describe -c' | 'pylogctl cluster describe --context') words='@context' ;;
    'pylogctl cluster describe --log-format') words='text json' ;;
    'pylogctl cluster describe --color') words='auto always never' ;;
    'pylogctl cluster health --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl cluster health --columns') words='check result count detail all' ;;
    'pylogctl cluster health --sort') words='check result count detail all' ;;
    'pylogctl cluster health --zk-credential') words='@file' ;;
    'pylogctl cluster health --zk-tls-config') words='@file' ;;
    'pylogctl cluster health --tls-ca') words='@file' ;;
    'pylogctl cluster health --tls-cert') words='@file' ;;
    'pylogctl cluster health --tls-key') words='@file' ;;
    'pylogctl cluster health --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl cluster health --password-file') words='@file' ;;
    'pylogctl cluster health --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl cluster health -c' | 'pylogctl cluster health --context') words='@context' ;;
    'pylogctl cluster health --log-format') words='text json' ;;
    'pylogctl cluster health --color') words='auto always never' ;;
    'pylogctl cluster recover --topic') words='@topic' ;;
    'pylogctl cluster recover --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl cluster recover --columns') words='partition leader copies replicas restored loss topic creation_id settings' ;;
    'pylogctl cluster recover --sort') words='partition leader copies replicas restored loss topic creation_id settings' ;;
    'pylogctl cluster recover --zk-credential') words='@file' ;;
    'pylogctl cluster recover --zk-tls-config') words='@file' ;;
    'pylogctl cluster recover --tls-ca') words='@file' ;;
    'pylogctl cluster recover --tls-cert') words='@file' ;;
    'pylogctl cluster recover --tls-key') words='@file' ;;
    'pylogctl cluster recover --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl cluster recover --password-file') words='@file' ;;
    'pylogctl cluster recover --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl cluster recover -c' | 'pylogctl cluster recover --context') words='@context' ;;
    'pylogctl cluster recover --log-format') words='text json' ;;
    'pylogctl cluster recover --color') words='auto always never' ;;
    'pylogctl cluster keys --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl cluster keys --columns') words='key state made until brokers' ;;
    'pylogctl cluster keys --sort') words='key state made until brokers' ;;
    'pylogctl cluster keys --zk-credential') words='@file' ;;
    'pylogctl cluster keys --zk-tls-config') words='@file' ;;
    'pylogctl cluster keys --tls-ca') words='@file' ;;
    'pylogctl cluster keys --tls-cert') words='@file' ;;
    'pylogctl cluster keys --tls-key') words='@file' ;;
    'pylogctl cluster keys --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl cluster keys --password-file') words='@file' ;;
    'pylogctl cluster keys --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl cluster keys -c' | 'pylogctl cluster keys --context') words='@context' ;;
    'pylogctl cluster keys --log-format') words='text json' ;;
    'pylogctl cluster keys --color') words='auto always never' ;;
    'pylogctl cluster rotate-key --zk-credential') words='@file' ;;
    'pylogctl cluster rotate-key --zk-tls-config') words='@file' ;;
    'pylogctl cluster rotate-key --tls-ca') words='@file' ;;
    'pylogctl cluster rotate-key --tls-cert') words='@file' ;;
    'pylogctl cluster rotate-key --tls-key') words='@file' ;;
    'pylogctl cluster rotate-key --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl cluster rotate-key --password-file') words='@file' ;;
    'pylogctl cluster rotate-key --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl cluster rotate-key -c' | 'pylogctl cluster rotate-key --context') words='@context' ;;
    'pylogctl cluster rotate-key --log-format') words='text json' ;;
    'pylogctl cluster rotate-key --color') words='auto always never' ;;
    'pylogctl cluster changes --topic') words='@topic' ;;
    'pylogctl cluster changes --since') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl cluster changes --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl cluster changes --columns') words='at time broker epochs partition change kind topic name controller_epoch leader_epoch leader isr version offset text' ;;
    'pylogctl cluster changes --sort') words='at time broker epochs partition change kind topic name controller_epoch leader_epoch leader isr version offset text' ;;
    'pylogctl cluster changes --zk-credential') words='@file' ;;
    'pylogctl cluster changes --zk-tls-config') words='@file' ;;
    'pylogctl cluster changes --tls-ca') words='@file' ;;
    'pylogctl cluster changes --tls-cert') words='@file' ;;
    'pylogctl cluster changes --tls-key') words='@file' ;;
    'pylogctl cluster changes --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl cluster changes --password-file') words='@file' ;;
    'pylogctl cluster changes --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl cluster changes -c' | 'pylogctl cluster changes --context') words='@context' ;;
    'pylogctl cluster changes --log-format') words='text json' ;;
    'pylogctl cluster changes --color') words='auto always never' ;;
    'pylogctl top --view') words='overview brokers topics groups replication requests' ;;
    'pylogctl top --into') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl top --interval') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl top --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl top --columns') words='time broker name value address state cpu leads replicas under_replicated messages_in bytes_in bytes_out requests connections produce_p99 disk uptime age error group topic partition owner offset stored end lag_bytes commit_age rate eta status members partitions leader epoch isr start unflushed size segments lag stalled follower not_in_sync fetches request errors p50 p99 queue local remote send waiting replication_factor offline last' ;;
    'pylogctl top --sort') words='time broker name value address state cpu leads replicas under_replicated messages_in bytes_in bytes_out requests connections produce_p99 disk uptime age error group topic partition owner offset stored end lag_bytes commit_age rate eta status members partitions leader epoch isr start unflushed size segments lag stalled follower not_in_sync fetches request errors p50 p99 queue local remote send waiting replication_factor offline last' ;;
    'pylogctl top --zk-credential') words='@file' ;;
    'pylogctl top --zk-tls-config') words='@file' ;;
    'pylogctl top --tls-ca') words='@file' ;;
    'pylogctl top --tls-cert') words='@file' ;;
    'pylogctl top --tls-key') words='@file' ;;
    'pylogctl top --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl top --password-file') words='@file' ;;
    'pylogctl top --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl top -c' | 'pylogctl top --context') words='@context' ;;
    'pylogctl top --log-format') words='text json' ;;
    'pylogctl top --color') words='auto always never' ;;
    'pylogctl topic --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic --zk-credential') words='@file' ;;
    'pylogctl topic --zk-tls-config') words='@file' ;;
    'pylogctl topic -c' | 'pylogctl topic --context') words='@context' ;;
    'pylogctl topic --log-format') words='text json' ;;
    'pylogctl topic --color') words='auto always never' ;;
    'pylogctl topic --tls-ca') words='@file' ;;
    'pylogctl topic --tls-cert') words='@file' ;;
    'pylogctl topic --tls-key') words='@file' ;;
    'pylogctl topic --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic --password-file') words='@file' ;;
    'pylogctl topic --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic --columns') words='topic partition start end bytes messages inner end_inner broker before partitions action leader replicas isr min_isr group state offline under_replicated address epoch lag lags segments last_append settings result reason name brokers target original copying left percent throttle offset next_offset size codec crc payload log_start high_watermark log_end pending_bytes' ;;
    'pylogctl topic --sort') words='topic partition start end bytes messages inner end_inner broker before partitions action leader replicas isr min_isr group state offline under_replicated address epoch lag lags segments last_append settings result reason name brokers target original copying left percent throttle offset next_offset size codec crc payload log_start high_watermark log_end pending_bytes' ;;
    'pylogctl topic --progress') words='auto always never' ;;
    'pylogctl topic list --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic list --columns') words='name brokers partitions replicas offline under_replicated state bytes messages' ;;
    'pylogctl topic list --sort') words='name brokers partitions replicas offline under_replicated state bytes messages' ;;
    'pylogctl topic list --zk-credential') words='@file' ;;
    'pylogctl topic list --zk-tls-config') words='@file' ;;
    'pylogctl topic list --tls-ca') words='@file' ;;
    'pylogctl topic list --tls-cert') words='@file' ;;
    'pylogctl topic list --tls-key') words='@file' ;;
    'pylogctl topic list --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic list --password-file') words='@file' ;;
    'pylogctl topic list --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic list --progress') words='auto always never' ;;
    'pylogctl topic list -c' | 'pylogctl topic list --context') words='@context' ;;
    'pylogctl topic list --log-format') words='text json' ;;
    'pylogctl topic list --color') words='auto always never' ;;
    'pylogctl topic describe --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic describe --columns') words='topic partition leader state offline under_replicated address epoch replicas isr min_isr lag lags start end segments bytes last_append settings' ;;
    'pylogctl topic describe --sort') words='topic partition leader state offline under_replicated address epoch replicas isr min_isr lag lags start end segments bytes last_append settings' ;;
    'pylogctl topic describe --zk-credential') words='@file' ;;
    'pylogctl topic describe --zk-tls-config') words='@file' ;;
    'pylogctl topic describe --tls-ca') words='@file' ;;
    'pylogctl topic describe --tls-cert') words='@file' ;;
    'pylogctl topic describe --tls-key') words='@file' ;;
    'pylogctl topic describe --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic describe --password-file') words='@file' ;;
    'pylogctl topic describe --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic describe -c' | 'pylogctl topic describe --context') words='@context' ;;
    'pylogctl topic describe --log-format') words='text json' ;;
    'pylogctl topic describe --color') words='auto always never' ;;
    'pylogctl topic create -b' | 'pylogctl topic create --broker') words='@broker' ;;
    'pylogctl topic create --set') words='segment.bytes= segment.ms= retention.ms= retention.bytes= flush.messages= flush.ms= flush.before.read= partition.count= min.insync.replicas= unclean.leader.election.enable=' ;;
    'pylogctl topic create --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic create --columns') words='topic broker before partitions action partition leader replicas isr min_isr' ;;
    'pylogctl topic create --sort') words='topic broker before partitions action partition leader replicas isr min_isr' ;;
    'pylogctl topic create --zk-credential') words='@file' ;;
    'pylogctl topic create --zk-tls-config') words='@file' ;;
    'pylogctl topic create --tls-ca') words='@file' ;;
    'pylogctl topic create --tls-cert') words='@file' ;;
    'pylogctl topic create --tls-key') words='@file' ;;
    'pylogctl topic create --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic create --password-file') words='@file' ;;
    'pylogctl topic create --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic create -c' | 'pylogctl topic create --context') words='@context' ;;
    'pylogctl topic create --log-format') words='text json' ;;
    'pylogctl topic create --color') words='auto always never' ;;
    'pylogctl topic alter --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic alter --columns') words='topic broker before partitions action' ;;
    'pylogctl topic alter --sort') words='topic broker before partitions action' ;;
    'pylogctl topic alter --zk-credential') words='@file' ;;
    'pylogctl topic alter --zk-tls-config') words='@file' ;;
    'pylogctl topic alter --tls-ca') words='@file' ;;
    'pylogctl topic alter --tls-cert') words='@file' ;;
    'pylogctl topic alter --tls-key') words='@file' ;;
    'pylogctl topic alter --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic alter --password-file') words='@file' ;;
    'pylogctl topic alter --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic alter -c' | 'pylogctl topic alter --context') words='@context' ;;
    'pylogctl topic alter --log-format') words='text json' ;;
    'pylogctl topic alter --color') words='auto always never' ;;
    'pylogctl topic elect --confirm') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic elect --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic elect --columns') words='topic partition result reason' ;;
    'pylogctl topic elect --sort') words='topic partition result reason' ;;
    'pylogctl topic elect --zk-credential') words='@file' ;;
    'pylogctl topic elect --zk-tls-config') words='@file' ;;
    'pylogctl topic elect --tls-ca') words='@file' ;;
    'pylogctl topic elect --tls-cert') words='@file' ;;
    'pylogctl topic elect --tls-key') words='@file' ;;
    'pylogctl topic elect --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic elect --password-file') words='@file' ;;
    'pylogctl topic elect --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic elect -c' | 'pylogctl topic elect --context') words='@context' ;;
    'pylogctl topic elect --log-format') words='text json' ;;
    'pylogctl topic elect --color') words='auto always never' ;;
    'pylogctl topic reassign --plan') words='@file' ;;
    'pylogctl topic reassign --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic reassign --columns') words='topic partition replicas target original copying left percent throttle' ;;
    'pylogctl topic reassign --sort') words='topic partition replicas target original copying left percent throttle' ;;
    'pylogctl topic reassign --zk-credential') words='@file' ;;
    'pylogctl topic reassign --zk-tls-config') words='@file' ;;
    'pylogctl topic reassign --tls-ca') words='@file' ;;
    'pylogctl topic reassign --tls-cert') words='@file' ;;
    'pylogctl topic reassign --tls-key') words='@file' ;;
    'pylogctl topic reassign --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic reassign --password-file') words='@file' ;;
    'pylogctl topic reassign --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic reassign -c' | 'pylogctl topic reassign --context') words='@context' ;;
    'pylogctl topic reassign --log-format') words='text json' ;;
    'pylogctl topic reassign --color') words='auto always never' ;;
    'pylogctl topic delete --confirm') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic delete --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic delete --columns') words='topic broker partitions group action' ;;
    'pylogctl topic delete --sort') words='topic broker partitions group action' ;;
    'pylogctl topic delete --zk-credential') words='@file' ;;
    'pylogctl topic delete --zk-tls-config') words='@file' ;;
    'pylogctl topic delete --tls-ca') words='@file' ;;
    'pylogctl topic delete --tls-cert') words='@file' ;;
    'pylogctl topic delete --tls-key') words='@file' ;;
    'pylogctl topic delete --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic delete --password-file') words='@file' ;;
    'pylogctl topic delete --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic delete -c' | 'pylogctl topic delete --context') words='@context' ;;
    'pylogctl topic delete --log-format') words='text json' ;;
    'pylogctl topic delete --color') words='auto always never' ;;
    'pylogctl topic offsets --at') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl topic offsets --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic offsets --columns') words='topic partition start end bytes inner end_inner' ;;
    'pylogctl topic offsets --sort') words='topic partition start end bytes inner end_inner' ;;
    'pylogctl topic offsets --zk-credential') words='@file' ;;
    'pylogctl topic offsets --zk-tls-config') words='@file' ;;
    'pylogctl topic offsets --tls-ca') words='@file' ;;
    'pylogctl topic offsets --tls-cert') words='@file' ;;
    'pylogctl topic offsets --tls-key') words='@file' ;;
    'pylogctl topic offsets --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic offsets --password-file') words='@file' ;;
    'pylogctl topic offsets --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic offsets -c' | 'pylogctl topic offsets --context') words='@context' ;;
    'pylogctl topic offsets --log-format') words='text json' ;;
    'pylogctl topic offsets --color') words='auto always never' ;;
    'pylogctl topic watermarks --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic watermarks --columns') words='topic partition log_start high_watermark log_end pending_bytes' ;;
    'pylogctl topic watermarks --sort') words='topic partition log_start high_watermark log_end pending_bytes' ;;
    'pylogctl topic watermarks --zk-credential') words='@file' ;;
    'pylogctl topic watermarks --zk-tls-config') words='@file' ;;
    'pylogctl topic watermarks --tls-ca') words='@file' ;;
    'pylogctl topic watermarks --tls-cert') words='@file' ;;
    'pylogctl topic watermarks --tls-key') words='@file' ;;
    'pylogctl topic watermarks --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic watermarks --password-file') words='@file' ;;
    'pylogctl topic watermarks --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic watermarks -c' | 'pylogctl topic watermarks --context') words='@context' ;;
    'pylogctl topic watermarks --log-format') words='text json' ;;
    'pylogctl topic watermarks --color') words='auto always never' ;;
    'pylogctl topic sample -o' | 'pylogctl topic sample --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl topic sample --payload') words='utf8 hex base64 escape' ;;
    'pylogctl topic sample --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic sample --columns') words='topic partition offset next_offset inner size codec crc payload' ;;
    'pylogctl topic sample --sort') words='topic partition offset next_offset inner size codec crc payload' ;;
    'pylogctl topic sample --zk-credential') words='@file' ;;
    'pylogctl topic sample --zk-tls-config') words='@file' ;;
    'pylogctl topic sample --tls-ca') words='@file' ;;
    'pylogctl topic sample --tls-cert') words='@file' ;;
    'pylogctl topic sample --tls-key') words='@file' ;;
    'pylogctl topic sample --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic sample --password-file') words='@file' ;;
    'pylogctl topic sample --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic sample -c' | 'pylogctl topic sample --context') words='@context' ;;
    'pylogctl topic sample --log-format') words='text json' ;;
    'pylogctl topic sample --color') words='auto always never' ;;
    'pylogctl topic count -o' | 'pylogctl topic count --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl topic count --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl topic count --columns') words='topic partition start end bytes messages inner end_inner' ;;
    'pylogctl topic count --sort') words='topic partition start end bytes messages inner end_inner' ;;
    'pylogctl topic count --zk-credential') words='@file' ;;
    'pylogctl topic count --zk-tls-config') words='@file' ;;
    'pylogctl topic count --tls-ca') words='@file' ;;
    'pylogctl topic count --tls-cert') words='@file' ;;
    'pylogctl topic count --tls-key') words='@file' ;;
    'pylogctl topic count --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl topic count --password-file') words='@file' ;;
    'pylogctl topic count --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl topic count --progress') words='auto always never' ;;
    'pylogctl topic count -c' | 'pylogctl topic count --context') words='@context' ;;
    'pylogctl topic count --log-format') words='text json' ;;
    'pylogctl topic count --color') words='auto always never' ;;
    'pylogctl config --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl config --zk-credential') words='@file' ;;
    'pylogctl config --zk-tls-config') words='@file' ;;
    'pylogctl config -c' | 'pylogctl config --context') words='@context' ;;
    'pylogctl config --log-format') words='text json' ;;
    'pylogctl config --color') words='auto always never' ;;
    'pylogctl config --tls-ca') words='@file' ;;
    'pylogctl config --tls-cert') words='@file' ;;
    'pylogctl config --tls-key') words='@file' ;;
    'pylogctl config --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl config --password-file') words='@file' ;;
    'pylogctl config --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl config --columns') words='setting value origin change doc start default others brokers topic broker before after node option applied' ;;
    'pylogctl config --sort') words='setting value origin change doc start default others brokers topic broker before after node option applied' ;;
    'pylogctl config --progress') words='auto always never' ;;
    'pylogctl config set -t' | 'pylogctl config set --topic') words='@topic' ;;
    'pylogctl config set -b' | 'pylogctl config set --broker') words='@broker' ;;
    'pylogctl config set --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl config set --columns') words='topic broker setting before after node' ;;
    'pylogctl config set --sort') words='topic broker setting before after node' ;;
    'pylogctl config set --zk-credential') words='@file' ;;
    'pylogctl config set --zk-tls-config') words='@file' ;;
    'pylogctl config set --tls-ca') words='@file' ;;
    'pylogctl config set --tls-cert') words='@file' ;;
    'pylogctl config set --tls-key') words='@file' ;;
    'pylogctl config set --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl config set --password-file') words='@file' ;;
    'pylogctl config set --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl config set -c' | 'pylogctl config set --context') words='@context' ;;
    'pylogctl config set --log-format') words='text json' ;;
    'pylogctl config set --color') words='auto always never' ;;
    'pylogctl config unset -t' | 'pylogctl config unset --topic') words='@topic' ;;
    'pylogctl config unset -b' | 'pylogctl config unset --broker') words='@broker' ;;
    'pylogctl config unset --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl config unset --columns') words='topic broker setting before after node' ;;
    'pylogctl config unset --sort') words='topic broker setting before after node' ;;
    'pylogctl config unset --zk-credential') words='@file' ;;
    'pylogctl config unset --zk-tls-config') words='@file' ;;
    'pylogctl config unset --tls-ca') words='@file' ;;
    'pylogctl config unset --tls-cert') words='@file' ;;
    'pylogctl config unset --tls-key') words='@file' ;;
    'pylogctl config unset --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl config unset --password-file') words='@file' ;;
    'pylogctl config unset --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl config unset -c' | 'pylogctl config unset --context') words='@context' ;;
    'pylogctl config unset --log-format') words='text json' ;;
    'pylogctl config unset --color') words='auto always never' ;;
    'pylogctl config list -t' | 'pylogctl config list --topic') words='@topic' ;;
    'pylogctl config list -b' | 'pylogctl config list --broker') words='@broker' ;;
    'pylogctl config list --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl config list --columns') words='setting value origin change doc topic broker node brokers default applied' ;;
    'pylogctl config list --sort') words='setting value origin change doc topic broker node brokers default applied' ;;
    'pylogctl config list --zk-credential') words='@file' ;;
    'pylogctl config list --zk-tls-config') words='@file' ;;
    'pylogctl config list --tls-ca') words='@file' ;;
    'pylogctl config list --tls-cert') words='@file' ;;
    'pylogctl config list --tls-key') words='@file' ;;
    'pylogctl config list --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl config list --password-file') words='@file' ;;
    'pylogctl config list --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl config list -c' | 'pylogctl config list --context') words='@context' ;;
    'pylogctl config list --log-format') words='text json' ;;
    'pylogctl config list --color') words='auto always never' ;;
    'pylogctl config show --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl config show --columns') words='option value origin' ;;
    'pylogctl config show --sort') words='option value origin' ;;
    'pylogctl config show --zk-credential') words='@file' ;;
    'pylogctl config show --zk-tls-config') words='@file' ;;
    'pylogctl config show --tls-ca') words='@file' ;;
    'pylogctl config show --tls-cert') words='@file' ;;
    'pylogctl config show --tls-key') words='@file' ;;
    'pylogctl config show --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl config show --password-file') words='@file' ;;
    'pylogctl config show --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl config show -c' | 'pylogctl config show --context') words='@context' ;;
    'pylogctl config show --log-format') words='text json' ;;
    'pylogctl config show --color') words='auto always never' ;;
    'pylogctl config diff -t' | 'pylogctl config diff --topic') words='@topic' ;;
    'pylogctl config diff -b' | 'pylogctl config diff --broker') words='@broker' ;;
    'pylogctl config diff --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl config diff --columns') words='setting value origin start default others brokers applied doc' ;;
    'pylogctl config diff --sort') words='setting value origin start default others brokers applied doc' ;;
    'pylogctl config diff --zk-credential') words='@file' ;;
    'pylogctl config diff --zk-tls-config') words='@file' ;;
    'pylogctl config diff --tls-ca') words='@file' ;;
    'pylogctl config diff --tls-cert') words='@file' ;;
    'pylogctl config diff --tls-key') words='@file' ;;
    'pylogctl config diff --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl config diff --password-file') words='@file' ;;
    'pylogctl config diff --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl config diff -c' | 'pylogctl config diff --context') words='@context' ;;
    'pylogctl config diff --log-format') words='text json' ;;
    'pylogctl config diff --color') words='auto always never' ;;
    'pylogctl user --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl user --zk-credential') words='@file' ;;
    'pylogctl user --zk-tls-config') words='@file' ;;
    'pylogctl user -c' | 'pylogctl user --context') words='@context' ;;
    'pylogctl user --log-format') words='text json' ;;
    'pylogctl user --color') words='auto always never' ;;
    'pylogctl user --tls-ca') words='@file' ;;
    'pylogctl user --tls-cert') words='@file' ;;
    'pylogctl user --tls-key') words='@file' ;;
    'pylogctl user --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl user --password-file') words='@file' ;;
    'pylogctl user --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl user --columns') words='user mechanism iterations settings bytes_in bytes_out work connections' ;;
    'pylogctl user --sort') words='user mechanism iterations settings bytes_in bytes_out work connections' ;;
    'pylogctl user --progress') words='auto always never' ;;
    'pylogctl user add --password-file') words='@file' ;;
    'pylogctl user add --zk-credential') words='@file' ;;
    'pylogctl user add --zk-tls-config') words='@file' ;;
    'pylogctl user add --tls-ca') words='@file' ;;
    'pylogctl user add --tls-cert') words='@file' ;;
    'pylogctl user add --tls-key') words='@file' ;;
    'pylogctl user add --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl user add -c' | 'pylogctl user add --context') words='@context' ;;
    'pylogctl user add --log-format') words='text json' ;;
    'pylogctl user add --color') words='auto always never' ;;
    'pylogctl user list --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl user list --columns') words='user mechanism iterations settings' ;;
    'pylogctl user list --sort') words='user mechanism iterations settings' ;;
    'pylogctl user list --zk-credential') words='@file' ;;
    'pylogctl user list --zk-tls-config') words='@file' ;;
    'pylogctl user list --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl user list -c' | 'pylogctl user list --context') words='@context' ;;
    'pylogctl user list --log-format') words='text json' ;;
    'pylogctl user list --color') words='auto always never' ;;
    'pylogctl user password --password-file') words='@file' ;;
    'pylogctl user password --zk-credential') words='@file' ;;
    'pylogctl user password --zk-tls-config') words='@file' ;;
    'pylogctl user password --tls-ca') words='@file' ;;
    'pylogctl user password --tls-cert') words='@file' ;;
    'pylogctl user password --tls-key') words='@file' ;;
    'pylogctl user password --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl user password -c' | 'pylogctl user password --context') words='@context' ;;
    'pylogctl user password --log-format') words='text json' ;;
    'pylogctl user password --color') words='auto always never' ;;
    'pylogctl user quota --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl user quota --columns') words='user bytes_in bytes_out work connections' ;;
    'pylogctl user quota --sort') words='user bytes_in bytes_out work connections' ;;
    'pylogctl user quota --zk-credential') words='@file' ;;
    'pylogctl user quota --zk-tls-config') words='@file' ;;
    'pylogctl user quota --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl user quota -c' | 'pylogctl user quota --context') words='@context' ;;
    'pylogctl user quota --log-format') words='text json' ;;
    'pylogctl user quota --color') words='auto always never' ;;
    'pylogctl user remove --zk-credential') words='@file' ;;
    'pylogctl user remove --zk-tls-config') words='@file' ;;
    'pylogctl user remove --tls-ca') words='@file' ;;
    'pylogctl user remove --tls-cert') words='@file' ;;
    'pylogctl user remove --tls-key') words='@file' ;;
    'pylogctl user remove --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl user remove -c' | 'pylogctl user remove --context') words='@context' ;;
    'pylogctl user remove --log-format') words='text json' ;;
    'pylogctl user remove --color') words='auto always never' ;;
    'pylogctl acl --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl acl --zk-credential') words='@file' ;;
    'pylogctl acl --zk-tls-config') words='@file' ;;
    'pylogctl acl -c' | 'pylogctl acl --context') words='@context' ;;
    'pylogctl acl --log-format') words='text json' ;;
    'pylogctl acl --color') words='auto always never' ;;
    'pylogctl acl --tls-ca') words='@file' ;;
    'pylogctl acl --tls-cert') words='@file' ;;
    'pylogctl acl --tls-key') words='@file' ;;
    'pylogctl acl --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl acl --password-file') words='@file' ;;
    'pylogctl acl --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl acl --columns') words='id effect principal operation resource host allowed role' ;;
    'pylogctl acl --sort') words='id effect principal operation resource host allowed role' ;;
    'pylogctl acl --progress') words='auto always never' ;;
    'pylogctl acl add --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl acl add --columns') words='id effect principal operation resource host' ;;
    'pylogctl acl add --sort') words='id effect principal operation resource host' ;;
    'pylogctl acl add --zk-credential') words='@file' ;;
    'pylogctl acl add --zk-tls-config') words='@file' ;;
    'pylogctl acl add --tls-ca') words='@file' ;;
    'pylogctl acl add --tls-cert') words='@file' ;;
    'pylogctl acl add --tls-key') words='@file' ;;
    'pylogctl acl add --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl acl add --password-file') words='@file' ;;
    'pylogctl acl add --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl acl add -c' | 'pylogctl acl add --context') words='@context' ;;
    'pylogctl acl add --log-format') words='text json' ;;
    'pylogctl acl add --color') words='auto always never' ;;
    'pylogctl acl remove --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl acl remove --columns') words='id effect principal operation resource host' ;;
    'pylogctl acl remove --sort') words='id effect principal operation resource host' ;;
    'pylogctl acl remove --zk-credential') words='@file' ;;
    'pylogctl acl remove --zk-tls-config') words='@file' ;;
    'pylogctl acl remove --tls-ca') words='@file' ;;
    'pylogctl acl remove --tls-cert') words='@file' ;;
    'pylogctl acl remove --tls-key') words='@file' ;;
    'pylogctl acl remove --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl acl remove --password-file') words='@file' ;;
    'pylogctl acl remove --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl acl remove -c' | 'pylogctl acl remove --context') words='@context' ;;
    'pylogctl acl remove --log-format') words='text json' ;;
    'pylogctl acl remove --color') words='auto always never' ;;
    'pylogctl acl list --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl acl list --columns') words='id effect principal operation resource host' ;;
    'pylogctl acl list --sort') words='id effect principal operation resource host' ;;
    'pylogctl acl list --zk-credential') words='@file' ;;
    'pylogctl acl list --zk-tls-config') words='@file' ;;
    'pylogctl acl list --tls-ca') words='@file' ;;
    'pylogctl acl list --tls-cert') words='@file' ;;
    'pylogctl acl list --tls-key') words='@file' ;;
    'pylogctl acl list --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl acl list --password-file') words='@file' ;;
    'pylogctl acl list --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl acl list -c' | 'pylogctl acl list --context') words='@context' ;;
    'pylogctl acl list --log-format') words='text json' ;;
    'pylogctl acl list --color') words='auto always never' ;;
    'pylogctl acl check --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl acl check --columns') words='allowed role id effect principal operation resource host' ;;
    'pylogctl acl check --sort') words='allowed role id effect principal operation resource host' ;;
    'pylogctl acl check --zk-credential') words='@file' ;;
    'pylogctl acl check --zk-tls-config') words='@file' ;;
    'pylogctl acl check --tls-ca') words='@file' ;;
    'pylogctl acl check --tls-cert') words='@file' ;;
    'pylogctl acl check --tls-key') words='@file' ;;
    'pylogctl acl check --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl acl check --password-file') words='@file' ;;
    'pylogctl acl check --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl acl check -c' | 'pylogctl acl check --context') words='@context' ;;
    'pylogctl acl check --log-format') words='text json' ;;
    'pylogctl acl check --color') words='auto always never' ;;
    'pylogctl group --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group --zk-credential') words='@file' ;;
    'pylogctl group --zk-tls-config') words='@file' ;;
    'pylogctl group -c' | 'pylogctl group --context') words='@context' ;;
    'pylogctl group --log-format') words='text json' ;;
    'pylogctl group --color') words='auto always never' ;;
    'pylogctl group --tls-ca') words='@file' ;;
    'pylogctl group --tls-cert') words='@file' ;;
    'pylogctl group --tls-key') words='@file' ;;
    'pylogctl group --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group --password-file') words='@file' ;;
    'pylogctl group --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group --columns') words='group path action topic partition owner offset stored end lag_bytes lag_msgs commit_age rate eta status state members topics partitions member committed age oldest_commit subscription streams since session old_owner new_owner current new delta_bytes direction note kind detail' ;;
    'pylogctl group --sort') words='group path action topic partition owner offset stored end lag_bytes lag_msgs commit_age rate eta status state members topics partitions member committed age oldest_commit subscription streams since session old_owner new_owner current new delta_bytes direction note kind detail' ;;
    'pylogctl group --progress') words='auto always never' ;;
    'pylogctl group list --state') words='active empty dead' ;;
    'pylogctl group list --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group list --columns') words='group state members topics lag_bytes oldest_commit' ;;
    'pylogctl group list --sort') words='group state members topics lag_bytes oldest_commit' ;;
    'pylogctl group list --zk-credential') words='@file' ;;
    'pylogctl group list --zk-tls-config') words='@file' ;;
    'pylogctl group list --tls-ca') words='@file' ;;
    'pylogctl group list --tls-cert') words='@file' ;;
    'pylogctl group list --tls-key') words='@file' ;;
    'pylogctl group list --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group list --password-file') words='@file' ;;
    'pylogctl group list --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group list -c' | 'pylogctl group list --context') words='@context' ;;
    'pylogctl group list --log-format') words='text json' ;;
    'pylogctl group list --color') words='auto always never' ;;
    'pylogctl group describe --by') words='partition topic member group' ;;
    'pylogctl group describe -t' | 'pylogctl group describe --topic') words='@topic' ;;
    'pylogctl group describe --window') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group describe --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group describe --columns') words='group topic partition owner offset stored end lag_bytes lag_msgs commit_age rate eta status state members topics partitions member' ;;
    'pylogctl group describe --sort') words='group topic partition owner offset stored end lag_bytes lag_msgs commit_age rate eta status state members topics partitions member' ;;
    'pylogctl group describe --zk-credential') words='@file' ;;
    'pylogctl group describe --zk-tls-config') words='@file' ;;
    'pylogctl group describe --tls-ca') words='@file' ;;
    'pylogctl group describe --tls-cert') words='@file' ;;
    'pylogctl group describe --tls-key') words='@file' ;;
    'pylogctl group describe --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group describe --password-file') words='@file' ;;
    'pylogctl group describe --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group describe --progress') words='auto always never' ;;
    'pylogctl group describe -c' | 'pylogctl group describe --context') words='@context' ;;
    'pylogctl group describe --log-format') words='text json' ;;
    'pylogctl group describe --color') words='auto always never' ;;
    'pylogctl group lag -t' | 'pylogctl group lag --topic') words='@topic' ;;
    'pylogctl group lag --min-lag') words='64KiB 1MiB 16MiB 1GiB' ;;
    'pylogctl group lag --allowed-lag') words='64KiB 1MiB 16MiB 1GiB' ;;
    'pylogctl group lag --window') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group lag --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group lag --columns') words='group topic partition offset stored end lag_bytes lag_msgs age rate eta status' ;;
    'pylogctl group lag --sort') words='group topic partition offset stored end lag_bytes lag_msgs age rate eta status' ;;
    'pylogctl group lag --zk-credential') words='@file' ;;
    'pylogctl group lag --zk-tls-config') words='@file' ;;
    'pylogctl group lag --tls-ca') words='@file' ;;
    'pylogctl group lag --tls-cert') words='@file' ;;
    'pylogctl group lag --tls-key') words='@file' ;;
    'pylogctl group lag --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group lag --password-file') words='@file' ;;
    'pylogctl group lag --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group lag --progress') words='auto always never' ;;
    'pylogctl group lag -c' | 'pylogctl group lag --context') words='@context' ;;
    'pylogctl group lag --log-format') words='text json' ;;
    'pylogctl group lag --color') words='auto always never' ;;
    'pylogctl group members --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group members --columns') words='group member subscription topics streams partitions since session' ;;
    'pylogctl group members --sort') words='group member subscription topics streams partitions since session' ;;
    'pylogctl group members --zk-credential') words='@file' ;;
    'pylogctl group members --zk-tls-config') words='@file' ;;
    'pylogctl group members --tls-ca') words='@file' ;;
    'pylogctl group members --tls-cert') words='@file' ;;
    'pylogctl group members --tls-key') words='@file' ;;
    'pylogctl group members --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group members --password-file') words='@file' ;;
    'pylogctl group members --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group members -c' | 'pylogctl group members --context') words='@context' ;;
    'pylogctl group members --log-format') words='text json' ;;
    'pylogctl group members --color') words='auto always never' ;;
    'pylogctl group verify --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group verify --columns') words='group kind topic partition owner detail' ;;
    'pylogctl group verify --sort') words='group kind topic partition owner detail' ;;
    'pylogctl group verify --zk-credential') words='@file' ;;
    'pylogctl group verify --zk-tls-config') words='@file' ;;
    'pylogctl group verify --tls-ca') words='@file' ;;
    'pylogctl group verify --tls-cert') words='@file' ;;
    'pylogctl group verify --tls-key') words='@file' ;;
    'pylogctl group verify --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group verify --password-file') words='@file' ;;
    'pylogctl group verify --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group verify -c' | 'pylogctl group verify --context') words='@context' ;;
    'pylogctl group verify --log-format') words='text json' ;;
    'pylogctl group verify --color') words='auto always never' ;;
    'pylogctl group watch --interval') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group watch --zk-credential') words='@file' ;;
    'pylogctl group watch --zk-tls-config') words='@file' ;;
    'pylogctl group watch --tls-ca') words='@file' ;;
    'pylogctl group watch --tls-cert') words='@file' ;;
    'pylogctl group watch --tls-key') words='@file' ;;
    'pylogctl group watch --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group watch --password-file') words='@file' ;;
    'pylogctl group watch --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group watch -c' | 'pylogctl group watch --context') words='@context' ;;
    'pylogctl group watch --log-format') words='text json' ;;
    'pylogctl group watch --color') words='auto always never' ;;
    'pylogctl group reset --to') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl group reset -t' | 'pylogctl group reset --topic') words='@topic' ;;
    'pylogctl group reset --wait-inactive') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group reset --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group reset --columns') words='group topic partition current new delta_bytes direction note' ;;
    'pylogctl group reset --sort') words='group topic partition current new delta_bytes direction note' ;;
    'pylogctl group reset --zk-credential') words='@file' ;;
    'pylogctl group reset --zk-tls-config') words='@file' ;;
    'pylogctl group reset --tls-ca') words='@file' ;;
    'pylogctl group reset --tls-cert') words='@file' ;;
    'pylogctl group reset --tls-key') words='@file' ;;
    'pylogctl group reset --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group reset --password-file') words='@file' ;;
    'pylogctl group reset --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group reset -c' | 'pylogctl group reset --context') words='@context' ;;
    'pylogctl group reset --log-format') words='text json' ;;
    'pylogctl group reset --color') words='auto always never' ;;
    'pylogctl group export --output') words='jsonl csv zk07 table json tsv plain markdown name' ;;
    'pylogctl group export --columns') words='group topic partition offset committed' ;;
    'pylogctl group export --sort') words='group topic partition offset committed' ;;
    'pylogctl group export --zk-credential') words='@file' ;;
    'pylogctl group export --zk-tls-config') words='@file' ;;
    'pylogctl group export --tls-ca') words='@file' ;;
    'pylogctl group export --tls-cert') words='@file' ;;
    'pylogctl group export --tls-key') words='@file' ;;
    'pylogctl group export --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group export --password-file') words='@file' ;;
    'pylogctl group export --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group export -c' | 'pylogctl group export --context') words='@context' ;;
    'pylogctl group export --log-format') words='text json' ;;
    'pylogctl group export --color') words='auto always never' ;;
    'pylogctl group import --file') words='@file' ;;
    'pylogctl group import --wait-inactive') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group import --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group import --columns') words='group topic partition current new delta_bytes direction note' ;;
    'pylogctl group import --sort') words='group topic partition current new delta_bytes direction note' ;;
    'pylogctl group import --zk-credential') words='@file' ;;
    'pylogctl group import --zk-tls-config') words='@file' ;;
    'pylogctl group import --tls-ca') words='@file' ;;
    'pylogctl group import --tls-cert') words='@file' ;;
    'pylogctl group import --tls-key') words='@file' ;;
    'pylogctl group import --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group import --password-file') words='@file' ;;
    'pylogctl group import --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group import -c' | 'pylogctl group import --context') words='@context' ;;
    'pylogctl group import --log-format') words='text json' ;;
    'pylogctl group import --color') words='auto always never' ;;
    'pylogctl group clone --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group clone --columns') words='group topic partition current new delta_bytes direction note' ;;
    'pylogctl group clone --sort') words='group topic partition current new delta_bytes direction note' ;;
    'pylogctl group clone --zk-credential') words='@file' ;;
    'pylogctl group clone --zk-tls-config') words='@file' ;;
    'pylogctl group clone --tls-ca') words='@file' ;;
    'pylogctl group clone --tls-cert') words='@file' ;;
    'pylogctl group clone --tls-key') words='@file' ;;
    'pylogctl group clone --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group clone --password-file') words='@file' ;;
    'pylogctl group clone --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group clone -c' | 'pylogctl group clone --context') words='@context' ;;
    'pylogctl group clone --log-format') words='text json' ;;
    'pylogctl group clone --color') words='auto always never' ;;
    'pylogctl group delete --confirm') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group delete --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group delete --columns') words='group path action' ;;
    'pylogctl group delete --sort') words='group path action' ;;
    'pylogctl group delete --zk-credential') words='@file' ;;
    'pylogctl group delete --zk-tls-config') words='@file' ;;
    'pylogctl group delete --tls-ca') words='@file' ;;
    'pylogctl group delete --tls-cert') words='@file' ;;
    'pylogctl group delete --tls-key') words='@file' ;;
    'pylogctl group delete --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group delete --password-file') words='@file' ;;
    'pylogctl group delete --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group delete -c' | 'pylogctl group delete --context') words='@context' ;;
    'pylogctl group delete --log-format') words='text json' ;;
    'pylogctl group delete --color') words='auto always never' ;;
    'pylogctl group rebalance --wait') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group rebalance --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl group rebalance --columns') words='group topic partition old_owner new_owner' ;;
    'pylogctl group rebalance --sort') words='group topic partition old_owner new_owner' ;;
    'pylogctl group rebalance --zk-credential') words='@file' ;;
    'pylogctl group rebalance --zk-tls-config') words='@file' ;;
    'pylogctl group rebalance --tls-ca') words='@file' ;;
    'pylogctl group rebalance --tls-cert') words='@file' ;;
    'pylogctl group rebalance --tls-key') words='@file' ;;
    'pylogctl group rebalance --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl group rebalance --password-file') words='@file' ;;
    'pylogctl group rebalance --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl group rebalance -c' | 'pylogctl group rebalance --context') words='@context' ;;
    'pylogctl group rebalance --log-format') words='text json' ;;
    'pylogctl group rebalance --color') words='auto always never' ;;
    'pylogctl retry --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl retry --zk-credential') words='@file' ;;
    'pylogctl retry --zk-tls-config') words='@file' ;;
    'pylogctl retry -c' | 'pylogctl retry --context') words='@context' ;;
    'pylogctl retry --log-format') words='text json' ;;
    'pylogctl retry --color') words='auto always never' ;;
    'pylogctl retry --tls-ca') words='@file' ;;
    'pylogctl retry --tls-cert') words='@file' ;;
    'pylogctl retry --tls-key') words='@file' ;;
    'pylogctl retry --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl retry --password-file') words='@file' ;;
    'pylogctl retry --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl retry --columns') words='topic partition offset next_offset inner size attempts state next_attempt error payload' ;;
    'pylogctl retry --sort') words='topic partition offset next_offset inner size attempts state next_attempt error payload' ;;
    'pylogctl retry --progress') words='auto always never' ;;
    'pylogctl retry list --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl retry list --columns') words='topic partition offset next_offset inner size attempts state next_attempt error payload' ;;
    'pylogctl retry list --sort') words='topic partition offset next_offset inner size attempts state next_attempt error payload' ;;
    'pylogctl retry list --log-format') words='text json' ;;
    'pylogctl retry list --color') words='auto always never' ;;
    'pylogctl retry drain --log-format') words='text json' ;;
    'pylogctl retry drain --color') words='auto always never' ;;
    'pylogctl log --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log --zk-credential') words='@file' ;;
    'pylogctl log --zk-tls-config') words='@file' ;;
    'pylogctl log -c' | 'pylogctl log --context') words='@context' ;;
    'pylogctl log --log-format') words='text json' ;;
    'pylogctl log --color') words='auto always never' ;;
    'pylogctl log --tls-ca') words='@file' ;;
    'pylogctl log --tls-cert') words='@file' ;;
    'pylogctl log --tls-key') words='@file' ;;
    'pylogctl log --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl log --password-file') words='@file' ;;
    'pylogctl log --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl log --columns') words='log result start end bytes copies offset groups segments file pos size magic codec crc valid inner payload payload_b64 payload_hex topic partition broker directory seconds cut_at cut_bytes fault messages_kept later_segments backup done kind left_out_bytes target next_offset messages entries min avg max codecs ratio magics sizes payload_bytes valid_bytes expected found bytes_after skipped_bytes' ;;
    'pylogctl log --sort') words='log result start end bytes copies offset groups segments file pos size magic codec crc valid inner payload payload_b64 payload_hex topic partition broker directory seconds cut_at cut_bytes fault messages_kept later_segments backup done kind left_out_bytes target next_offset messages entries min avg max codecs ratio magics sizes payload_bytes valid_bytes expected found bytes_after skipped_bytes' ;;
    'pylogctl log --progress') words='auto always never' ;;
    'pylogctl log dump -o' | 'pylogctl log dump --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl log dump --payload') words='utf8 hex base64 escape' ;;
    'pylogctl log dump --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log dump --columns') words='file pos offset size magic codec crc valid inner payload payload_b64 payload_hex' ;;
    'pylogctl log dump --sort') words='file pos offset size magic codec crc valid inner payload payload_b64 payload_hex' ;;
    'pylogctl log dump --log-format') words='text json' ;;
    'pylogctl log dump --color') words='auto always never' ;;
    'pylogctl log grep -o' | 'pylogctl log grep --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl log grep --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log grep --columns') words='file pos offset size magic codec crc valid inner payload payload_b64 payload_hex' ;;
    'pylogctl log grep --sort') words='file pos offset size magic codec crc valid inner payload payload_b64 payload_hex' ;;
    'pylogctl log grep --log-format') words='text json' ;;
    'pylogctl log grep --color') words='auto always never' ;;
    'pylogctl log index --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log index --columns') words='file pos offset bytes' ;;
    'pylogctl log index --sort') words='file pos offset bytes' ;;
    'pylogctl log index --log-format') words='text json' ;;
    'pylogctl log index --color') words='auto always never' ;;
    'pylogctl log verify --engine') words='codec zlib crcmod' ;;
    'pylogctl log verify --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log verify --columns') words='file pos kind expected found bytes_after skipped_bytes' ;;
    'pylogctl log verify --sort') words='file pos kind expected found bytes_after skipped_bytes' ;;
    'pylogctl log verify --progress') words='auto always never' ;;
    'pylogctl log verify --log-format') words='text json' ;;
    'pylogctl log verify --color') words='auto always never' ;;
    'pylogctl log stat --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log stat --columns') words='file bytes entries messages min avg max codecs ratio fault magics sizes payload_bytes valid_bytes' ;;
    'pylogctl log stat --sort') words='file bytes entries messages min avg max codecs ratio fault magics sizes payload_bytes valid_bytes' ;;
    'pylogctl log stat --progress') words='auto always never' ;;
    'pylogctl log stat --log-format') words='text json' ;;
    'pylogctl log stat --color') words='auto always never' ;;
    'pylogctl log recover --confirm') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl log recover --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log recover --columns') words='file bytes cut_at cut_bytes fault messages_kept later_segments backup done' ;;
    'pylogctl log recover --sort') words='file bytes cut_at cut_bytes fault messages_kept later_segments backup done' ;;
    'pylogctl log recover --log-format') words='text json' ;;
    'pylogctl log recover --color') words='auto always never' ;;
    'pylogctl log repair --to') words='@file' ;;
    'pylogctl log repair --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log repair --columns') words='file pos kind left_out_bytes' ;;
    'pylogctl log repair --sort') words='file pos kind left_out_bytes' ;;
    'pylogctl log repair --log-format') words='text json' ;;
    'pylogctl log repair --color') words='auto always never' ;;
    'pylogctl log split --to') words='@dir' ;;
    'pylogctl log split --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log split --columns') words='file start end' ;;
    'pylogctl log split --sort') words='file start end' ;;
    'pylogctl log split --log-format') words='text json' ;;
    'pylogctl log split --color') words='auto always never' ;;
    'pylogctl log merge --to') words='@dir' ;;
    'pylogctl log merge --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log merge --columns') words='file start end' ;;
    'pylogctl log merge --sort') words='file start end' ;;
    'pylogctl log merge --log-format') words='text json' ;;
    'pylogctl log merge --color') words='auto always never' ;;
    'pylogctl log replay -t' | 'pylogctl log replay --topic') words='@topic' ;;
    'pylogctl log replay -o' | 'pylogctl log replay --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl log replay --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log replay --zk-credential') words='@file' ;;
    'pylogctl log replay --zk-tls-config') words='@file' ;;
    'pylogctl log replay --tls-ca') words='@file' ;;
    'pylogctl log replay --tls-cert') words='@file' ;;
    'pylogctl log replay --tls-key') words='@file' ;;
    'pylogctl log replay --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl log replay --password-file') words='@file' ;;
    'pylogctl log replay --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl log replay --progress') words='auto always never' ;;
    'pylogctl log replay -c' | 'pylogctl log replay --context') words='@context' ;;
    'pylogctl log replay --log-format') words='text json' ;;
    'pylogctl log replay --color') words='auto always never' ;;
    'pylogctl log move --to') words='@dir' ;;
    'pylogctl log move --on-broker') words='@broker' ;;
    'pylogctl log move --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log move --columns') words='topic partition broker directory bytes seconds' ;;
    'pylogctl log move --sort') words='topic partition broker directory bytes seconds' ;;
    'pylogctl log move --progress') words='auto always never' ;;
    'pylogctl log move --zk-credential') words='@file' ;;
    'pylogctl log move --zk-tls-config') words='@file' ;;
    'pylogctl log move --tls-ca') words='@file' ;;
    'pylogctl log move --tls-cert') words='@file' ;;
    'pylogctl log move --tls-key') words='@file' ;;
    'pylogctl log move --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl log move --password-file') words='@file' ;;
    'pylogctl log move --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl log move -c' | 'pylogctl log move --context') words='@context' ;;
    'pylogctl log move --log-format') words='text json' ;;
    'pylogctl log move --color') words='auto always never' ;;
    'pylogctl log compare --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl log compare --columns') words='log result start end bytes copies offset groups segments' ;;
    'pylogctl log compare --sort') words='log result start end bytes copies offset groups segments' ;;
    'pylogctl log compare --progress') words='auto always never' ;;
    'pylogctl log compare --zk-credential') words='@file' ;;
    'pylogctl log compare --zk-tls-config') words='@file' ;;
    'pylogctl log compare --tls-ca') words='@file' ;;
    'pylogctl log compare --tls-cert') words='@file' ;;
    'pylogctl log compare --tls-key') words='@file' ;;
    'pylogctl log compare --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl log compare --password-file') words='@file' ;;
    'pylogctl log compare --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl log compare -c' | 'pylogctl log compare --context') words='@context' ;;
    'pylogctl log compare --log-format') words='text json' ;;
    'pylogctl log compare --color') words='auto always never' ;;
    'pylogctl mirror --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl mirror --zk-credential') words='@file' ;;
    'pylogctl mirror --zk-tls-config') words='@file' ;;
    'pylogctl mirror -c' | 'pylogctl mirror --context') words='@context' ;;
    'pylogctl mirror --log-format') words='text json' ;;
    'pylogctl mirror --color') words='auto always never' ;;
    'pylogctl mirror --tls-ca') words='@file' ;;
    'pylogctl mirror --tls-cert') words='@file' ;;
    'pylogctl mirror --tls-key') words='@file' ;;
    'pylogctl mirror --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl mirror --password-file') words='@file' ;;
    'pylogctl mirror --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl mirror --columns') words='topic target partitions target_partitions bytes action group messages seconds last_error error_time corrupt end mirrored lag_bytes rate mirrors failing target_messages missing surplus digest target_digest status' ;;
    'pylogctl mirror --sort') words='topic target partitions target_partitions bytes action group messages seconds last_error error_time corrupt end mirrored lag_bytes rate mirrors failing target_messages missing surplus digest target_digest status' ;;
    'pylogctl mirror --progress') words='auto always never' ;;
    'pylogctl mirror run -g' | 'pylogctl mirror run --group') words='@group' ;;
    'pylogctl mirror run --on-corrupt') words='stop skip' ;;
    'pylogctl mirror run --from' | 'pylogctl mirror run --from-context') words='@context' ;;
    'pylogctl mirror run --to' | 'pylogctl mirror run --to-context') words='@context' ;;
    'pylogctl mirror run --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl mirror run --columns') words='topic target partitions target_partitions bytes action group messages seconds last_error error_time corrupt' ;;
    'pylogctl mirror run --sort') words='topic target partitions target_partitions bytes action group messages seconds last_error error_time corrupt' ;;
    'pylogctl mirror run --zk-credential') words='@file' ;;
    'pylogctl mirror run --zk-tls-config') words='@file' ;;
    'pylogctl mirror run --tls-ca') words='@file' ;;
    'pylogctl mirror run --tls-cert') words='@file' ;;
    'pylogctl mirror run --tls-key') words='@file' ;;
    'pylogctl mirror run --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl mirror run --password-file') words='@file' ;;
    'pylogctl mirror run --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl mirror run -c' | 'pylogctl mirror run --context') words='@context' ;;
    'pylogctl mirror run --log-format') words='text json' ;;
    'pylogctl mirror run --color') words='auto always never' ;;
    'pylogctl mirror status -g' | 'pylogctl mirror status --group') words='@group' ;;
    'pylogctl mirror status --interval') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl mirror status --fail-above') words='64KiB 1MiB 16MiB 1GiB' ;;
    'pylogctl mirror status --from' | 'pylogctl mirror status --from-context') words='@context' ;;
    'pylogctl mirror status --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl mirror status --columns') words='topic end mirrored lag_bytes rate mirrors failing error_time last_error corrupt' ;;
    'pylogctl mirror status --sort') words='topic end mirrored lag_bytes rate mirrors failing error_time last_error corrupt' ;;
    'pylogctl mirror status --zk-credential') words='@file' ;;
    'pylogctl mirror status --zk-tls-config') words='@file' ;;
    'pylogctl mirror status --tls-ca') words='@file' ;;
    'pylogctl mirror status --tls-cert') words='@file' ;;
    'pylogctl mirror status --tls-key') words='@file' ;;
    'pylogctl mirror status --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl mirror status --password-file') words='@file' ;;
    'pylogctl mirror status --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl mirror status -c' | 'pylogctl mirror status --context') words='@context' ;;
    'pylogctl mirror status --log-format') words='text json' ;;
    'pylogctl mirror status --color') words='auto always never' ;;
    'pylogctl mirror verify -o' | 'pylogctl mirror verify --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl mirror verify --target-offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl mirror verify --from' | 'pylogctl mirror verify --from-context') words='@context' ;;
    'pylogctl mirror verify --to' | 'pylogctl mirror verify --to-context') words='@context' ;;
    'pylogctl mirror verify --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl mirror verify --columns') words='topic target messages target_messages missing surplus digest target_digest status' ;;
    'pylogctl mirror verify --sort') words='topic target messages target_messages missing surplus digest target_digest status' ;;
    'pylogctl mirror verify --zk-credential') words='@file' ;;
    'pylogctl mirror verify --zk-tls-config') words='@file' ;;
    'pylogctl mirror verify --tls-ca') words='@file' ;;
    'pylogctl mirror verify --tls-cert') words='@file' ;;
    'pylogctl mirror verify --tls-key') words='@file' ;;
    'pylogctl mirror verify --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl mirror verify --password-file') words='@file' ;;
    'pylogctl mirror verify --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl mirror verify --progress') words='auto always never' ;;
    'pylogctl mirror verify -c' | 'pylogctl mirror verify --context') words='@context' ;;
    'pylogctl mirror verify --log-format') words='text json' ;;
    'pylogctl mirror verify --color') words='auto always never' ;;
    'pylogctl metrics --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl metrics --zk-credential') words='@file' ;;
    'pylogctl metrics --zk-tls-config') words='@file' ;;
    'pylogctl metrics -c' | 'pylogctl metrics --context') words='@context' ;;
    'pylogctl metrics --log-format') words='text json' ;;
    'pylogctl metrics --color') words='auto always never' ;;
    'pylogctl metrics --tls-ca') words='@file' ;;
    'pylogctl metrics --tls-cert') words='@file' ;;
    'pylogctl metrics --tls-key') words='@file' ;;
    'pylogctl metrics --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl metrics --password-file') words='@file' ;;
    'pylogctl metrics --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl metrics --progress') words='auto always never' ;;
    'pylogctl metrics serve --interval') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl metrics serve --window') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl metrics serve --zk-credential') words='@file' ;;
    'pylogctl metrics serve --zk-tls-config') words='@file' ;;
    'pylogctl metrics serve --tls-ca') words='@file' ;;
    'pylogctl metrics serve --tls-cert') words='@file' ;;
    'pylogctl metrics serve --tls-key') words='@file' ;;
    'pylogctl metrics serve --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl metrics serve --password-file') words='@file' ;;
    'pylogctl metrics serve --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl metrics serve -c' | 'pylogctl metrics serve --context') words='@context' ;;
    'pylogctl metrics serve --log-format') words='text json' ;;
    'pylogctl metrics serve --color') words='auto always never' ;;
    'pylogctl metrics dump --zk-credential') words='@file' ;;
    'pylogctl metrics dump --zk-tls-config') words='@file' ;;
    'pylogctl metrics dump --tls-ca') words='@file' ;;
    'pylogctl metrics dump --tls-cert') words='@file' ;;
    'pylogctl metrics dump --tls-key') words='@file' ;;
    'pylogctl metrics dump --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl metrics dump --password-file') words='@file' ;;
    'pylogctl metrics dump --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl metrics dump -c' | 'pylogctl metrics dump --context') words='@context' ;;
    'pylogctl metrics dump --log-format') words='text json' ;;
    'pylogctl metrics dump --color') words='auto always never' ;;
    'pylogctl audit --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl audit --zk-credential') words='@file' ;;
    'pylogctl audit --zk-tls-config') words='@file' ;;
    'pylogctl audit -c' | 'pylogctl audit --context') words='@context' ;;
    'pylogctl audit --log-format') words='text json' ;;
    'pylogctl audit --color') words='auto always never' ;;
    'pylogctl audit --tls-ca') words='@file' ;;
    'pylogctl audit --tls-cert') words='@file' ;;
    'pylogctl audit --tls-key') words='@file' ;;
    'pylogctl audit --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl audit --password-file') words='@file' ;;
    'pylogctl audit --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl audit --columns') words='topic start end tier expected found difference expected_bytes found_bytes status messages bytes' ;;
    'pylogctl audit --sort') words='topic start end tier expected found difference expected_bytes found_bytes status messages bytes' ;;
    'pylogctl audit --progress') words='auto always never' ;;
    'pylogctl audit show -o' | 'pylogctl audit show --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl audit show --tier') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl audit show --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl audit show --columns') words='topic start end tier messages bytes' ;;
    'pylogctl audit show --sort') words='topic start end tier messages bytes' ;;
    'pylogctl audit show --zk-credential') words='@file' ;;
    'pylogctl audit show --zk-tls-config') words='@file' ;;
    'pylogctl audit show --tls-ca') words='@file' ;;
    'pylogctl audit show --tls-cert') words='@file' ;;
    'pylogctl audit show --tls-key') words='@file' ;;
    'pylogctl audit show --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl audit show --password-file') words='@file' ;;
    'pylogctl audit show --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl audit show --progress') words='auto always never' ;;
    'pylogctl audit show -c' | 'pylogctl audit show --context') words='@context' ;;
    'pylogctl audit show --log-format') words='text json' ;;
    'pylogctl audit show --color') words='auto always never' ;;
    'pylogctl audit check -o' | 'pylogctl audit check --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl audit check --tier') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl audit check --time-field') words='@zk-path' ;;
    'pylogctl audit check --grace') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl audit check --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl audit check --columns') words='topic start end tier expected found difference expected_bytes found_bytes status' ;;
    'pylogctl audit check --sort') words='topic start end tier expected found difference expected_bytes found_bytes status' ;;
    'pylogctl audit check --zk-credential') words='@file' ;;
    'pylogctl audit check --zk-tls-config') words='@file' ;;
    'pylogctl audit check --tls-ca') words='@file' ;;
    'pylogctl audit check --tls-cert') words='@file' ;;
    'pylogctl audit check --tls-key') words='@file' ;;
    'pylogctl audit check --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl audit check --password-file') words='@file' ;;
    'pylogctl audit check --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl audit check --progress') words='auto always never' ;;
    'pylogctl audit check -c' | 'pylogctl audit check --context') words='@context' ;;
    'pylogctl audit check --log-format') words='text json' ;;
    'pylogctl audit check --color') words='auto always never' ;;
    'pylogctl pipeline --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl pipeline --zk-credential') words='@file' ;;
    'pylogctl pipeline --zk-tls-config') words='@file' ;;
    'pylogctl pipeline -c' | 'pylogctl pipeline --context') words='@context' ;;
    'pylogctl pipeline --log-format') words='text json' ;;
    'pylogctl pipeline --color') words='auto always never' ;;
    'pylogctl pipeline --tls-ca') words='@file' ;;
    'pylogctl pipeline --tls-cert') words='@file' ;;
    'pylogctl pipeline --tls-key') words='@file' ;;
    'pylogctl pipeline --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl pipeline --password-file') words='@file' ;;
    'pylogctl pipeline --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline --columns') words='topic start end tier expected found lost late duplicated status path files bytes messages load partition payload_bytes left_out_bytes crc_sum tasks lost_bytes' ;;
    'pylogctl pipeline --sort') words='topic start end tier expected found lost late duplicated status path files bytes messages load partition payload_bytes left_out_bytes crc_sum tasks lost_bytes' ;;
    'pylogctl pipeline --progress') words='auto always never' ;;
    'pylogctl pipeline load --to') words='@dir' ;;
    'pylogctl pipeline load --format') words='parquet json text' ;;
    'pylogctl pipeline load --file-size') words='64KiB 1MiB 16MiB 1GiB' ;;
    'pylogctl pipeline load --group') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl pipeline load --path') words='@zk-path' ;;
    'pylogctl pipeline load --from') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl pipeline load --until') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl pipeline load --avro-schemas') words='@dir' ;;
    'pylogctl pipeline load --avro-reader') words='@broker' ;;
    'pylogctl pipeline load --date-field') words='@zk-path' ;;
    'pylogctl pipeline load --corrupt') words='fail skip' ;;
    'pylogctl pipeline load --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl pipeline load --columns') words='load topic partition start end messages payload_bytes left_out_bytes crc_sum bytes tasks lost_bytes' ;;
    'pylogctl pipeline load --sort') words='load topic partition start end messages payload_bytes left_out_bytes crc_sum bytes tasks lost_bytes' ;;
    'pylogctl pipeline load --zk-credential') words='@file' ;;
    'pylogctl pipeline load --zk-tls-config') words='@file' ;;
    'pylogctl pipeline load --tls-ca') words='@file' ;;
    'pylogctl pipeline load --tls-cert') words='@file' ;;
    'pylogctl pipeline load --tls-key') words='@file' ;;
    'pylogctl pipeline load --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl pipeline load --password-file') words='@file' ;;
    'pylogctl pipeline load --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline load --progress') words='auto always never' ;;
    'pylogctl pipeline load -c' | 'pylogctl pipeline load --context') words='@context' ;;
    'pylogctl pipeline load --log-format') words='text json' ;;
    'pylogctl pipeline load --color') words='auto always never' ;;
    'pylogctl pipeline compact --file-size') words='64KiB 1MiB 16MiB 1GiB' ;;
    'pylogctl pipeline compact --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl pipeline compact --columns') words='path files bytes messages load topic partition start end payload_bytes left_out_bytes crc_sum' ;;
    'pylogctl pipeline compact --sort') words='path files bytes messages load topic partition start end payload_bytes left_out_bytes crc_sum' ;;
    'pylogctl pipeline compact --progress') words='auto always never' ;;
    'pylogctl pipeline compact --log-format') words='text json' ;;
    'pylogctl pipeline compact --color') words='auto always never' ;;
    'pylogctl pipeline sql -t' | 'pylogctl pipeline sql --topic') words='@topic' ;;
    'pylogctl pipeline sql --path') words='@zk-path' ;;
    'pylogctl pipeline sql --from') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl pipeline sql --until') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl pipeline sql --corrupt') words='fail skip' ;;
    'pylogctl pipeline sql --into') words='@file' ;;
    'pylogctl pipeline sql --to-topic') words='@topic' ;;
    'pylogctl pipeline sql --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl pipeline sql --zk-credential') words='@file' ;;
    'pylogctl pipeline sql --zk-tls-config') words='@file' ;;
    'pylogctl pipeline sql --tls-ca') words='@file' ;;
    'pylogctl pipeline sql --tls-cert') words='@file' ;;
    'pylogctl pipeline sql --tls-key') words='@file' ;;
    'pylogctl pipeline sql --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl pipeline sql --password-file') words='@file' ;;
    'pylogctl pipeline sql --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline sql --progress') words='auto always never' ;;
    'pylogctl pipeline sql -c' | 'pylogctl pipeline sql --context') words='@context' ;;
    'pylogctl pipeline sql --log-format') words='text json' ;;
    'pylogctl pipeline sql --color') words='auto always never' ;;
    'pylogctl pipeline window --size') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline window --slide') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline window --session') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline window --top-by') words='messages sum average maximum' ;;
    'pylogctl pipeline window --value-field') words='@zk-path' ;;
    'pylogctl pipeline window --key-field') words='@zk-path' ;;
    'pylogctl pipeline window --time-field') words='@zk-path' ;;
    'pylogctl pipeline window --path') words='@zk-path' ;;
    'pylogctl pipeline window --from') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl pipeline window --until') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl pipeline window --corrupt') words='fail skip' ;;
    'pylogctl pipeline window --checkpoint') words='@dir' ;;
    'pylogctl pipeline window --watermark') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline window --into') words='@file' ;;
    'pylogctl pipeline window --to-topic') words='@topic' ;;
    'pylogctl pipeline window --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl pipeline window --zk-credential') words='@file' ;;
    'pylogctl pipeline window --zk-tls-config') words='@file' ;;
    'pylogctl pipeline window --tls-ca') words='@file' ;;
    'pylogctl pipeline window --tls-cert') words='@file' ;;
    'pylogctl pipeline window --tls-key') words='@file' ;;
    'pylogctl pipeline window --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl pipeline window --password-file') words='@file' ;;
    'pylogctl pipeline window --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline window --progress') words='auto always never' ;;
    'pylogctl pipeline window -c' | 'pylogctl pipeline window --context') words='@context' ;;
    'pylogctl pipeline window --log-format') words='text json' ;;
    'pylogctl pipeline window --color') words='auto always never' ;;
    'pylogctl pipeline join --table') words='@file' ;;
    'pylogctl pipeline join --within') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline join --how') words='inner left' ;;
    'pylogctl pipeline join --key-field') words='@zk-path' ;;
    'pylogctl pipeline join --time-field') words='@zk-path' ;;
    'pylogctl pipeline join --path') words='@zk-path' ;;
    'pylogctl pipeline join --from') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl pipeline join --until') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl pipeline join --corrupt') words='fail skip' ;;
    'pylogctl pipeline join --checkpoint') words='@dir' ;;
    'pylogctl pipeline join --watermark') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline join --into') words='@file' ;;
    'pylogctl pipeline join --to-topic') words='@topic' ;;
    'pylogctl pipeline join --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl pipeline join --zk-credential') words='@file' ;;
    'pylogctl pipeline join --zk-tls-config') words='@file' ;;
    'pylogctl pipeline join --tls-ca') words='@file' ;;
    'pylogctl pipeline join --tls-cert') words='@file' ;;
    'pylogctl pipeline join --tls-key') words='@file' ;;
    'pylogctl pipeline join --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl pipeline join --password-file') words='@file' ;;
    'pylogctl pipeline join --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline join --progress') words='auto always never' ;;
    'pylogctl pipeline join -c' | 'pylogctl pipeline join --context') words='@context' ;;
    'pylogctl pipeline join --log-format') words='text json' ;;
    'pylogctl pipeline join --color') words='auto always never' ;;
    'pylogctl pipeline audit --load') words='@dir' ;;
    'pylogctl pipeline audit --time-field') words='@zk-path' ;;
    'pylogctl pipeline audit --grace') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline audit --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl pipeline audit --columns') words='topic start end tier expected found lost late duplicated status' ;;
    'pylogctl pipeline audit --sort') words='topic start end tier expected found lost late duplicated status' ;;
    'pylogctl pipeline audit --zk-credential') words='@file' ;;
    'pylogctl pipeline audit --zk-tls-config') words='@file' ;;
    'pylogctl pipeline audit --tls-ca') words='@file' ;;
    'pylogctl pipeline audit --tls-cert') words='@file' ;;
    'pylogctl pipeline audit --tls-key') words='@file' ;;
    'pylogctl pipeline audit --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl pipeline audit --password-file') words='@file' ;;
    'pylogctl pipeline audit --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl pipeline audit -c' | 'pylogctl pipeline audit --context') words='@context' ;;
    'pylogctl pipeline audit --log-format') words='text json' ;;
    'pylogctl pipeline audit --color') words='auto always never' ;;
    'pylogctl pipeline verify --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl pipeline verify --progress') words='auto always never' ;;
    'pylogctl pipeline verify --log-format') words='text json' ;;
    'pylogctl pipeline verify --color') words='auto always never' ;;
    'pylogctl perf --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl perf --zk-credential') words='@file' ;;
    'pylogctl perf --zk-tls-config') words='@file' ;;
    'pylogctl perf -c' | 'pylogctl perf --context') words='@context' ;;
    'pylogctl perf --log-format') words='text json' ;;
    'pylogctl perf --color') words='auto always never' ;;
    'pylogctl perf --tls-ca') words='@file' ;;
    'pylogctl perf --tls-cert') words='@file' ;;
    'pylogctl perf --tls-key') words='@file' ;;
    'pylogctl perf --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl perf --password-file') words='@file' ;;
    'pylogctl perf --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf --columns') words='figure before after change_percent verdict decides messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes rate late_ms missing acks flush overhead_bytes topic partitions batch codec threads file command started options pylogctl git_revision python platform processors' ;;
    'pylogctl perf --sort') words='figure before after change_percent verdict decides messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes rate late_ms missing acks flush overhead_bytes topic partitions batch codec threads file command started options pylogctl git_revision python platform processors' ;;
    'pylogctl perf --progress') words='auto always never' ;;
    'pylogctl perf produce --duration') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf produce --interval') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf produce --save') words='@file' ;;
    'pylogctl perf produce --payload-file') words='@file' ;;
    'pylogctl perf produce -z' | 'pylogctl perf produce --codec') words='none gzip snappy lz4 zstd' ;;
    'pylogctl perf produce --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl perf produce --columns') words='messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes overhead_bytes topic partitions batch codec acks threads' ;;
    'pylogctl perf produce --sort') words='messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes overhead_bytes topic partitions batch codec acks threads' ;;
    'pylogctl perf produce --zk-credential') words='@file' ;;
    'pylogctl perf produce --zk-tls-config') words='@file' ;;
    'pylogctl perf produce --tls-ca') words='@file' ;;
    'pylogctl perf produce --tls-cert') words='@file' ;;
    'pylogctl perf produce --tls-key') words='@file' ;;
    'pylogctl perf produce --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl perf produce --password-file') words='@file' ;;
    'pylogctl perf produce --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf produce --progress') words='auto always never' ;;
    'pylogctl perf produce -c' | 'pylogctl perf produce --context') words='@context' ;;
    'pylogctl perf produce --log-format') words='text json' ;;
    'pylogctl perf produce --color') words='auto always never' ;;
    'pylogctl perf consume --duration') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf consume --interval') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf consume --save') words='@file' ;;
    'pylogctl perf consume -o' | 'pylogctl perf consume --offset') words='start end -10 @-10m @-1h @today @yesterday' ;;
    'pylogctl perf consume --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl perf consume --columns') words='messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes' ;;
    'pylogctl perf consume --sort') words='messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes' ;;
    'pylogctl perf consume --zk-credential') words='@file' ;;
    'pylogctl perf consume --zk-tls-config') words='@file' ;;
    'pylogctl perf consume --tls-ca') words='@file' ;;
    'pylogctl perf consume --tls-cert') words='@file' ;;
    'pylogctl perf consume --tls-key') words='@file' ;;
    'pylogctl perf consume --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl perf consume --password-file') words='@file' ;;
    'pylogctl perf consume --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf consume --progress') words='auto always never' ;;
    'pylogctl perf consume -c' | 'pylogctl perf consume --context') words='@context' ;;
    'pylogctl perf consume --log-format') words='text json' ;;
    'pylogctl perf consume --color') words='auto always never' ;;
    'pylogctl perf e2e --duration') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf e2e --interval') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf e2e --save') words='@file' ;;
    'pylogctl perf e2e -z' | 'pylogctl perf e2e --codec') words='none gzip snappy lz4 zstd' ;;
    'pylogctl perf e2e --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl perf e2e --columns') words='messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes rate late_ms missing acks flush' ;;
    'pylogctl perf e2e --sort') words='messages bytes seconds msg_per_s mib_per_s p50_ms p90_ms p95_ms p99_ms p99_9_ms max_ms cpu_s rss_bytes rate late_ms missing acks flush' ;;
    'pylogctl perf e2e --zk-credential') words='@file' ;;
    'pylogctl perf e2e --zk-tls-config') words='@file' ;;
    'pylogctl perf e2e --tls-ca') words='@file' ;;
    'pylogctl perf e2e --tls-cert') words='@file' ;;
    'pylogctl perf e2e --tls-key') words='@file' ;;
    'pylogctl perf e2e --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl perf e2e --password-file') words='@file' ;;
    'pylogctl perf e2e --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl perf e2e --progress') words='auto always never' ;;
    'pylogctl perf e2e -c' | 'pylogctl perf e2e --context') words='@context' ;;
    'pylogctl perf e2e --log-format') words='text json' ;;
    'pylogctl perf e2e --color') words='auto always never' ;;
    'pylogctl perf compare --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl perf compare --columns') words='figure before after change_percent verdict decides' ;;
    'pylogctl perf compare --sort') words='figure before after change_percent verdict decides' ;;
    'pylogctl perf compare --log-format') words='text json' ;;
    'pylogctl perf compare --color') words='auto always never' ;;
    'pylogctl perf report --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl perf report --columns') words='file command topic messages seconds msg_per_s mib_per_s p50_ms p99_ms p99_9_ms max_ms overhead_bytes acks flush cpu_s rss_bytes started options pylogctl git_revision python platform processors' ;;
    'pylogctl perf report --sort') words='file command topic messages seconds msg_per_s mib_per_s p50_ms p99_ms p99_9_ms max_ms overhead_bytes acks flush cpu_s rss_bytes started options pylogctl git_revision python platform processors' ;;
    'pylogctl perf report --log-format') words='text json' ;;
    'pylogctl perf report --color') words='auto always never' ;;
    'pylogctl zk --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk --zk-credential') words='@file' ;;
    'pylogctl zk --zk-tls-config') words='@file' ;;
    'pylogctl zk -c' | 'pylogctl zk --context') words='@context' ;;
    'pylogctl zk --log-format') words='text json' ;;
    'pylogctl zk --color') words='auto always never' ;;
    'pylogctl zk --tls-ca') words='@file' ;;
    'pylogctl zk --tls-cert') words='@file' ;;
    'pylogctl zk --tls-key') words='@file' ;;
    'pylogctl zk --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl zk --password-file') words='@file' ;;
    'pylogctl zk --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk --columns') words='tree nodes to_change path action bytes ephemeral before after difference here other value version children modified decoded hex server state mode answered_by connections outstanding watches problem facts name session brokers members paths zookeeper pid data log_file owner created czxid mzxid cversion aversion depth time event' ;;
    'pylogctl zk --sort') words='tree nodes to_change path action bytes ephemeral before after difference here other value version children modified decoded hex server state mode answered_by connections outstanding watches problem facts name session brokers members paths zookeeper pid data log_file owner created czxid mzxid cversion aversion depth time event' ;;
    'pylogctl zk --progress') words='auto always never' ;;
    'pylogctl zk ls --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk ls --columns') words='name version bytes children ephemeral modified' ;;
    'pylogctl zk ls --sort') words='name version bytes children ephemeral modified' ;;
    'pylogctl zk ls --zk-credential') words='@file' ;;
    'pylogctl zk ls --zk-tls-config') words='@file' ;;
    'pylogctl zk ls --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk ls -c' | 'pylogctl zk ls --context') words='@context' ;;
    'pylogctl zk ls --log-format') words='text json' ;;
    'pylogctl zk ls --color') words='auto always never' ;;
    'pylogctl zk tree --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk tree --columns') words='path depth value version bytes children ephemeral modified decoded' ;;
    'pylogctl zk tree --sort') words='path depth value version bytes children ephemeral modified decoded' ;;
    'pylogctl zk tree --zk-credential') words='@file' ;;
    'pylogctl zk tree --zk-tls-config') words='@file' ;;
    'pylogctl zk tree --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk tree -c' | 'pylogctl zk tree --context') words='@context' ;;
    'pylogctl zk tree --log-format') words='text json' ;;
    'pylogctl zk tree --color') words='auto always never' ;;
    'pylogctl zk get --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk get --columns') words='path value hex version bytes children ephemeral modified decoded' ;;
    'pylogctl zk get --sort') words='path value hex version bytes children ephemeral modified decoded' ;;
    'pylogctl zk get --zk-credential') words='@file' ;;
    'pylogctl zk get --zk-tls-config') words='@file' ;;
    'pylogctl zk get --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk get -c' | 'pylogctl zk get --context') words='@context' ;;
    'pylogctl zk get --log-format') words='text json' ;;
    'pylogctl zk get --color') words='auto always never' ;;
    'pylogctl zk stat --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk stat --columns') words='path version bytes children ephemeral modified owner created czxid mzxid cversion aversion' ;;
    'pylogctl zk stat --sort') words='path version bytes children ephemeral modified owner created czxid mzxid cversion aversion' ;;
    'pylogctl zk stat --zk-credential') words='@file' ;;
    'pylogctl zk stat --zk-tls-config') words='@file' ;;
    'pylogctl zk stat --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk stat -c' | 'pylogctl zk stat --context') words='@context' ;;
    'pylogctl zk stat --log-format') words='text json' ;;
    'pylogctl zk stat --color') words='auto always never' ;;
    'pylogctl zk find --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk find --columns') words='path value version bytes children ephemeral modified decoded' ;;
    'pylogctl zk find --sort') words='path value version bytes children ephemeral modified decoded' ;;
    'pylogctl zk find --zk-credential') words='@file' ;;
    'pylogctl zk find --zk-tls-config') words='@file' ;;
    'pylogctl zk find --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk find -c' | 'pylogctl zk find --context') words='@context' ;;
    'pylogctl zk find --log-format') words='text json' ;;
    'pylogctl zk find --color') words='auto always never' ;;
    'pylogctl zk watch --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk watch --columns') words='time event path version value decoded' ;;
    'pylogctl zk watch --sort') words='time event path version value decoded' ;;
    'pylogctl zk watch --zk-credential') words='@file' ;;
    'pylogctl zk watch --zk-tls-config') words='@file' ;;
    'pylogctl zk watch --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk watch -c' | 'pylogctl zk watch --context') words='@context' ;;
    'pylogctl zk watch --log-format') words='text json' ;;
    'pylogctl zk watch --color') words='auto always never' ;;
    'pylogctl zk sessions --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk sessions --columns') words='session nodes brokers members paths' ;;
    'pylogctl zk sessions --sort') words='session nodes brokers members paths' ;;
    'pylogctl zk sessions --zk-credential') words='@file' ;;
    'pylogctl zk sessions --zk-tls-config') words='@file' ;;
    'pylogctl zk sessions --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk sessions -c' | 'pylogctl zk sessions --context') words='@context' ;;
    'pylogctl zk sessions --log-format') words='text json' ;;
    'pylogctl zk sessions --color') words='auto always never' ;;
    'pylogctl zk health --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk health --columns') words='server state mode answered_by connections outstanding nodes ephemeral watches version problem facts' ;;
    'pylogctl zk health --sort') words='server state mode answered_by connections outstanding nodes ephemeral watches version problem facts' ;;
    'pylogctl zk health --zk-credential') words='@file' ;;
    'pylogctl zk health --zk-tls-config') words='@file' ;;
    'pylogctl zk health --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk health -c' | 'pylogctl zk health --context') words='@context' ;;
    'pylogctl zk health --log-format') words='text json' ;;
    'pylogctl zk health --color') words='auto always never' ;;
    'pylogctl zk set --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk set --columns') words='path action bytes ephemeral before after' ;;
    'pylogctl zk set --sort') words='path action bytes ephemeral before after' ;;
    'pylogctl zk set --zk-credential') words='@file' ;;
    'pylogctl zk set --zk-tls-config') words='@file' ;;
    'pylogctl zk set --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk set -c' | 'pylogctl zk set --context') words='@context' ;;
    'pylogctl zk set --log-format') words='text json' ;;
    'pylogctl zk set --color') words='auto always never' ;;
    'pylogctl zk create --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk create --columns') words='path action bytes ephemeral before after' ;;
    'pylogctl zk create --sort') words='path action bytes ephemeral before after' ;;
    'pylogctl zk create --zk-credential') words='@file' ;;
    'pylogctl zk create --zk-tls-config') words='@file' ;;
    'pylogctl zk create --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk create -c' | 'pylogctl zk create --context') words='@context' ;;
    'pylogctl zk create --log-format') words='text json' ;;
    'pylogctl zk create --color') words='auto always never' ;;
    'pylogctl zk rm --confirm') words='@zk-path' ;;
    'pylogctl zk rm --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk rm --columns') words='path action bytes ephemeral before after' ;;
    'pylogctl zk rm --sort') words='path action bytes ephemeral before after' ;;
    'pylogctl zk rm --zk-credential') words='@file' ;;
    'pylogctl zk rm --zk-tls-config') words='@file' ;;
    'pylogctl zk rm --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk rm -c' | 'pylogctl zk rm --context') words='@context' ;;
    'pylogctl zk rm --log-format') words='text json' ;;
    'pylogctl zk rm --color') words='auto always never' ;;
    'pylogctl zk export --zk-credential') words='@file' ;;
    'pylogctl zk export --zk-tls-config') words='@file' ;;
    'pylogctl zk export --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk export -c' | 'pylogctl zk export --context') words='@context' ;;
    'pylogctl zk export --log-format') words='text json' ;;
    'pylogctl zk export --color') words='auto always never' ;;
    'pylogctl zk import --file') words='@file' ;;
    'pylogctl zk import --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk import --columns') words='path action bytes ephemeral before after' ;;
    'pylogctl zk import --sort') words='path action bytes ephemeral before after' ;;
    'pylogctl zk import --zk-credential') words='@file' ;;
    'pylogctl zk import --zk-tls-config') words='@file' ;;
    'pylogctl zk import --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk import -c' | 'pylogctl zk import --context') words='@context' ;;
    'pylogctl zk import --log-format') words='text json' ;;
    'pylogctl zk import --color') words='auto always never' ;;
    'pylogctl zk diff --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk diff --columns') words='path difference here other' ;;
    'pylogctl zk diff --sort') words='path difference here other' ;;
    'pylogctl zk diff --zk-credential') words='@file' ;;
    'pylogctl zk diff --zk-tls-config') words='@file' ;;
    'pylogctl zk diff --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk diff -c' | 'pylogctl zk diff --context') words='@context' ;;
    'pylogctl zk diff --log-format') words='text json' ;;
    'pylogctl zk diff --color') words='auto always never' ;;
    'pylogctl zk secure --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk secure --columns') words='tree nodes to_change' ;;
    'pylogctl zk secure --sort') words='tree nodes to_change' ;;
    'pylogctl zk secure --zk-credential') words='@file' ;;
    'pylogctl zk secure --zk-tls-config') words='@file' ;;
    'pylogctl zk secure --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk secure -c' | 'pylogctl zk secure --context') words='@context' ;;
    'pylogctl zk secure --log-format') words='text json' ;;
    'pylogctl zk secure --color') words='auto always never' ;;
    'pylogctl zk open --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk open --columns') words='tree nodes to_change' ;;
    'pylogctl zk open --sort') words='tree nodes to_change' ;;
    'pylogctl zk open --zk-credential') words='@file' ;;
    'pylogctl zk open --zk-tls-config') words='@file' ;;
    'pylogctl zk open --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk open -c' | 'pylogctl zk open --context') words='@context' ;;
    'pylogctl zk open --log-format') words='text json' ;;
    'pylogctl zk open --color') words='auto always never' ;;
    'pylogctl zk shell --zk-credential') words='@file' ;;
    'pylogctl zk shell --zk-tls-config') words='@file' ;;
    'pylogctl zk shell --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl zk shell -c' | 'pylogctl zk shell --context') words='@context' ;;
    'pylogctl zk shell --log-format') words='text json' ;;
    'pylogctl zk shell --color') words='auto always never' ;;
    'pylogctl zk start --data') words='@dir' ;;
    'pylogctl zk start --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl zk start --log-format') words='text json' ;;
    'pylogctl zk start --color') words='auto always never' ;;
    'pylogctl web --token-file') words='@file' ;;
    'pylogctl web --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl web --zk-credential') words='@file' ;;
    'pylogctl web --zk-tls-config') words='@file' ;;
    'pylogctl web --tls-ca') words='@file' ;;
    'pylogctl web --tls-cert') words='@file' ;;
    'pylogctl web --tls-key') words='@file' ;;
    'pylogctl web --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl web --password-file') words='@file' ;;
    'pylogctl web --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl web -c' | 'pylogctl web --context') words='@context' ;;
    'pylogctl web --log-format') words='text json' ;;
    'pylogctl web --color') words='auto always never' ;;
    'pylogctl context --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl context --zk-credential') words='@file' ;;
    'pylogctl context --zk-tls-config') words='@file' ;;
    'pylogctl context -c' | 'pylogctl context --context') words='@context' ;;
    'pylogctl context --log-format') words='text json' ;;
    'pylogctl context --color') words='auto always never' ;;
    'pylogctl context --tls-ca') words='@file' ;;
    'pylogctl context --tls-cert') words='@file' ;;
    'pylogctl context --tls-key') words='@file' ;;
    'pylogctl context --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl context --password-file') words='@file' ;;
    'pylogctl context --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl context --columns') words='name current zookeeper brokers timeout tls user protected read_only color file' ;;
    'pylogctl context --sort') words='name current zookeeper brokers timeout tls user protected read_only color file' ;;
    'pylogctl context --progress') words='auto always never' ;;
    'pylogctl context list --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl context list --columns') words='name current zookeeper brokers timeout tls user protected read_only color file' ;;
    'pylogctl context list --sort') words='name current zookeeper brokers timeout tls user protected read_only color file' ;;
    'pylogctl context list --log-format') words='text json' ;;
    'pylogctl context list --color') words='auto always never' ;;
    'pylogctl context show --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl context show --columns') words='name current zookeeper brokers timeout tls user protected read_only color file' ;;
    'pylogctl context show --sort') words='name current zookeeper brokers timeout tls user protected read_only color file' ;;
    'pylogctl context show --log-format') words='text json' ;;
    'pylogctl context show --color') words='auto always never' ;;
    'pylogctl context use --log-format') words='text json' ;;
    'pylogctl context use --color') words='auto always never' ;;
    'pylogctl context add --zk-credential') words='@file' ;;
    'pylogctl context add --zk-tls-config') words='@file' ;;
    'pylogctl context add --tls-ca') words='@file' ;;
    'pylogctl context add --tls-cert') words='@file' ;;
    'pylogctl context add --tls-key') words='@file' ;;
    'pylogctl context add --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl context add --password-file') words='@file' ;;
    'pylogctl context add --log-format') words='text json' ;;
    'pylogctl context add --color') words='auto always never' ;;
    'pylogctl context current --log-format') words='text json' ;;
    'pylogctl context current --color') words='auto always never' ;;
    'pylogctl context rename --log-format') words='text json' ;;
    'pylogctl context rename --color') words='auto always never' ;;
    'pylogctl context test --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl context test --log-format') words='text json' ;;
    'pylogctl context test --color') words='auto always never' ;;
    'pylogctl context remove --log-format') words='text json' ;;
    'pylogctl context remove --color') words='auto always never' ;;
    'pylogctl doctor --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl doctor --columns') words='status check detail hint' ;;
    'pylogctl doctor --sort') words='status check detail hint' ;;
    'pylogctl doctor --zk-credential') words='@file' ;;
    'pylogctl doctor --zk-tls-config') words='@file' ;;
    'pylogctl doctor --tls-ca') words='@file' ;;
    'pylogctl doctor --tls-cert') words='@file' ;;
    'pylogctl doctor --tls-key') words='@file' ;;
    'pylogctl doctor --user') words='segment.bytes segment.ms retention.ms retention.bytes flush.messages flush.ms flush.before.read partition.count min.insync.replicas unclean.leader.election.enable' ;;
    'pylogctl doctor --password-file') words='@file' ;;
    'pylogctl doctor --timeout') words='100ms 1s 10s 1m 5m 1h' ;;
    'pylogctl doctor -c' | 'pylogctl doctor --context') words='@context' ;;
    'pylogctl doctor --log-format') words='text json' ;;
    'pylogctl doctor --color') words='auto always never' ;;
    'pylogctl completion --log-format') words='text json' ;;
    'pylogctl completion --color') words='auto always never' ;;
    'pylogctl man --log-format') words='text json' ;;
    'pylogctl man --color') words='auto always never' ;;
    'pylogctl help --log-format') words='text json' ;;
    'pylogctl help --color') words='auto always never' ;;
    'pylogctl version --output') words='table json jsonl csv tsv plain markdown name' ;;
    'pylogctl version --columns') words='component version' ;;
    'pylogctl version --sort') words='component version' ;;
    'pylogctl version --log-format') words='text json' ;;
    'pylogctl version --color') words='auto always never' ;;
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
    'pylogctl config set'*' -b '* | 'pylogctl config set'*' --broker '*) words='num.partitions= topic.partition.count.map= max.message.size= log.file.size= topic.log.file.size= log.roll.hours= log.roll.minutes= log.roll.ms= topic.log.roll.hours= log.retention.hours= log.retention.minutes= log.retention.ms= topic.log.retention.hours= log.retention.size= topic.log.retention.size= log.cleanup.interval.mins= log.retention.check.interval.ms= log.cleanup.times= log.flush.interval= topic.log.flush.interval= log.default.flush.interval.ms= topic.flush.intervals.ms= log.flush.before.read= log.checkpoint.interval.ms= max.fetch.wait.ms= max.fetch.positions= max.connections= max.connections.per.ip= quota.producer.default= quota.consumer.default= quota.request.default= quota.creation.default= max.partitions= max.connection.creation.rate= connections.max.idle.ms=' ;;
    'pylogctl config unset'*' -b '* | 'pylogctl config unset'*' --broker '*) words='num.partitions topic.partition.count.map max.message.size log.file.size topic.log.file.size log.roll.hours log.roll.minutes log.roll.ms topic.log.roll.hours log.retention.hours log.retention.minutes log.retention.ms topic.log.retention.hours log.retention.size topic.log.retention.size log.cleanup.interval.mins log.retention.check.interval.ms log.cleanup.times log.flush.interval topic.log.flush.interval log.default.flush.interval.ms topic.flush.intervals.ms log.flush.before.read log.checkpoint.interval.ms max.fetch.wait.ms max.fetch.positions max.connections max.connections.per.ip quota.producer.default quota.consumer.default quota.request.default quota.creation.default max.partitions max.connection.creation.rate connections.max.idle.ms' ;;
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

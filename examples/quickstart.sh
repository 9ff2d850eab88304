#!/usr/bin/env bash
# From nothing to a checked round trip: a broker, a file in, the file out, every byte verified. If a
# ZooKeeper can be started here (pylogctl[spark] brings what it needs), the reader is a group in it.
#
#     examples/quickstart.sh [FILE]
#
# Uses the pylogctl on PATH. All it starts listens on loopback, works in a temporary directory and
# is stopped at the end.
set -euo pipefail

input=${1:-"$(dirname "$0")/../LICENSE"}
[ -r "$input" ] || { echo "cannot read $input" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/pylogctl-quickstart.XXXXXX")
broker_pid=

stop_all() {
    if [ -n "$broker_pid" ] && kill -0 "$broker_pid" 2>/dev/null; then
        kill -TERM "$broker_pid"
        wait "$broker_pid" || true
    fi
    rm -rf "$work"
}
trap stop_all EXIT

say() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }
run() { printf '  $ %s\n' "$*"; "$@"; }

checks=$(pylogctl doctor --output csv --columns status,check 2>/dev/null || true)  # no broker yet: 1
if grep -qx 'ok,java' <<<"$checks"; then
    where=(--zookeeper-port 0)
    reader=(--group g)
else
    where=(--no-zookeeper)
    reader=(demo)
fi

say "1. Start a broker"
mkfifo "$work/ready"
printf '  $ pylogctl broker start --port 0 --data %s %s\n' "$work/data" "${where[*]}"
pylogctl broker start --port 0 --data "$work/data" "${where[@]}" >"$work/ready" 2>"$work/broker.log" &
broker_pid=$!
if ! read -r ready <"$work/ready"; then
    cat "$work/broker.log" >&2
    wait "$broker_pid"
fi
printf '  %s\n' "$ready"
if [ "${reader[0]}" = --group ]; then
    PYLOGCTL_ZOOKEEPER=$(sed -n 's/.* zookeeper=\([^ ]*\) .*/\1/p' <<<"$ready")
    export PYLOGCTL_ZOOKEEPER
else
    PYLOGCTL_BROKER=$(sed -n 's/.* host=\([^ ]*\) port=\([^ ]*\) .*/\1:\2/p' <<<"$ready")
    export PYLOGCTL_BROKER
fi

say "2. Pipe a file into a topic"
printf '  $ cat %s | pylogctl produce demo\n' "$input"
cat "$input" | pylogctl produce demo

say "3. Read it back and compare"
printf '  $ pylogctl consume %s --from-beginning --exit-at-end | cmp - %s\n' "${reader[*]}" "$input"
pylogctl consume "${reader[@]}" --from-beginning --exit-at-end >"$work/out"
cmp "$work/out" "$input"
echo "  $(wc -l <"$work/out") lines, identical"

say "4. Look around"
run pylogctl topic describe demo
if [ "${reader[0]}" = --group ]; then
    run pylogctl group describe g
    run pylogctl zk tree /brokers
fi

say "5. Verify what is on disk"
run pylogctl log verify "$work"/data/demo_0/*.pylog

say "6. Shut the broker down"
run pylogctl broker stop 0 --yes
wait "$broker_pid"
broker_pid=

cat <<'TXT'

All of it worked. To go on with a broker that stays:

    . .venv/bin/activate
    pylogctl broker start                        # in one terminal
    journalctl -f | pylogctl produce syslog      # in another
    pylogctl tail syslog                         # in a third
    pylogctl --help
TXT

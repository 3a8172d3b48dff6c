#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ssh.sh RMARUN: what rmarun --hosts promises. Runs on the first of two hosts with an sshd each:
#   hosts --once --start sshd -- sh ssh.sh build/release/tools/rmarun
#
# Goal: ranks on other hosts start, end and fail as ranks of one machine do; the job's key is on no command line;
# nothing is left behind, also after kill -9. Break: pass the order on ssh's command line (key); let the remote side not
# look at its standard output (kill -9: the sleeping ranks stay).
set -u
rmarun=$1
SSH="ssh -F /run/hosts/ssh_config"
failed=0

# expect WHAT WANTED FOUND
expect() {
  [ "$2" = "$3" ] && return
  echo "ssh.sh: $1: '$3' instead of '$2'"
  failed=1
}

run() { "$rmarun" --ssh "$SSH" --timeout 60 "$@" 2>/run/hosts/said; }

expect "ranks in blocks" "0 host0 2
1 host0 2
2 host1 1" "$(run -n 3 --hosts host0,host1 sh -c 'echo $RMA_RANK $(hostname) $RMA_LOCAL_RANKS' | sort)"
printf 'host1 slots=1 # first\n\nhost0:2\n' > /run/hosts/list
expect "a file of hosts" "0 host1
1 host0" "$(run -n 2 --hostfile /run/hosts/list sh -c 'echo $RMA_RANK $(hostname)' | sort)"
expect "an exported variable" "it is" "$(SHOWN='it is' run -n 1 --hosts host1 -x SHOWN sh -c 'echo "$SHOWN"')"
expect "the directory" "$PWD" "$(run -n 1 --hosts host1 pwd)"

run -n 2 --hosts host0,host1 sh -c 'exit $((RMA_RANK * 3))'
expect "the status of a rank" 3 $?
run -n 2 --hosts host0,host1 sh -c '[ $RMA_RANK = 0 ] || kill -9 $$; sleep 100'
expect "the status of a rank that was killed" 137 $?
run -n 2 --hosts host0,host1 /no/such/program
expect "the status of a missing program" 127 $?
run -n 2 --hosts host0,host9 true
expect "the status of a missing host" 255 $?
grep -q "rank 1 .*host9' failed; it must work without a password" /run/hosts/said
expect "its message" 0 $?

expect "command lines with the key" "" "$(run -n 2 --hosts host0,host1 sh -c \
  'for each in /proc/[0-9]*/cmdline; do tr "\0" "\n" < $each 2>/dev/null | grep "$RMA_KEY"; done')"

# kill -9: the ranks that wait end within 10 s.
"$rmarun" --ssh "$SSH" -n 2 --hosts host0,host1 sh -c 'echo up; exec sleep 4242' > /run/hosts/out &
job=$!
tries=0
until [ "$(grep -c up /run/hosts/out)" = 2 ] || [ $tries = 1000 ]; do tries=$((tries + 1)); sleep 0.01; done
kill -9 $job
tries=0
while { pgrep -f "[s]leep 4242" || $SSH host1 pgrep -f "[s]leep.4242"; } > /dev/null && [ $tries -lt 100 ]; do
  tries=$((tries + 1))
  sleep 0.1
done
expect "seconds until the ranks of a killed rmarun end, at most 10" yes "$([ $tries -lt 100 ] && echo yes)"
[ $failed = 0 ] && echo "ssh.sh: all as promised"
exit $failed

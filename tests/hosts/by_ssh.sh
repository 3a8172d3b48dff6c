#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# by_ssh.sh RMARUN PROGRAM ARGUMENT...: on the first of two hosts. Starts an sshd on each, and by rmarun --hosts the
# program; then looks that the job's key is in no command line, and that a job whose time is over leaves nothing behind.
set -eu
rmarun=$1
shift
here=$(dirname "$(realpath "$0")")
[ "$(id -u)" = 0 ] && [ -x /usr/sbin/sshd ] || {
  echo "by_ssh: needs root and sshd (openssh-server)"
  exit 77
}
own=$(mktemp -d)
trap 'for each in host0 host1; do "$here/enter" $each "kill \$(cat $own/$each.pid)" || true; done; rm -rf "$own"' EXIT
ssh-keygen -q -t ed25519 -N '' -f "$own/key"
for each in host0 host1; do
  cat > "$own/$each.conf" << END
Port 2222
HostKey $own/key
AuthorizedKeysFile $own/key.pub
PidFile $own/$each.pid
StrictModes no
UsePAM no
PermitRootLogin yes
END
  "$here/enter" $each "mkdir -p /run/sshd; /usr/sbin/sshd -f $own/$each.conf"
done
cat > "$own/ssh" << END
Host *
  Port 2222
  IdentityFile $own/key
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  BatchMode yes
END
by_ssh() { "$rmarun" --ssh "ssh -F $own/ssh" "$@"; }

by_ssh -n 4 --hosts host0,host1 --timeout 60 "$@"

printf 'host0 # first\nhost1 slots=1\n' > "$own/hosts"
cat > "$own/look" << 'END'
for each in /proc/[0-9]*/cmdline; do
  case "$(tr '\0' ' ' < $each 2> /dev/null)" in *"$RMA_KEY"*) echo "the key is in $each" ;; esac
done
[ ${#RMA_KEY} -ge 16 ] && echo "rank $RMA_RANK of $RMA_SIZE on $(hostname) has a key"
END
by_ssh --hostfile "$own/hosts" sh "$own/look" > "$own/found"
sort "$own/found"
! grep -q "key is in" "$own/found"

status=0
by_ssh -n 2 --hosts host0,host1 --timeout 2 sleep 4321 || status=$?
[ $status = 124 ]
for each in 1 2 3 4 5 6 7 8 9 10; do
  left=$("$here/enter" host1 "pgrep -f 'sleep 432[1]' | wc -l")
  [ "$left" = 0 ] && break
  sleep 1
done
echo "by_ssh: status $status after the time-out, $left programs left"
[ "$left" = 0 ]

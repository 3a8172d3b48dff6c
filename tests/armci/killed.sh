#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# killed.sh MPIRUN PROGRAM [STARTER]: a rank of `mpirun -n 3 STARTER PROGRAM killed` that is killed ends the job with an
# error, 4 s later at most than a job that starts and ends takes anyway, and leaves nothing behind: no shared memory, no
# file, no process.
mpirun=$1 program=$2 starter=${3-}
left() { { ls /dev/shm; ls -d /tmp/rma* 2>/dev/null; } | grep -i rma | sort; }
before=$(left)
begun=$(date +%s%N)
timeout 40 "$mpirun" -n 3 $starter "$program" part || exit 1
usual=$((($(date +%s%N) - begun) / 1000000))
begun=$(date +%s%N)
timeout 40 "$mpirun" -n 3 $starter "$program" killed
status=$?
took=$((($(date +%s%N) - begun) / 1000000))
[ "$status" -ne 0 ] && [ "$status" -ne 124 ] || { echo "exit status $status"; exit 1; }
[ "$took" -le $((usual + 4000)) ] || { echo "ended after $took ms; without a death it takes $usual ms"; exit 1; }
[ "$before" = "$(left)" ] || { echo "left behind: $(left)"; exit 1; }
for exe in /proc/[0-9]*/exe; do
  [ "$(readlink "$exe" 2>/dev/null)" != "$program" ] || { echo "still there: $exe"; exit 1; }
done
echo "killed: the job ended after $took ms ($usual ms without a death) with status $status, and left nothing behind"

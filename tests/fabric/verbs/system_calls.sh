#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The system calls of the data path, counted by strace in rank 0: per operation one write, which is how a device in
# software is told that there is work, and nothing else; waits for events are counted but not limited, nor is arming for
# them (by ioctl), two for each wait.
# usage: system_calls.sh RMARUN LATENCY (perf/latency)
set -euo pipefail
launcher=$1
program=$2
source "$(dirname "$0")/../../softroce/counted_calls.sh"

# The start and the end of a program differ by some hundred writes from run to run.
few=200
many=5200
failed=0
for metric in put_flush get fetch_and_op; do
  count "$program" --metric "$metric" --iterations $few --runs 2 >"$work/few"
  count "$program" --metric "$metric" --iterations $many --runs 2 >"$work/many"
  # Each run, and the one before them, is so many operations longer.
  awk -v metric=$metric -v more=$((3 * (many - few))) '
    NR == FNR { before[$1] = $2; next }
    { extra = $2 - before[$1]
      if ($1 == "write") doorbells += extra
      else if ($1 ~ /^(poll|ppoll|epoll_wait|epoll_pwait|read|futex|recvfrom|recvmsg)$/)
        waits += extra > 0 ? extra : 0
      else if ($1 == "ioctl") arms += extra > 0 ? extra : 0
      else if (extra > 0) { others += extra; names = names " " $1 ":" extra } }
    END {
      if (arms > 2 * waits) { others += arms - 2 * waits; names = names " ioctl:" arms }
      printf "%s: %.3f writes, %.3f waits, %.3f others an operation%s\n", metric, doorbells / more, waits / more, \
        others / more, names
      exit !(doorbells / more > 0.5 && doorbells / more < 1.1 && others / more < 0.02) }' \
    "$work/few" "$work/many" || failed=1
done
exit $failed

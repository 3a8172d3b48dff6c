#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cost of a short message through a ring: by the adapter's counters, and in system calls by strace in rank 0. A
# device in software is told of each write by a system call, its emulated doorbell; there is no other for a message, but
# what a rank looks at from time to time: fewer the faster the host is.
# usage: ring_counts.sh RMARUN RING_COUNTS_PROGRAM
set -euo pipefail
launcher=$1
program=$2
"$launcher" -n 2 "$program" 2000
source "$(dirname "$0")/../softroce/counted_calls.sh"
few=200
many=2200
count "$program" $few >"$work/few"
count "$program" $many >"$work/many"
awk -v more=$((many - few)) '
  NR == FNR { before[$1] = $2; next }
  { extra = $2 - before[$1]
    if ($1 == "write") doorbells += extra
    else if (extra > 0) { others += extra; names = names " " $1 ":" extra } }
  END {
    printf "%.3f writes and %.3f other calls a message%s\n", doorbells / more, others / more, names
    exit !(doorbells / more > 0.95 && doorbells / more < 1.05 && others / more < 0.5) }' "$work/few" "$work/many"

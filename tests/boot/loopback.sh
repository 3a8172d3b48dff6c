#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# loopback.sh RMARUN PROGRAM down | ipv6
#
# Goal: jobs of one machine, without its network. `down`: there is none at all, not even the loopback interface: ranks
# of one node run, several nodes end at once with a line that says why and what to do. `ipv6`: the
# loopback interface has ::1 alone: several nodes run.
# Method: a network namespace of the job's own; who is not root is it inside.
# Break: in loopback_address (src/boot/interfaces.cpp) return "127.0.0.1" without looking; in raise_plan
# (src/api/window_agree.cpp) call the end of the job a refusal.
rmarun=$1
program=$2
network=$3

if [ -z "$LOOPBACK_TEST_INSIDE" ]; then
  as_root=
  [ "$(id -u)" -eq 0 ] || as_root="--user --map-root-user"
  if ! why=$(unshare $as_root --net true 2>&1); then
    echo "skipped: no network namespaces here: $why"
    exit 77
  fi
  LOOPBACK_TEST_INSIDE=1 exec unshare $as_root --net sh "$0" "$@"
fi

fail() {
  echo "FAILED: $1; the job ended with $status and printed:"
  echo "$printed"
  exit 1
}

run() { # OPTION...: a job with these options of rmarun
  printed=$("$rmarun" -n 2 --timeout 30 "$@" "$program" 2>&1)
  status=$?
}

if [ "$network" = ipv6 ]; then
  if ! why=$(ip link set lo up 2>&1 && ip -4 address flush dev lo 2>&1 && ip -6 route get ::1 2>&1); then
    echo "skipped: no loopback interface with ::1 alone here: $why"
    exit 77
  fi
fi

run
[ $status -eq 0 ] || fail "ranks of one node need no network"
run --nodes 2
if [ "$network" = ipv6 ]; then
  [ $status -eq 0 ] || fail "::1 is enough for two nodes"
else
  [ $status -eq 9 ] || fail "two nodes without a network end as the program says"
  echo "$printed" | grep -q "neither 127.0.0.1 nor ::1: its loopback interface is down (ip link set lo up)" ||
    fail "the line says what is missing"
  export RMA_FABRIC=ucx
  run --nodes 2
  [ $status -eq 9 ] || fail "nor does UCX have a network"
  echo "$printed" | grep -q ": refused" && fail "a call that ends with the job is not one that is refused"
fi
exit 0

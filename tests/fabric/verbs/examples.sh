#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples.sh PROGRAMS EXPECTED LAUNCHER...: the examples of folder PROGRAMS with 4 ranks, in whatever environment this
# is. The numbered ones must print what is in folder EXPECTED; the others check themselves. On several hosts LAUNCHER is
# `ranks`, and only these are run, since each host prints what its own ranks do; so it is with NUMBERED=no.
set -u
programs=$1
expected=$2
shift 2
failed=''

check() {  # check NAME STATUS
  if [ "$2" = 0 ]; then
    echo "ok $1"
  else
    echo "FAILED $1 (status $2)"
    failed="$failed, $1"
  fi
}

numbered() {
  for text in "$expected"/0*.txt; do
    name=$(basename "$text" .txt)
    printed=$("$@" "$programs/$name")
    status=$?
    if [ $status = 0 ] && [ "$printed" != "$(cat "$text")" ]; then
      echo "$printed"
      status=different
    fi
    check "$name" $status
  done
}

if [ "${SOFTROCE_HOSTS-1}" = 1 ] && [ "${NUMBERED-yes}" = yes ]; then numbered "$@"; fi
for variant in acc gmp direct; do  # few updates of many words: those of gmp that meet are lost
  "$@" "$programs/random_access" --variant $variant --log2-table 13 --updates 1000 --verify local
  check "random_access $variant" $?
done
"$@" "$programs/splash_lu" -n 96 -b 16
check splash_lu $?
"$@" "$programs/splash_lu" -n 101 -b 40 --lock shared
check 'splash_lu shared' $?
if [ "$failed" ]; then
  echo "FAILED: ${failed#, }"  # once more, at the end
  exit 1
fi

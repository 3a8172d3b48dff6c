#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# valgrind.sh RMARUN PROGRAM
#
# Goal: rmarun --valgrind runs each rank under valgrind, and an error of one makes the job fail.
# Method: PROGRAM says whether valgrind has started it, and with `wrong` has an error that only valgrind sees.
# Break: leave --error-exitcode out of the options that rmarun gives valgrind; or asked_.debugger out of command_of.
if ! command -v valgrind > /dev/null; then
  echo "skipped: valgrind is not installed"
  exit 77
fi
fail() {
  echo "FAILED: $1"
  printf '%s\n' "$said"
  exit 1
}
said=$("$1" -n 2 --timeout 100 --valgrind "$2" right 2>&1) || fail "a program without errors failed"
[ "$said" = "watched
watched" ] || fail "both ranks should run under valgrind, which should be silent"
said=$("$1" -n 2 --timeout 100 --valgrind "$2" wrong 2>&1) && fail "valgrind's error did not make the job fail"
case $said in
  *"depends on uninitialised value"*) ;;
  *) fail "valgrind's report is missing" ;;
esac
said=$("$1" -n 2 --timeout 100 "$2" wrong 2>&1) || fail "without --valgrind the program must succeed"
[ "$said" = "alone
alone" ] || fail "valgrind was not asked for"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# valgrind.sh RMARUN NODES CONFORMANCE
#
# Goal: valgrind has nothing to report: no byte that leaves the process is uninitialized, nothing is leaked, no call of
# the kernel is one that it does not know.
# Method: two ranks run cases of most kinds of calls; without a suppression file. Warnings of valgrind count, too.
# Break: give a struct that is sent (src/fabric/shm/fd_exchange.hpp) padding; ask SIOCOUTQNSD of a socket.
if ! command -v valgrind > /dev/null; then
  echo "skipped: valgrind is not installed"
  exit 77
fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$1" -n 2 --nodes "$2" --timeout 250 valgrind --quiet --error-exitcode=9 --leak-check=full \
  --errors-for-leak-kinds=definite "$3" --effort 1 --one-kind \
  --case '^(pscw|message|signal\.|atomic\.tickets|layout\.every|team\.s|fence\.fence)' > "$said" 2>&1
status=$?
cat "$said"
if grep -q "^==[0-9]*== " "$said"; then
  echo "FAILED: valgrind is not silent"
  exit 1
fi
exit $status

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lost_host.sh RANKS PROGRAM, on each of two hosts: all is well if the second host's ranks were killed, as they are to
# be, and the first one's found nothing wrong.
"$1" -n 4 "$2"
status=$?
if [ "$SOFTROCE_HOST" = 0 ]; then exit $status; fi
echo "host 1: status $status"
[ $status = 137 ]

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cut_off.sh RANKS PROGRAM, on each of two hosts: the first one's network goes down when its ranks say that it may,
# which takes an emulated host a moment. All is well if everybody finds out in time and goes on with who is left.
set -o pipefail

cut() {
  local device
  device=$(ip -o addr show to "$SOFTROCE_ADDRESS0" | awk '{ print $2; exit }')
  ip link set dev "$device" down
}

"$1" -n 4 "$2" for-good 5 | while read -r line; do
  echo "$line"
  if [[ $line = 'the cable may go' ]]; then cut; fi
done

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# To be sourced, with the launcher's name in $launcher: `count` tells what rank 0 of two asks of the system, by strace.
# Files in $work are removed at the end. Skips the test where strace is not installed.
command -v strace >/dev/null || { echo 'skipped: strace is not installed'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/rank" <<'END'
#!/bin/sh
[ "$RMA_RANK" = 0 ] || exec "$@"
exec strace -f -c -U calls,name -o "$COUNTS" "$@"
END
chmod +x "$work/rank"

count() {  # count PROGRAM ARGUMENTS...: "name calls" lines
  COUNTS=$work/counts "$launcher" -n 2 "$work/rank" "$@" >/dev/null
  awk '$1 ~ /^[0-9]+$/ && $2 != "total" {print $2, $1}' "$work/counts"
}

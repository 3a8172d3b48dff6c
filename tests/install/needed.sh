#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needed.sh PROGRAM...: programs with the static library need these libraries to run, and no others (docs/decisions/
# 0028-libibverbs.md). Exits with 77 without readelf.
set -eu
command -v readelf >/dev/null || { echo "skipped: readelf is not installed"; exit 77; }
expected='^(lib(c|m|gcc_s|stdc[+][+]|crypto|fmt|ibverbs)[.]so[.0-9]*|ld-linux.*)$'
for program in "$@"; do
  needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  echo "$program:" $needed
  [ -n "$needed" ]
  ! echo "$needed" | grep -vE "$expected" || { echo "needed: not expected"; exit 1; }
done

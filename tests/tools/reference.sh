#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reference.sh DOXYGEN DOXYFILE WARNINGS: makes the reference of the public headers; Doxygen must warn of nothing.
if [ ! -x "$1" ]; then
  echo 'skipped: doxygen is not installed'
  exit 77
fi
"$1" "$2" >/dev/null || exit 1
cat "$3"
[ ! -s "$3" ]

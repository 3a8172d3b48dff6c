#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# memlock.sh COMMAND...: of 4 ranks, each of which has more memory in a window than it may lock. It must work, and each
# rank must say so once.
said=$(mktemp)
"$@" 2>"$said" || exit
cat "$said" >&2
[ "$(grep -c 'the RDMA device cannot register' "$said")" = 4 ] && [ "$(sort -u "$said" | wc -l)" = 4 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nas.sh PROGRAMS "KERNEL[:FORM]..." LAUNCHER...: those NAS kernels of folder PROGRAMS, class S, one after the other;
# each checks its result.
programs=$1
kernels=$2
shift 2
for kernel in $kernels; do
  case $kernel in
    *:*) "$@" "$programs/nas_${kernel%:*}" --form "${kernel#*:}" ;;
    *) "$@" "$programs/nas_$kernel" ;;
  esac || exit 1
done

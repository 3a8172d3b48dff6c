#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# armci.sh LIBDIR RMARUN SOURCE PROGRAM: builds a program of ARMCI with the flags that pkg-config gives, shared and
# static, and by the names of ARMCI-MPI's archives; and runs it.
set -eu
libdir=$1 rmarun=$2 source=$3 program=$4
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs rma_armci)
# shellcheck disable=SC2086 # the flags are several words
cc -O1 "$source" -o "$program" $flags -Wl,-rpath,"$libdir"
"$rmarun" -n 2 "$program"
for mpi in openmpi mpich; do
  [ -e "$libdir/rma/armci-mpi/libarmci-$mpi.a" ] || continue
  command -v mpicc.$mpi >/dev/null || continue
  # shellcheck disable=SC2046
  mpicc.$mpi -O1 $(pkg-config --cflags rma_armci_$mpi) "$source" -o "$program-$mpi" -L"$libdir/rma/armci-mpi" \
    -larmci-$mpi $(pkg-config --libs rma) -lstdc++ -lm
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.$mpi -n 2 "$program-$mpi"
done
echo "armci: installed programs run"

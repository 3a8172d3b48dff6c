#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pkg_config.sh LIBDIR CXX SOURCE PROGRAM: builds and runs a consumer with the flags that pkg-config gives, and builds
# its module for rma-sim, sim/PROGRAM.so beside it.
set -eu
libdir=$1 cxx=$2 source=$3 program=$4
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs rma)
# shellcheck disable=SC2086 # the flags are several words
"$cxx" -std=c++20 -O1 "$source" -o "$program" $flags -Wl,-rpath,"$libdir"
"$program"
sim=$(dirname "$program")/sim
mkdir -p "$sim"
# shellcheck disable=SC2086
"$cxx" -std=c++20 -O1 -fPIC -shared "$source" -o "$sim/$(basename "$program").so" $flags

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# preset.sh SOURCE FOLDER SHARED LIBDIR: builds SOURCE by its preset `install`, as a shared library or not, installs it
# into FOLDER/prefix, starts the tools from there, and builds and runs a consumer by find_package.
set -eu
source=$1 folder=$2 shared=$3 libdir=$4
rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
(cd "$source" && cmake --preset install -B "$folder/build" -DBUILD_SHARED_LIBS="$shared" -DRMA_BUILD_QUICKLY=ON)
cmake --build "$folder/build"
cmake --install "$folder/build" --prefix "$folder/prefix" >/dev/null
library=$folder/prefix/$libdir/librma.a
[ "$shared" = OFF ] || library=$folder/prefix/$libdir/librma.so
[ -e "$library" ]
for tool in rmarun rma-info rma-sim rma-tune rma-trace; do
  "$folder/prefix/bin/$tool" --help >/dev/null
done
"$folder/prefix/bin/rma-info" >/dev/null
cmake -S "$source/tests/install/consumer" -B "$folder/consumer" -DCMAKE_PREFIX_PATH="$folder/prefix"
cmake --build "$folder/consumer"
"$folder/prefix/bin/rmarun" -n 2 --timeout 50 "$folder/consumer/rma_consumer"
"$folder/prefix/bin/rma-sim" -n 2 "$folder/consumer/rma_consumer"

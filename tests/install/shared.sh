#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shared.sh CMAKE GENERATOR CXX SOURCE FOLDER: builds a shared library and the tools in FOLDER, without optimisation,
# installs them into a prefix, moves that elsewhere, and starts each of the tools and a consumer from there.
set -eu
cmake=$1 generator=$2 cxx=$3 source=$4 folder=$5
unset LD_LIBRARY_PATH
"$cmake" -S "$source" -B "$folder/build" -G "$generator" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DBUILD_SHARED_LIBS=ON -DRMA_BUILD_QUICKLY=ON -DRMA_BUILD_TESTS=OFF \
  -DRMA_BUILD_EXAMPLES=OFF -DRMA_BUILD_PERF=OFF >"$folder.log"
"$cmake" --build "$folder/build" >>"$folder.log" || { tail -n 50 "$folder.log"; exit 1; }
rm -rf "$folder/first" "$folder/moved"
"$cmake" --install "$folder/build" --prefix "$folder/first" >>"$folder.log"
mv "$folder/first" "$folder/moved"
mv "$folder/build" "$folder/hidden"  # nothing is found there
trap 'mv "$folder/hidden" "$folder/build"' EXIT
cd "$folder/moved"
./bin/rma-info >/dev/null
./bin/rma-sim --version
libdir=$(dirname "$(find . -name librma.so)")
"$cxx" -std=c++20 -O0 -Iinclude "$source/tests/install/consumer/main.cpp" -o consumer -L"$libdir" -lrma \
  -Wl,-rpath,"\$ORIGIN/$libdir"
./bin/rmarun -n 2 --timeout 50 ./consumer
echo "shared: the tools start"

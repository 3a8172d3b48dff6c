#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# uninstall.sh CMAKE BUILD FOLDER: installs below FOLDER and takes it away by the target `uninstall`.
set -eu
cmake=$1 build=$2 folder=$3
rm -rf "$folder"
cp "$build/install_manifest.txt" "$build/install_manifest.before"
trap 'mv "$build/install_manifest.before" "$build/install_manifest.txt"' EXIT
"$cmake" --install "$build" --prefix "$folder" >/dev/null
[ -e "$folder/include/rma/rma.hpp" ]
"$cmake" --build "$build" --target uninstall >/dev/null
left=$(find "$folder" ! -type d)
[ -z "$left" ] || { echo "uninstall: left: $left"; exit 1; }

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packages.sh SOURCE FOLDER: builds the Debian packages from a copy of SOURCE without optimization, lets lintian look at
# them, installs them below FOLDER/root, starts each tool from there, and builds and runs a consumer by pkg-config, by
# find_package and as a module of rma-sim. Exits with 77 where a tool for packages is missing.
set -eu
source=$1 folder=$2
for tool in dpkg-buildpackage dh lintian help2man doxygen fakeroot; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
unset LD_LIBRARY_PATH CMAKE_PREFIX_PATH CXXFLAGS CFLAGS
rm -rf "$folder"
mkdir -p "$folder/rma" "$folder/root/var/lib/dpkg"
folder=$(cd "$folder" && pwd)
tar -C "$source" --exclude=./build --exclude=./.git --exclude=__pycache__ -cf - . | tar -C "$folder/rma" -xf -
log=$folder/log
fail() { echo "packages: $1; the end of $log:"; tail -n 40 "$log" | cut -c 1-300; exit 1; }
(cd "$folder/rma" && DEB_BUILD_OPTIONS="noopt nocheck noautodbgsym parallel=$(nproc)" DEB_BUILD_PROFILES=pkg.rma.quick \
  dpkg-buildpackage -b -us -uc) >"$log" 2>&1 || fail "dpkg-buildpackage failed"
lintian --allow-root --fail-on error,warning "$folder"/*.deb >>"$log" 2>&1 || fail "lintian complains"
root=$folder/root
touch "$root/var/lib/dpkg/status"
fakeroot dpkg --root="$root" --force-all --force-script-chrootless --log=/dev/null -i "$folder"/*.deb >>"$log" 2>&1 ||
  fail "the packages do not install"
libdir=$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
LD_LIBRARY_PATH=$libdir PATH=$root/usr/bin:$PATH
export LD_LIBRARY_PATH PATH
for tool in rma-info rma-sim rmarun rma-trace rma-tune; do
  [ "$(command -v $tool)" = "$root/usr/bin/$tool" ] || fail "there is no $tool"
  "$tool" --version >/dev/null || fail "$tool does not start"
  [ -s "$root/usr/share/man/man1/$tool.1.gz" ] || fail "there is no manual page of $tool"
done
rma-info >/dev/null
gzip -dc "$root/usr/share/man/man7/rma-settings.7.gz" | grep -q RMA_FENCE || fail "there is no page of the settings"
[ -s "$root/usr/share/doc/rma-doc/html/classrma_1_1Window.html" ] || fail "the reference does not have Window"

mkdir -p "$folder/consumer/sim"
flags="-I$root/usr/include -L$libdir $(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --libs-only-l rma)"
# shellcheck disable=SC2086 # the flags are several words
c++ -std=c++20 -O0 "$source/tests/install/consumer/main.cpp" -o "$folder/consumer/app" $flags
# shellcheck disable=SC2086
c++ -std=c++20 -O0 -fPIC -shared "$source/tests/install/consumer/main.cpp" -o "$folder/consumer/sim/app.so" $flags
rmarun -n 2 --timeout 50 "$folder/consumer/app"
rma-sim -n 2 "$folder/consumer/app"
cmake -S "$source/tests/install/consumer" -B "$folder/consumer/build" -DCMAKE_PREFIX_PATH="$root/usr" \
  -DCMAKE_BUILD_TYPE=Debug >>"$log" 2>&1 || fail "find_package does not find the library"
cmake --build "$folder/consumer/build" >>"$log" 2>&1 || fail "the consumer does not build"
echo "packages: $(cd "$folder" && ls ./*.deb | wc -l) packages, installed and tried"

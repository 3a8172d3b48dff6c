# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What scripts/demo and scripts/test share: packages, steps with progress, one preset's build.

rma_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log_dir=$rma_root/build/log
build_packages=(g++ cmake ninja-build pkg-config python3 libboost-context-dev libboost-dev libcli11-dev libfmt-dev
  libfftw3-dev libhwloc-dev libibverbs-dev libpmix-dev libssl-dev libucx-dev libzstd-dev catch2 nlohmann-json3-dev
  valgrind)
steps_done=0
steps_total=0
failures=()

prepare() {  # prepare STEPS: call once, from the start
  steps_total=$1
  cd "$rma_root"
  mkdir -p "$log_dir"
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
    # What one clone has compiled serves the next.
    export CCACHE_BASEDIR=${CCACHE_BASEDIR-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR-1}
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros}
  fi
}

elapsed() {  # elapsed SECONDS: "7 s" or "2 min 05 s"
  if (($1 < 60)); then
    printf '%d s' "$1"
  else
    printf '%d min %02d s' $(($1 / 60)) $(($1 % 60))
  fi
}

# step TITLE LOG COMMAND...: one numbered line, a line every half minute that shows the log's last one, the outcome.
# The command's output goes to build/log/LOG.log; of a failure the last lines are shown. Returns the command's status.
step() {
  local title=$1 log=$log_dir/$2.log start=$SECONDS status=0 watcher
  shift 2
  steps_done=$((steps_done + 1))
  printf '[%d/%d] %s\n' "$steps_done" "$steps_total" "$title"
  : >"$log"
  watch_log "$log" &
  watcher=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$watcher" 2>/dev/null && wait "$watcher" 2>/dev/null || true
  if ((status == 0)); then
    printf '      done in %s\n' "$(elapsed $((SECONDS - start)))"
  else
    printf '      FAILED (exit status %d) after %s; the end of %s:\n' \
      "$status" "$(elapsed $((SECONDS - start)))" "${log#"$rma_root"/}"
    tail -n 40 "$log" | sed 's/^/      | /'
    failures+=("$title")
  fi
  return "$status"
}

watch_log() {
  local start=$SECONDS
  while sleep 30 >/dev/null 2>&1; do
    printf '      %s: %.100s\n' "$(elapsed $((SECONDS - start)))" "$(tail -n 1 "$1" | tr -d '\r')"
  done
}

# require_packages NAME...: installs what is missing. Without the right to: says what to run and exits with 2.
require_packages() {
  local missing=() package as_root=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    printf 'not a Debian system: taking for granted what corresponds to: %s\n' "$*"
    return
  fi
  for package in "$@"; do
    if ! dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then
    return
  fi
  if (($(id -u) != 0)); then
    as_root=(sudo -n)
    if ! sudo -n true 2>/dev/null; then
      printf 'packages are missing; run this and start again:\n  sudo apt-get install -y --no-install-recommends %s\n' \
        "${missing[*]}"
      exit 2
    fi
  fi
  steps_total=$((steps_total + 1))
  step "install ${missing[*]}" apt apt_install || exit 2
}

apt_install() {  # uses require_packages' as_root and missing; at run level 1 no services of packages are started
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -q -o DPkg::Lock::Timeout=120)
  "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
}

configure_and_build() {  # configure_and_build PRESET [-DVARIABLE=VALUE...] [NINJA TARGET...]
  local preset=$1 variables=() targets=()
  shift
  while [[ ${1-} == -D* ]]; do
    variables+=("$1")
    shift
  done
  if (($# > 0)); then
    targets=(--target "$@")
  fi
  cmake --preset "$preset" "${variables[@]}" && cmake --build --preset "$preset" -j "$(nproc)" "${targets[@]}"
}

start_over() {  # start_over PRESET...: empties build folders
  local preset
  for preset in "$@"; do
    rm -rf "${rma_root:?}/build/$preset"
  done
}

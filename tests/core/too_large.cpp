// SPDX-License-Identifier: Apache-2.0
/// \file
/// too_large MIB SMALL: windows of so many MiB on each rank are refused, by the limits of control groups; those of
/// SMALL MiB are not.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "rma/rma.hpp"

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// The error of a window of so many bytes; empty if it was made, and written to.
std::string objection(rma::Runtime& rt, std::size_t bytes) {
  try {
    auto win = rma::Window<std::byte>::allocate(rt.world(), bytes);
    std::fill(win.local().begin(), win.local().end(), std::byte{1});
    win.free();
  } catch (const rma::Error& e) {
    return e.code() == rma::status::out_of_memory ? e.what() : std::string("another error: ") + e.what();
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const auto bytes = std::strtoul(argv[1], nullptr, 10) * mebibyte;
  const auto small_bytes = std::strtoul(argv[2], nullptr, 10) * mebibyte;
  rma::Runtime rt;
  const std::string large = objection(rt, bytes);
  const std::string small = objection(rt, small_bytes);
  const bool good = large.find("control groups grant") != std::string::npos && small.empty();
  if (!good) fmt::print("too_large: rank {}: the large one: '{}', the small one: '{}'\n", rt.rank(), large, small);
  rt.world().barrier();
  if (rt.rank() == 0 && good) fmt::print("too_large: done\n");
  return good ? 0 : 1;
}

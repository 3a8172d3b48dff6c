// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/handle.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>

#include "rma/error.hpp"
#include "rma/runtime.hpp"

namespace rma::sim {
namespace {

/// The check rejects programs built with another version of the library, and text from another process.
std::uint64_t check_of(std::uint64_t job, std::uint64_t rank) {
  std::uint64_t x = job ^ (rank << 48) ^ (static_cast<std::uint64_t>(::getpid()) << 20) ^ sizeof(world);
  for (const char c : version()) x = (x ^ static_cast<unsigned char>(c)) * 1099511628211U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 31);
}

/// Removes a hexadecimal number and the character after it from the text.
bool take(std::string_view& text, std::uint64_t& number, char after) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (after == '\0') return text.empty();
  if (text.empty() || text.front() != after) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string make_handle(world& job, int rank) {
  const auto where = reinterpret_cast<std::uint64_t>(&job);
  const auto who = static_cast<std::uint64_t>(rank);
  return fmt::format("{}{:x}-{:x}-{:x}", handle_prefix, where, who, check_of(where, who));
}

handle parse_handle(std::string_view text) {
  std::string_view rest = text;
  std::uint64_t job = 0;
  std::uint64_t rank = 0;
  std::uint64_t check = 0;
  const bool ours = rest.starts_with(handle_prefix);
  if (ours) rest.remove_prefix(handle_prefix.size());
  if (!ours || !take(rest, job, '-') || !take(rest, rank, '-') || !take(rest, check, '\0') ||
      check != check_of(job, rank)) {
    throw Error(status::bad_boot,
                fmt::format("'{}' is no simulated job of this process and library version: start the program with "
                            "rma-sim or rma::sim::run",
                            text));
  }
  return {reinterpret_cast<world*>(job), static_cast<int>(rank)};
}

}  // namespace rma::sim

// SPDX-License-Identifier: Apache-2.0
#include "core/lock_choice.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/names.hpp"
#include "rma/error.hpp"

namespace rma::detail {
namespace {

/// Takes the part in front of the next colon away.
std::string_view take_part(std::string_view& text) noexcept {
  const auto cut = text.find(':');
  const std::string_view part = text.substr(0, cut);
  text = cut == std::string_view::npos ? std::string_view() : text.substr(cut + 1);
  return part;
}

bool take_protocol(std::string_view name, lock_protocol& protocol) noexcept {
  for (const lock_protocol each : {lock_protocol::automatic, lock_protocol::two_sided, lock_protocol::network,
                                   lock_protocol::cpu, lock_protocol::hybrid}) {
    if (name != name_of(each)) continue;
    protocol = each;
    return true;
  }
  return false;
}

bool take_scheme(std::string_view option, LockChoice& s) noexcept {
  for (const lock_scheme each : {lock_scheme::word, lock_scheme::agent, lock_scheme::fompi}) {
    if (option != name_of(each)) continue;
    s.scheme = each;
    return true;
  }
  return false;
}

/// `rest` begins with the number of a threshold.
bool take_hybrid_option(std::string_view option, std::string_view& rest, LockChoice& s) noexcept {
  if (option == "home=cpu" || option == "home=network") {
    s.home = option == "home=cpu" ? lock_home::cpu : lock_home::network;
    return true;
  }
  constexpr std::pair<std::string_view, lock_policy> policies[] = {{"naive", lock_policy::naive},
                                                                   {"adaptive", lock_policy::adaptive},
                                                                   {"pattern", lock_policy::pattern},
                                                                   {"priority", lock_policy::priority},
                                                                   {"native", lock_policy::native}};
  for (const auto& [name, policy] : policies) {
    if (option != name) continue;
    s.policy = policy;
    return true;
  }
  if (option != "threshold") return false;
  s.policy = lock_policy::threshold;
  const std::string_view number = take_part(rest);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), s.threshold);
  return error == std::errc{} && end == number.data() + number.size() && s.threshold != 0;
}

bool take_option(std::string_view option, std::string_view& rest, LockChoice& s) noexcept {
  switch (s.protocol) {
    case lock_protocol::automatic:
    case lock_protocol::two_sided: return std::exchange(s.deferred, true) == false && option == "deferred";
    case lock_protocol::network: return take_scheme(option, s);
    case lock_protocol::hybrid: return take_hybrid_option(option, rest, s);
    case lock_protocol::cpu: return false;
  }
  return false;
}

}  // namespace

bool parse_lock(std::string_view text, LockChoice& parsed) noexcept {
  LockChoice s;
  if (text.ends_with(':') || !take_protocol(take_part(text), s.protocol)) return false;
  while (!text.empty()) {
    const std::string_view option = take_part(text);
    if (!take_option(option, text, s)) return false;
  }
  parsed = s;
  return true;
}

}  // namespace rma::detail

namespace rma {

LockChoice::LockChoice(std::string_view text, std::source_location where) {
  if (!detail::parse_lock(text, *this))
    throw Error(status::bad_argument, "Hints::lock",
                fmt::format("'{}' is no lock; the values are {}", text, detail::lock_values), -1, where);
}

}  // namespace rma

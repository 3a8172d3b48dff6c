// SPDX-License-Identifier: Apache-2.0
#include "rma/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace rma {
namespace {

constexpr const char* action_names[] = {"send", "recv",       "copy",        "combine", "combine_before",
                                        "put",  "put_signal", "wait_signal", "round"};
constexpr const char* buffer_names[] = {"input", "output", "scratch"};

std::string name_of(const Schedule::Place& at) {
  return fmt::format("{}+{}", buffer_names[static_cast<std::size_t>(at.buffer)], at.offset);
}

}  // namespace

Schedule& Schedule::add(Action action, Place from, Place into, std::size_t bytes, int peer) {
  steps_.push_back({action, from.buffer, into.buffer, peer, bytes, from.offset, into.offset});
  const auto touch = [this, bytes](const Place& at) {
    std::size_t& extent = extents_[static_cast<std::size_t>(at.buffer)];
    extent = std::max(extent, at.offset + bytes);
  };
  if (action == Action::wait_signal || action == Action::round || bytes == 0) return *this;
  if (action != Action::recv) touch(from);
  if (action != Action::send && action != Action::put && action != Action::put_signal) touch(into);
  return *this;
}

std::size_t Schedule::messages() const noexcept {
  return static_cast<std::size_t>(std::count_if(steps_.begin(), steps_.end(), [](const Step& s) {
    return s.action == Action::send || s.action == Action::put || s.action == Action::put_signal;
  }));
}

std::size_t Schedule::rounds() const noexcept {
  if (steps_.empty()) return 0;
  const auto ends =
      std::count_if(steps_.begin(), steps_.end(), [](const Step& s) { return s.action == Action::round; });
  return static_cast<std::size_t>(ends) + (steps_.back().action == Action::round ? 0 : 1);
}

std::string Schedule::text() const {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  std::size_t round = 0;
  fmt::format_to(out, "round 0\n");
  for (const Step& s : steps_) {
    const char* const name = action_names[static_cast<std::size_t>(s.action)];
    switch (s.action) {
      case Action::send: fmt::format_to(out, "  {} {} B {} to {}\n", name, s.bytes, name_of(s.from()), s.peer); break;
      case Action::recv: fmt::format_to(out, "  {} {} B {} from {}\n", name, s.bytes, name_of(s.into()), s.peer); break;
      case Action::copy:
      case Action::combine:
      case Action::combine_before:
        fmt::format_to(out, "  {} {} B {} into {}\n", name, s.bytes, name_of(s.from()), name_of(s.into()));
        break;
      case Action::put:
      case Action::put_signal:
        fmt::format_to(out, "  {} {} B {} into {} of {}\n", name, s.bytes, name_of(s.from()), name_of(s.into()),
                       s.peer);
        break;
      case Action::wait_signal: fmt::format_to(out, "  {} from {}\n", name, s.peer); break;
      case Action::round: fmt::format_to(out, "round {}\n", ++round); break;
    }
  }
  return fmt::to_string(text);
}

}  // namespace rma

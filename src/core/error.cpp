// SPDX-License-Identifier: Apache-2.0
#include "rma/error.hpp"

#include <cxxabi.h>

#include <string>

#include "core/refusals.hpp"

namespace rma {
namespace {

std::string with_place(const std::string& message, const std::source_location& where) {
  if (where.line() == 0) return message;
  return message + " (" + where.file_name() + ":" + std::to_string(where.line()) + ")";
}

std::string placed(status code, const std::string& head, const std::string& reason, const std::source_location& where) {
  std::string text = head;
  if (where.line() != 0) text += " at " + std::string(where.file_name()) + ":" + std::to_string(where.line());
  text += ": " + std::string(name_of(code));
  return reason.empty() ? text : text + ": " + reason;
}

exceptions_now now() noexcept { return *reinterpret_cast<const exceptions_now*>(abi::__cxa_get_globals()); }

// tidy: allow(banned-word) exceptions belong to threads, and so does what is known of the one on its way
thread_local newest_refusal newest;

}  // namespace

newest_refusal& newest_refusal_of_thread() noexcept { return newest; }

// It is the one on its way if it still exists and no exception has been thrown or caught since but such as are over.
bool is_left_by_refusal() noexcept {
  const exceptions_now at = now();
  return !newest.error.expired() && at.uncaught == newest.thrown_at.uncaught + 1 &&
         at.caught == newest.thrown_at.caught;
}

namespace detail {

refusal_mark::refusal_mark(status code) {
  if (code <= status::peer_failed || ok(code)) return;
  exists_ = std::make_shared<char>();
  newest = {exists_, now()};
}

}  // namespace detail

Error::Error(status code, const std::string& message, int rank, std::source_location where)
    : std::runtime_error(with_place(message, where)), where_(where), rank_(rank), code_(code), mark_(code) {}

Error::Error(status code, const std::string& head, const std::string& reason, int rank, std::source_location where)
    : std::runtime_error(placed(code, head, reason, where)), where_(where), rank_(rank), code_(code), mark_(code) {}

}  // namespace rma

// SPDX-License-Identifier: Apache-2.0
#include "rma/request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "xfer/engine.hpp"

namespace rma {

namespace detail {
void raise_request(const char* call, status code, const std::source_location& where) {
  throw Error(code,
              fmt::format("{} on a request: {}{}", call, name_of(code),
                          code == status::peer_failed ? ": the target is dead or has left the job" : ""),
              -1, where);
}
}  // namespace detail

status try_wait_all(std::span<Request> requests) noexcept {
  status result = status::done;
  for (Request& r : requests) {
    const status s = r.try_wait();
    if (!ok(s) && ok(result)) result = s;
  }
  return result;
}

void wait_all(std::span<Request> requests, std::source_location where) {
  const status s = try_wait_all(requests);
  if (!ok(s)) detail::raise_request("wait_all", s, where);
}

std::size_t wait_any(std::span<Request> requests, std::source_location where) {
  const auto over = [](const Request& r) noexcept {
    return r.node_ != nullptr && detail::request_state(*r.node_) != status::not_yet;
  };
  const auto first = std::find_if(requests.begin(), requests.end(), [](const Request& r) { return r.pending(); });
  if (first == requests.end()) return requests.size();
  // `over` is true for failed ones, too, so that a death ends the wait.
  const auto any = [&]() noexcept { return std::any_of(requests.begin(), requests.end(), over); };
  const status s = first->node_->owner->ctx().wait_until(any, []() noexcept { return status::done; });
  if (!ok(s)) detail::raise_request("wait_any", s, where);
  const auto ended = std::find_if(requests.begin(), requests.end(), over);
  ended->wait(where);
  return static_cast<std::size_t>(ended - requests.begin());
}

bool test_all(std::span<Request> requests, std::source_location where) {
  bool all = true;
  for (Request& r : requests) all = r.test(where) && all;
  return all;
}

}  // namespace rma

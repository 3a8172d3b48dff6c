// SPDX-License-Identifier: Apache-2.0
#include "rma/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "channel/call_scope.hpp"
#include "core/names.hpp"
#include "window/window_core.hpp"
#include "xfer/engine.hpp"
#include "xfer/wait_heard.hpp"

namespace rma {

namespace detail {
namespace {

/// Does end_failed if there is a node.
Error request_error(const char* call, status code, request_node*& node, const std::source_location& where) {
  if (code == status::wrong_thread)
    return {code, fmt::format("{} on requests: {}: {}", call, name_of(code), wrong_thread_remedy), -1, where};
  if (node == nullptr) return {code, fmt::format("{} on requests: {}", call, name_of(code)), -1, where};
  if (node->owner == nullptr) {
    const bool cut_short = code == status::window_freed;
    end_failed(node, code);
    return {code,
            fmt::format("{} on a request: {}: its Runtime has ended{}", call, name_of(code),
                        cut_short ? " before its operation; wait for it first" : ""),
            -1, where};
  }
  if (node->outside != nullptr) {
    const int dead = code == status::peer_failed ? node->owner->ctx().last_failed() : -1;
    context& ctx = node->owner->ctx();
    std::string reason;
    const std::string head =
        fmt::format("[rank {}] {} for {}", ctx.rank(), call, node->outside->describe(code, reason));
    if (dead >= 0) reason += (reason.empty() ? "" : "; ") + ctx.why_failed(dead);
    end_failed(node, code);
    return {code, head, reason, dead, where};
  }
  if (node->operation == nullptr && node->task == nullptr) {
    end_failed(node, code);
    return {code, fmt::format("{} on a request: {}: its team is gone; wait for it first", call, name_of(code)), -1,
            where};
  }
  engine& owner = *node->owner;
  const bool synchronizes = node->task != nullptr;
  const int peer = !synchronizes ? node->rank : code == status::peer_failed ? owner.ctx().last_failed() : -1;
  std::string name = fmt::format("#{:x}", node->window & 0xffff);
  bool dropped = false;
  {
    const std::lock_guard guard(owner.ctx().lock());
    const window_core* const w = owner.find(node->window);
    if (w != nullptr && !w->hints.name.empty()) name = quoted(w->hints.name);
    dropped = w != nullptr && peer >= 0 && w->dropped_by.load() == peer;
  }
  end_failed(node, code);
  std::string why;
  if (code == status::peer_failed) why = owner.ctx().why_failed(peer);
  if (code == status::revoked) why = "a member has revoked the window or its team";
  if (code == status::transfer_failed) {
    why = dropped ? "the target has dropped the window"
                  : "the transfer ended with an error, though the rank lives; what it should have written is "
                    "undefined: repeat it, unless memory of either is not mapped or protected";
  }
  const int me = owner.ctx().rank();
  const std::string head = synchronizes
                               ? fmt::format("[rank {}] {} (synchronization of window {})", me, call, name)
                               : fmt::format("[rank {}] {} for world rank {} (window {})", me, call, peer, name);
  return {code, head, why, peer, where};
}

}  // namespace

void raise_request(const char* call, status code, request_node*& node, const std::source_location& where) {
  throw request_error(call, code, node, where);
}
}  // namespace detail

bool Request::is_silent(std::span<const Request> requests) noexcept {
  return std::any_of(requests.begin(), requests.end(), [](const Request& r) {
    return r.node_ != nullptr && r.node_->task != nullptr && r.node_->silent.load(std::memory_order_relaxed);
  });
}

/// A request whose end has not been reported.
std::size_t Request::first_news(std::span<const Request> requests) noexcept {
  const auto is_over = [](const Request& r) { return r.is_news_ && r.node_ == nullptr; };
  return static_cast<std::size_t>(std::find_if(requests.begin(), requests.end(), is_over) - requests.begin());
}

// Before a step is made for any of them.
status Request::check_caller(std::span<const Request> requests) noexcept {
  const auto pending = std::find_if(requests.begin(), requests.end(),
                                    [](const Request& r) { return r.node_ != nullptr && r.node_->owner != nullptr; });
  return pending == requests.end() ? status::done : detail::may_ask(*pending->node_);
}

// Synchronizations advance only when they are tested: other ranks may wait for them in another order.
void Request::advance_together(std::span<Request> requests) noexcept {
  const auto is_task = [](const Request& r) { return r.node_ != nullptr && r.node_->task != nullptr; };
  const auto first = std::find_if(requests.begin(), requests.end(), is_task);
  if (first == requests.end()) return;
  const auto all = [&]() noexcept {
    bool over = true;
    for (Request& r : requests)
      if (is_task(r) && detail::request_state(*r.node_) == status::not_yet) over = false;
    return over;
  };
  detail::context& ctx = first->node_->owner->ctx();
  const detail::named_wait in(ctx, "a wait for requests");
  (void)detail::wait_heard(
      ctx, [&]() noexcept { return is_silent(requests); }, all);
}

status wait_all_nothrow(std::span<Request> requests) noexcept {
  if (const status s = Request::check_caller(requests); s != status::done) return s;
  Request::advance_together(requests);
  status result = status::done;
  for (Request& r : requests) {
    const status s = r.wait_nothrow();
    if (!ok(s) && ok(result)) result = s;
  }
  return result;
}

void wait_all(std::span<Request> requests, std::source_location where) {
  detail::request_node* none = nullptr;
  if (const status s = Request::check_caller(requests); !ok(s)) detail::raise_request("wait_all", s, none, where);
  Request::advance_together(requests);
  std::optional<Error> first;
  for (Request& r : requests) {
    r.is_news_ = false;
    const status s = r.node_ == nullptr ? status::done : detail::wait_request(r.node_);
    if (ok(s)) continue;
    Error error = detail::request_error("wait_all", s, r.node_, where);
    if (!first) first = std::move(error);
  }
  if (first) throw Error(*first);
}

// Until one has ended, which its own wait then tells; `done` and requests.size() if there is nothing more to tell.
status Request::await_any(std::span<Request> requests, std::size_t& which) noexcept {
  which = requests.size();
  if (const status s = check_caller(requests); !ok(s)) return s;
  which = first_news(requests);
  if (which != requests.size()) return status::done;
  const auto over = [](const Request& r) noexcept {
    return r.node_ != nullptr && detail::request_state(*r.node_) != status::not_yet;
  };
  const auto first = std::find_if(requests.begin(), requests.end(), [](const Request& r) { return r.pending(); });
  if (first == requests.end()) return status::done;
  // `over` is true for failed ones, too, so that a death ends the wait; and for those whose Runtime has ended.
  const auto any = [&]() noexcept { return std::any_of(requests.begin(), requests.end(), over); };
  if (!any()) {
    detail::context& ctx = first->node_->owner->ctx();
    const detail::named_wait in(ctx, "wait_any");
    if (const status s = detail::wait_heard(
            ctx, [&]() noexcept { return is_silent(requests); }, any);
        !ok(s))
      return s;
  }
  which = static_cast<std::size_t>(std::find_if(requests.begin(), requests.end(), over) - requests.begin());
  return status::done;
}

std::size_t wait_any(std::span<Request> requests, std::source_location where) {
  detail::request_node* none = nullptr;
  std::size_t which = 0;
  if (const status s = Request::await_any(requests, which); !ok(s)) detail::raise_request("wait_any", s, none, where);
  if (which != requests.size()) requests[which].wait(where);
  return which;
}

status wait_any_nothrow(std::span<Request> requests, std::size_t& which) noexcept {
  const status s = Request::await_any(requests, which);
  return ok(s) && which != requests.size() ? requests[which].wait_nothrow() : s;
}

std::optional<std::size_t> test_any(std::span<Request> requests, std::source_location where) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].pending() ? requests[i].test(where) : std::exchange(requests[i].is_news_, false)) return i;
  }
  return std::nullopt;
}

status try_test_any(std::span<Request> requests, std::size_t& which) noexcept {
  for (which = 0; which < requests.size(); ++which) {
    if (requests[which].pending()) {
      if (const status s = requests[which].try_test(); s != status::not_yet) return s;
    } else if (std::exchange(requests[which].is_news_, false)) {
      return status::done;
    }
  }
  return status::not_yet;
}

bool test_all(std::span<Request> requests, std::source_location where) {
  bool all = true;
  for (Request& r : requests) all = r.test(where) && all;
  return all;
}

}  // namespace rma

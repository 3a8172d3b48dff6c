// SPDX-License-Identifier: Apache-2.0
/// \file
/// Requests: handles to wait for single operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <utility>

#include "rma/error.hpp"

#pragma GCC visibility push(default)

namespace rma {

class Request;
/// Friends of Request; their comments are below, where the default arguments are.
std::size_t wait_any(std::span<Request> requests, std::source_location where);
[[nodiscard]] status wait_any_nothrow(std::span<Request> requests, std::size_t& which) noexcept;
std::optional<std::size_t> test_any(std::span<Request> requests, std::source_location where);
[[nodiscard]] status try_test_any(std::span<Request> requests, std::size_t& which) noexcept;
void wait_all(std::span<Request> requests, std::source_location where);
[[nodiscard]] status wait_all_nothrow(std::span<Request> requests) noexcept;

namespace detail {
struct request_node;
/// Makes one step of progress; returns done, not_yet, or the failure. Frees the node if done.
status test_request(request_node*& node) noexcept;
/// Blocks until the request has ended. Frees the node if done; otherwise the caller calls end_failed.
status wait_request(request_node*& node) noexcept;
/// Called after the failure was reported. Frees the node, except for wrong_thread, which changes nothing.
void end_failed(request_node*& node, status failure) noexcept;
/// Called when the owner drops the request; the node is freed when the operation ends.
void drop_request(request_node* node) noexcept;
/// Throws the Error, after end_failed if there is a node.
[[noreturn]] void raise_request(const char* call, status code, request_node*& node, const std::source_location& where);
}  // namespace detail

/// A handle of one operation (rput, rget, raccumulate, rget_accumulate, ...), of a collective (ibarrier, ...), or of a
/// message: a MessageRequest converts to it (rma/messages.hpp). One list may hold all kinds.
///
/// It is complete when the origin's buffers may be reused and results are available; flush for completion at
/// the target. An operation on mapped memory is complete when the call returns, and its Request is empty:
/// no allocation. There is no limit on outstanding requests; a complete one releases its memory.
///
/// If it is dropped, the operation continues: its buffers stay in use until the next flush or the end of the epoch,
/// which complete it like any other. So the results of a dropped rget, rget_accumulate, rfetch_and_op or
/// rcompare_and_swap are available after a flush (or flush_local) of its target. A Request that outlives its Runtime
/// (and the last window and team) may be dropped or tested: it reports how its operation ended, or window_freed.
///
/// Threads    one thread at a time; at the levels single and funneled only the runtime's thread: a call of
///            another one is refused (wrong_thread), and the request is unchanged
/// Errors     wait and test report the operation's own failure (peer_failed, transfer_failed), which flushes after that
///            do not; a failure that no request reported is reported by the next call that completes the target
class Request {
 public:
  Request() noexcept = default;
  /// Made by the calls that return one; without a node it is complete.
  explicit Request(detail::request_node* node) noexcept : node_(node), is_news_(node == nullptr) {}
  Request(Request&& other) noexcept
      : node_(std::exchange(other.node_, nullptr)), is_news_(std::exchange(other.is_news_, false)) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      if (node_ != nullptr) detail::drop_request(node_);
      node_ = std::exchange(other.node_, nullptr);
      is_news_ = std::exchange(other.is_news_, false);
    }
    return *this;
  }
  ~Request() {
    if (node_ != nullptr) detail::drop_request(node_);
  }

  /// True if the operation is complete. Makes one step of progress if it is not.
  bool test(std::source_location where = std::source_location::current()) {
    const status s = node_ == nullptr ? status::done : detail::test_request(node_);
    if (s == status::not_yet) return false;
    is_news_ = false;
    if (!ok(s)) detail::raise_request("test", s, node_, where);
    return true;
  }
  [[nodiscard]] status try_test() noexcept {
    const status s = node_ == nullptr ? status::done : detail::test_request(node_);
    if (s != status::not_yet) is_news_ = false;
    if (node_ != nullptr && s != status::not_yet) detail::end_failed(node_, s);
    return s;
  }

  /// Blocks until the operation is complete. Returns at once if the request is complete or empty.
  void wait(std::source_location where = std::source_location::current()) {
    is_news_ = false;
    const status s = node_ == nullptr ? status::done : detail::wait_request(node_);
    if (!ok(s)) detail::raise_request("wait", s, node_, where);
  }
  [[nodiscard]] status wait_nothrow() noexcept {
    is_news_ = false;
    const status s = node_ == nullptr ? status::done : detail::wait_request(node_);
    if (node_ != nullptr) detail::end_failed(node_, s);
    return s;
  }

  friend void wait_all(std::span<Request> requests, std::source_location where);
  friend std::size_t wait_any(std::span<Request> requests, std::source_location where);
  friend status wait_any_nothrow(std::span<Request> requests, std::size_t& which) noexcept;
  friend std::optional<std::size_t> test_any(std::span<Request> requests, std::source_location where);
  friend status try_test_any(std::span<Request> requests, std::size_t& which) noexcept;
  friend status wait_all_nothrow(std::span<Request> requests) noexcept;

  /// True while the operation may still be running (no progress is made).
  [[nodiscard]] bool pending() const noexcept { return node_ != nullptr; }

 private:
  static bool is_silent(std::span<const Request> requests) noexcept;
  static status check_caller(std::span<const Request> requests) noexcept;
  static void advance_together(std::span<Request> requests) noexcept;

  static std::size_t first_news(std::span<const Request> requests) noexcept;
  static status await_any(std::span<Request> requests, std::size_t& which) noexcept;

  detail::request_node* node_ = nullptr;
  bool is_news_ = false;  ///< completed at once, which wait_any or test_any has yet to report
};

/// Waits for all. Throws the first failure after all have ended.
void wait_all(std::span<Request> requests, std::source_location where = std::source_location::current());
[[nodiscard]] status wait_all_nothrow(std::span<Request> requests) noexcept;

/// Waits until one of them has ended and returns its index. Each end is reported once, by wait_any, test_any, or the
/// request's own test or wait, also if it came at once; requests.size() if all ends have been reported.
std::size_t wait_any(std::span<Request> requests, std::source_location where = std::source_location::current());
/// As `wait_any`: returns the status of the request that has ended; `which` is its index.
[[nodiscard]] status wait_any_nothrow(std::span<Request> requests, std::size_t& which) noexcept;

/// As `wait_any` without waiting: nothing if none has ended. Makes one step of progress.
std::optional<std::size_t> test_any(std::span<Request> requests,
                                    std::source_location where = std::source_location::current());
/// As `test_any`: returns the status of the request that has ended; not_yet, with requests.size(), if none has.
[[nodiscard]] status try_test_any(std::span<Request> requests, std::size_t& which) noexcept;

/// True if all have ended; makes one step of progress for each that has not.
bool test_all(std::span<Request> requests, std::source_location where = std::source_location::current());

}  // namespace rma

#pragma GCC visibility pop

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Requests: operations whose end can be waited for one by one.
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
/// Friends of Request, whose comments stand where their default arguments are.
std::size_t wait_any(std::span<Request> requests, std::source_location where);
[[nodiscard]] status wait_any_nothrow(std::span<Request> requests, std::size_t& which) noexcept;
std::optional<std::size_t> test_any(std::span<Request> requests, std::source_location where);
[[nodiscard]] status try_test_any(std::span<Request> requests, std::size_t& which) noexcept;
void wait_all(std::span<Request> requests, std::source_location where);
[[nodiscard]] status wait_all_nothrow(std::span<Request> requests) noexcept;

namespace detail {
struct request_node;
/// One step of progress, then: done, not_yet, or why it failed. Frees the node if done.
status test_request(request_node*& node) noexcept;
/// Blocks until the request has ended; frees the node if done, else call end_failed.
status wait_request(request_node*& node) noexcept;
/// The failure was reported; frees the node, unless it was wrong_thread, which changes nothing.
void end_failed(request_node*& node, status failure) noexcept;
/// The owner lost interest; the node is freed when the operation ends.
void drop_request(request_node* node) noexcept;
/// Does end_failed if there is a node.
[[noreturn]] void raise_request(const char* call, status code, request_node*& node, const std::source_location& where);
}  // namespace detail

/// The end of one operation (rput, rget, raccumulate, rget_accumulate, ...), of a collective (ibarrier, ...), or of a
/// message: a MessageRequest converts to it (rma/messages.hpp). A list may have all kinds at once.
///
/// Complete means: the origin's buffers may be used again and results are in place. For the effect at
/// the target, flush. An operation on mapped memory is complete when it returns and its Request is empty:
/// no allocation. There is no limit on outstanding requests; a finished one gives its memory back.
///
/// One that is dropped lets the operation go on: its buffers stay in use until the next flush or the epoch's end, which
/// complete it like any other. So what a dropped rget, rget_accumulate, rfetch_and_op or rcompare_and_swap fetches is
/// there after a flush (or flush_local) of its target. One that outlives its Runtime (with the last window and team)
/// may be dropped or asked: it says how its operation had ended by then, or window_freed.
///
/// Threads    a Request is for one thread at a time; at the levels single and funneled for the runtime's: a call
///            of another is refused (wrong_thread), and the request stays what it was
/// Errors     wait and test report the operation's own failure (peer_failed, transfer_failed), which flushes after that
///            do not; a failure that no request reported is reported by the next call that completes the target
class Request {
 public:
  Request() noexcept = default;
  /// Of an operation; without a node it is complete already.
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

  /// True if nothing is outstanding any more. Makes one step of progress if something is.
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

  /// Blocks until complete. A finished or empty request returns at once.
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
  bool is_news_ = false;  ///< it had ended at once, which wait_any and test_any have to tell
};

/// Waits for all. The first failure is thrown after all have ended.
void wait_all(std::span<Request> requests, std::source_location where = std::source_location::current());
[[nodiscard]] status wait_all_nothrow(std::span<Request> requests) noexcept;

/// Waits until one of them has ended and returns its index, also of one that had ended at once. Each is told once, by
/// this, test_any, or its own test or wait: requests.size() if there is nothing more to tell.
std::size_t wait_any(std::span<Request> requests, std::source_location where = std::source_location::current());
/// How that one has ended; `which` is its index.
[[nodiscard]] status wait_any_nothrow(std::span<Request> requests, std::size_t& which) noexcept;

/// As `wait_any` without waiting: nothing if none of them has ended yet. Makes one step of progress.
std::optional<std::size_t> test_any(std::span<Request> requests,
                                    std::source_location where = std::source_location::current());
/// How that one has ended; not_yet, and requests.size(), if none has.
[[nodiscard]] status try_test_any(std::span<Request> requests, std::size_t& which) noexcept;

/// True if all have ended; makes one step of progress for each that has not.
bool test_all(std::span<Request> requests, std::source_location where = std::source_location::current());

}  // namespace rma

#pragma GCC visibility pop

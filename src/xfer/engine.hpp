// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operation engine: what an inlined call does not do itself. Knows every window of the runtime, the
/// operations under way, and the handlers that serve other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "channel/context.hpp"
#include "rma/detail/view.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

struct window_core;
class engine;

/// An operation that somebody may wait for: over when the peer has acknowledged its last message.
struct request_node {
  engine* owner = nullptr;
  context::peer* peer = nullptr;
  int rank = -1;  ///< of the peer, in the world
  std::uint64_t operation = 0;
  request_node* next_free = nullptr;
};

/// Where the data of a get, get_accumulate, fetch_and_op or compare_and_swap go when the reply comes.
struct result_ticket {
  std::byte* at = nullptr;
  Layout shape;  ///< if not contiguous
  bool contiguous = true;
  std::uint64_t bytes = 0;
  std::uint64_t arrived = 0;  ///< of these, in order
  std::uint32_t generation = 0;
  std::uint32_t next_free = 0;
};

/// done, not_yet or peer_failed, without making progress.
status request_state(request_node& node) noexcept;

/// How puts and gets reach the user memory of another process.
enum class user_memory : std::uint8_t { automatic, handler, cma };

class engine {
 public:
  explicit engine(context& ctx);

  [[nodiscard]] context& ctx() noexcept { return ctx_; }
  [[nodiscard]] user_memory forced() const noexcept { return forced_; }

  // ---- windows; the caller holds the progress lock ------------------------------------------------------------
  void add(window_core& w) { windows_.emplace(window_id(w), &w); }
  void remove(window_core& w) {
    windows_.erase(window_id(w));
    last_found_ = nullptr;
  }
  [[nodiscard]] window_core* find(std::uint64_t id) noexcept {
    if (last_found_ == nullptr || last_id_ != id) {
      const auto at = windows_.find(id);
      last_id_ = id;
      last_found_ = at == windows_.end() ? nullptr : at->second;
    }
    return last_found_;
  }

  // ---- operations under way; the caller holds the progress lock ------------------------------------------------
  request_node* new_request(int rank, std::uint64_t operation);
  void free_request(request_node* node) noexcept;
  /// `shape` is null where the result is contiguous.
  std::uint64_t new_ticket(void* at, std::uint64_t bytes, const Layout* shape);
  [[nodiscard]] std::size_t requests_made() const noexcept { return requests_.size(); }

 private:
  static std::uint64_t window_id(const window_core& w) noexcept;
  void take_result(std::uint64_t ticket, std::span<const std::byte> data) noexcept;
  static void on_operation(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_reply(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_acknowledge(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_share(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_refuse(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_notify(void* self, int source, std::span<const std::byte> payload) noexcept;

  context& ctx_;
  user_memory forced_ = user_memory::automatic;
  std::uint64_t last_id_ = 0;  ///< the window that was found last
  window_core* last_found_ = nullptr;
  std::unordered_map<std::uint64_t, window_core*> windows_;
  std::deque<request_node> requests_;  ///< grows to the largest number outstanding; reused after that
  request_node* free_requests_ = nullptr;
  std::deque<result_ticket> tickets_;
  std::uint32_t free_ticket_ = 0;  ///< index + 1
};

}  // namespace rma::detail

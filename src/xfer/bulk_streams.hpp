// SPDX-License-Identifier: Apache-2.0
/// \file
/// Transfers over the fabric's bulk channel ("send-gather/receive-scatter"): puts and gets whose data are transferred
/// from the pieces of one side directly into those of the other. See bulk_wire.hpp for the messages and their order.
///
/// A transfer is one stream on either side, which sends or receives. Streams never block: without room they continue in
/// a later round of progress.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "channel/context.hpp"
#include "xfer/bulk_wire.hpp"
#include "xfer/layout_exchange.hpp"
#include "xfer/matching.hpp"
#include "xfer/operation_record.hpp"

namespace rma::detail {

struct window_core;
struct checked_operation;
class bulk_streams;

/// One side of a transfer. From a pool; never moved.
struct bulk_stream : fabric::completion, bulk_turn {
  enum class stage : std::uint8_t {
    waits,   ///< origin of a put: for the target's receives
    queued,  ///< in the queue of streams that post receives, or send
    posted,  ///< all of it is posted
    over,
  };
  boost::intrusive::list_member_hook<> listed;
  bulk_streams* owner = nullptr;
  std::uint32_t index = 0;       ///< in the pool
  std::uint32_t generation = 0;  ///< increases with each use
  int peer = -1;
  bool at_origin = false;
  bool sends = false;
  bool requested = false;  ///< origin: the request was sent
  bool answered = false;   ///< `over` has arrived, or is not expected
  bool abandoned = false;  ///< the target posts no more receives
  stage at = stage::waits;
  status result = status::done;
  operation_record* operation = nullptr;  ///< the origin's
  bulk_request request;
  Layout here, there;
  std::byte* base = nullptr;
  std::shared_ptr<const transfer_plan> plan;  ///< division of the data into messages, if it is cached
  std::size_t messages_cut = 0;               ///< number of the plan's messages taken
  std::optional<matching> cut;                ///< division without a plan
  std::uint32_t granted = 0;                  ///< receives of the peer without a send
  std::uint32_t under_way = 0;
  std::uint64_t arrived = 0;              ///< bytes
  std::vector<fabric::local_slice> list;  ///< pieces of the next message
  bool list_is_cut = false;               ///< the list is made, but has found no room
  [[nodiscard]] bool is_all_cut() const noexcept {
    return plan != nullptr ? messages_cut == plan->messages() : cut->done();
  }
};

class bulk_streams {
 public:
  bulk_streams(context& ctx, class engine& owner);

  /// Begins a put or get. The caller holds the progress lock. It does not block; the operation gets a further piece,
  /// which ends when the transfer is complete.
  void start(window_core& w, const checked_operation& o, operation_record& op);
  /// The layout with this number in a request of this rank that is under way to the peer; null if there is none.
  [[nodiscard]] const Layout* find_layout(int peer, std::uint32_t number) noexcept;

 private:
  using progress = bulk_turn::progress;
  using all_list = boost::intrusive::list<
      bulk_stream,
      boost::intrusive::member_hook<bulk_stream, boost::intrusive::list_member_hook<>, &bulk_stream::listed>>;

  /// Plans by the numbers of both layouts.
  using plan_cache = recent_entries<std::uint64_t, std::shared_ptr<const transfer_plan>>;
  static constexpr std::size_t plans_max = 16;  ///< cached for a peer; each has 32 KiB at most

  struct peer_state {
    all_list all;
    bulk_stream* last_get = nullptr;  ///< the peer's last get, for which `more` may arrive
    plan_cache plans_as_origin{plans_max}, plans_as_target{plans_max};
  };

  peer_state& with(int peer);
  bulk_stream& new_stream(int peer);
  void free(bulk_stream& s) noexcept;
  std::uint32_t name(const bulk_stream& s, const Layout& layout);
  void send_request(bulk_stream& s, std::uint32_t posted);
  void tell(const bulk_stream& s, bulk_word what, std::uint32_t count, status result = status::done) noexcept;
  void begin(bulk_stream& s);
  void raise_signal(const bulk_stream& s) noexcept;
  static progress post_next(bulk_turn& self);
  static void after_last(bulk_turn& self);
  progress post_receives(bulk_stream& s);
  progress post_sends(bulk_stream& s);
  void cut_next(bulk_stream& s);
  void plan(bulk_stream& s);
  void finish_if_over(bulk_stream& s);
  void end_peer(int peer);
  void watch() noexcept { ctx_.on_duty(this, active_ != 0); }

  void take_request(int source, std::span<const std::byte> payload);
  void take_news(int source, std::span<const std::byte> payload);
  static void on_message(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_piece(fabric::completion& self, status result, std::uint64_t bytes) noexcept;
  static unsigned on_duty(void* self) noexcept;

  context& ctx_;
  class engine& engine_;
  bool keeps_plans_;
  std::vector<std::unique_ptr<bulk_stream>> pool_;
  std::vector<bulk_stream*> free_;
  std::unordered_map<int, std::unique_ptr<peer_state>> peers_;
  std::size_t active_ = 0;    ///< number of streams
  std::vector<int> stirred_;  ///< room for on_duty
  std::uint32_t deaths_seen_ = 0;
};

}  // namespace rma::detail

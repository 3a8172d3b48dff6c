// SPDX-License-Identifier: Apache-2.0
/// \file
/// Transfers over the fabric's bulk channel ("send-gather/receive-scatter"): puts and gets whose data go from the
/// pieces of one side straight into those of the other. See bulk_wire.hpp for the messages and the rule of their order.
///
/// A transfer is one stream on either side, which sends or receives. Streams never wait: what finds no room goes on
/// when there is some.
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
#include "xfer/layout_cache.hpp"
#include "xfer/matching.hpp"
#include "xfer/operation_record.hpp"

namespace rma::detail {

struct window_core;
struct checked_operation;
class bulk_streams;

/// One side of a transfer. From a pool; never moved.
struct bulk_stream : fabric::completion, bulk_turn {
  enum class stage : std::uint8_t {
    waits,   ///< put: until the target has posted receives; target: until the layouts are known
    queued,  ///< among those that post receives, or send, in order
    posted,  ///< all of it
    over,
  };
  boost::intrusive::list_member_hook<> queued, listed;
  bulk_streams* owner = nullptr;
  std::uint32_t index = 0;       ///< in the pool
  std::uint32_t generation = 0;  ///< rises with each use
  int peer = -1;
  bool at_origin = false;
  bool sends = false;
  bool requested = false;  ///< the target knows of it; at the target: layouts have been asked for
  bool knows_here = false, knows_there = false;
  bool answered = false;   ///< `over` has come, or is not expected
  bool abandoned = false;  ///< the target posts no more receives
  stage at = stage::waits;
  status result = status::done;
  operation_record* operation = nullptr;  ///< the origin's
  bulk_request request;
  Layout here, there;
  std::byte* base = nullptr;
  std::shared_ptr<const transfer_plan> plan;  ///< of how the data are cut, if it is kept
  std::size_t messages_cut = 0;               ///< of the plan's
  std::optional<matching> cut;                ///< else
  std::uint32_t granted = 0;                  ///< receives of the peer's that nothing has been sent to
  std::uint32_t under_way = 0;
  std::uint64_t arrived = 0;              ///< bytes
  std::vector<fabric::local_slice> list;  ///< of the next message
  bool list_is_cut = false;               ///< and it has found no room
  [[nodiscard]] bool is_all_cut() const noexcept {
    return plan != nullptr ? messages_cut == plan->messages() : cut->done();
  }
};

class bulk_streams {
 public:
  bulk_streams(context& ctx, class engine& owner);

  /// Begins a put or get. The caller holds the progress lock. Nothing is waited for; the operation gets one piece more,
  /// which ends when the transfer is over.
  void start(window_core& w, const checked_operation& o, operation_record& op);

 private:
  using progress = bulk_turn::progress;
  using queue = boost::intrusive::list<
      bulk_stream,
      boost::intrusive::member_hook<bulk_stream, boost::intrusive::list_member_hook<>, &bulk_stream::queued>>;
  using all_list = boost::intrusive::list<
      bulk_stream,
      boost::intrusive::member_hook<bulk_stream, boost::intrusive::list_member_hook<>, &bulk_stream::listed>>;

  /// By the numbers of both layouts.
  using plan_cache = recent_entries<std::uint64_t, std::shared_ptr<const transfer_plan>>;
  static constexpr std::size_t plans_max = 16;  ///< kept for a peer; each has 32 KiB at most

  struct description {
    std::uint32_t number = 0;
    std::vector<std::byte> bytes;
  };
  struct peer_state {
    explicit peer_state(std::size_t names) : known(names) {}

    queue asking;  ///< requests of the peer whose layouts are not known, and those behind them
    all_list all;
    bulk_stream* last_get = nullptr;  ///< the peer's last one, for which `more` may come
    layout_names known;               ///< what layouts are called towards the peer
    plan_cache plans_as_origin{plans_max}, plans_as_target{plans_max};
    description coming;  ///< of which some is there
  };

  peer_state& with(int peer);
  bulk_stream& new_stream(int peer);
  void free(bulk_stream& s) noexcept;
  void describe(bulk_stream& s, const Layout& layout, std::uint32_t number);
  std::uint32_t name(bulk_stream& s, const Layout& layout);
  void send_request(bulk_stream& s, std::uint32_t posted);
  void tell(const bulk_stream& s, bulk_word what, std::uint32_t count, status result = status::done) noexcept;
  void begin(bulk_stream& s);
  bool know_layouts(bulk_stream& s);
  void pump(int peer);
  void pump_requests(peer_state& p);
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

  void take_define(int source, std::span<const std::byte> payload);
  void take_request(int source, std::span<const std::byte> payload);
  void take_news(int source, std::span<const std::byte> payload);
  static void on_message(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_piece(fabric::completion& self, status result, std::uint64_t bytes) noexcept;
  static unsigned on_duty(void* self) noexcept;

  context& ctx_;
  class engine& engine_;
  std::size_t names_max_;
  std::vector<std::unique_ptr<bulk_stream>> pool_;
  std::vector<bulk_stream*> free_;
  std::unordered_map<int, std::unique_ptr<peer_state>> peers_;
  layout_table table_;
  std::size_t active_ = 0;    ///< streams
  std::vector<int> stirred_;  ///< room for on_duty
  std::uint32_t deaths_seen_ = 0;
};

}  // namespace rma::detail

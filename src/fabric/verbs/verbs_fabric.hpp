// SPDX-License-Identifier: Apache-2.0
/// \file
/// The fabric of RDMA adapters, by rdma-core's verbs: reliable connections made at first use, one shared receive queue,
/// one completion queue, writes, reads and atomics of the adapter.
///
/// A write's completion says that the target's adapter has it (acked; a device in software: placed). What is posted
/// later to the same peer, a read, an atomic or a message, finds it in place: the adapter executes what comes on one
/// connection in order.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/verbs/adapter.hpp"
#include "fabric/verbs/buffers.hpp"
#include "fabric/verbs/connection.hpp"
#include "fabric/verbs/connection_manager.hpp"
#include "fabric/verbs/memory_regions.hpp"
#include "fabric/verbs/open.hpp"
#include "fabric/verbs/registration_cache.hpp"

namespace rma::verbs {

class verbs_fabric final : public fabric::network, public fabric::liveness, public fabric::facts {
 public:
  /// Throws Error(unreachable, out_of_memory).
  verbs_fabric(std::unique_ptr<adapter> device, const member& who);
  ~verbs_fabric() override;

  /// Where others find this rank: to be published.
  [[nodiscard]] std::string address() const { return text_of(manager_->address()); }
  [[nodiscard]] std::size_t entries_per_connection() const noexcept;

  [[nodiscard]] const fabric::capabilities& caps() const noexcept override { return caps_; }
  [[nodiscard]] bool reaches(int peer) const noexcept override { return peer >= 0 && peer < size_; }

  status register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept override;
  void deregister_region(const fabric::region_key& key) noexcept override;

  status write(int peer, std::span<const fabric::local_slice> from, const fabric::region_key& region,
               std::span<const fabric::remote_slice> to, std::uint64_t token,
               fabric::write_flags how = {}) noexcept override;
  status read(int peer, std::span<const fabric::local_slice> to, const fabric::region_key& region,
              std::span<const fabric::remote_slice> from, std::uint64_t token) noexcept override;
  status fetch_add(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t operand,
                   std::uint64_t& old, std::uint64_t token,
                   fabric::posting when = fabric::posting::now) noexcept override;
  status compare_swap(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t expected,
                      std::uint64_t desired, std::uint64_t& old, std::uint64_t token,
                      fabric::posting when = fabric::posting::now) noexcept override;
  status send(int peer, std::uint16_t kind, std::span<const std::byte> header,
              std::span<const std::byte> payload) noexcept override;
  status send_bulk(int peer, std::span<const fabric::local_slice> from, std::uint64_t token) noexcept override;
  status post_bulk_receive(int peer, std::span<const fabric::local_slice> to, std::uint64_t token) noexcept override;

  /// Asks `job` how peers are reached; before anything is posted.
  void use(fabric::directory& job) noexcept { directory_ = &job; }
  void forget(int peer) noexcept override { manager_->forget(peer); }
  [[nodiscard]] int event_fd() const noexcept override { return events_; }
  bool pending() noexcept override;
  bool quiet() noexcept override;
  unsigned poll(fabric::sink& to, unsigned limit) noexcept override;
  void counts(const std::function<void(std::string_view, std::uint64_t)>& add) const override;

 private:
  using slices = std::span<const fabric::local_slice>;

  /// One entry of a send queue before it is posted.
  struct send_request {
    /// To clear all of the request, of which an operation uses a third, takes as long as the rest of its way to here.
    send_request() noexcept {
      request.next = nullptr;
      request.num_sge = 0;
      request.send_flags = 0;
      request.wr.rdma = {0, 0};
    }
    ibv_send_wr request;
    std::array<ibv_sge, 32> pieces;
    completion_action then;
    bool must_signal = false;
  };
  /// Writes and reads to one connection that has had no room for them, and atomics of a chain (verbs_queued.cpp).
  struct queued_transfers {
    static constexpr std::size_t count_max = 8;
    connection* to = nullptr;  ///< null: there has been room for all
    std::uint32_t count = 0;
    bool is_chain = false;  ///< the last of them is an atomic that more follow
    bool had_room = false;  ///< there was room for all when the chain began
    std::array<send_request, count_max> all;
    std::array<std::array<std::byte, inline_bytes_max>, count_max> data;  ///< of those that go inline
  };
  /// A transfer whose memory is not registered and which is larger than a buffer: goes piece by piece.
  struct bounced {
    connection* to;
    bool write;
    std::vector<fabric::local_slice> local;
    std::size_t slice = 0, offset = 0;  ///< where the next piece starts
    std::uint64_t address;
    std::uint32_t key;
    std::uint64_t token;
    std::uint32_t under_way = 0;
    status result = status::done;
    [[nodiscard]] bool all_posted() const noexcept { return slice == local.size(); }
  };

  // ---- connections ------------------------------------------------------------------------------------------
  /// The connection to who was asked for last, if nothing has happened to it, or what reach_another says.
  status reach(int peer, connection*& c) noexcept {
    c = last_peer_;
    const bool usable = c != nullptr && c->peer == peer && c->mask != 0 && c->resend.empty() &&
                        c->state.load(std::memory_order_acquire) == connection_state::ready;
    return usable ? status::done : reach_another(peer, c);
  }
  status reach_another(int peer, connection*& c) noexcept;
  void prepare(connection& c) noexcept;
  status look_for(int peer, channel of, connection*& c) noexcept;
  void list_by_index(connection& c) noexcept;
  connection* source_of(std::uint32_t queue_pair) noexcept;

  // ---- posting ----------------------------------------------------------------------------------------------
  [[nodiscard]] bool has_room(const connection& c, std::size_t entries = 1) const noexcept {
    return c.room() >= entries && under_way_ + entries <= under_way_max_;
  }
  /// Nothing can be posted there now.
  [[nodiscard]] bool is_blocked(const connection& c, std::size_t entries = 1) noexcept {
    if (queued_.count != 0 && queued_.to == &c && !post_queued()) return true;
    return c.stages != 0 || !has_room(c, entries);
  }
  bool signals_write(connection& c, bool must, std::uint32_t count) const noexcept;
  [[nodiscard]] bool signals_silent(const connection& c) const noexcept;
  status post(connection& c, send_request& o) noexcept;
  status transfer_pieces(int peer, slices local, std::span<const fabric::remote_slice> remote,
                         const send_request& like) noexcept;
  status post_chain(connection& c, std::span<send_request> all) noexcept;
  bool post_list(connection& c, std::span<send_request> all) noexcept;
  void undo(send_request& o) noexcept;
  status transfer(int peer, slices local, send_request& o) noexcept;
  status choose_buffer(const connection& c, slices local, std::size_t bytes, send_request& o) noexcept;
  bool describe_local(slices local, send_request& o) noexcept;
  bool borrow(std::size_t bytes, send_request& o) noexcept;
  bool lease(const fabric::local_slice& local, send_request& o) noexcept;
  bool lease_list(slices local, send_request& o) noexcept;
  status post_message(connection& c, send_request& o) noexcept;
  status send_again(connection& c) noexcept;
  void go_on_with_unsent() noexcept;
  status atomic(int peer, const fabric::region_key& region, std::uint64_t address, send_request& o, std::uint64_t& old,
                fabric::posting when) noexcept;
  status stage(connection& c, slices local, const send_request& o) noexcept;
  void go_on_with_stages() noexcept;
  bool post_stage(std::uint64_t id, bounced& s) noexcept;
  void ask_for_tails() noexcept;

  // ---- what found no room (verbs_queued.cpp) ----------------------------------------------------------------
  [[nodiscard]] std::uint32_t chain_of(const connection& c) const noexcept;
  [[nodiscard]] bool queues(const connection& c, slices local, const send_request& o) const noexcept;
  status queue(connection& c, const fabric::local_slice& local, const send_request& o) noexcept;
  [[nodiscard]] bool chains(const connection& c, fabric::posting when) noexcept;
  status add_to_chain(connection& c, const send_request& o, fabric::posting when) noexcept;
  bool post_queued() noexcept;
  void go_on_with_queued() noexcept;
  void end_queued(const connection& c, status result, fabric::sink& to) noexcept;

  // ---- what comes -------------------------------------------------------------------------------------------
  unsigned fetch() noexcept;
  void take(const ibv_wc& done, fabric::sink& to) noexcept;
  void take_receive(const ibv_wc& done, fabric::sink& to) noexcept;
  static bool is_over(const connection& c, connection_state state, const ibv_wc& done) noexcept;
  void take_sent(const ibv_wc& done, fabric::sink& to) noexcept;
  void abandon_broken(fabric::sink& to) noexcept;
  void abandon(connection& c, status result, fabric::sink& to) noexcept;
  void stop_stage(connection& c) noexcept;
  void resolve_doubts(fabric::sink& to) noexcept;
  void lose(const connection& c, fabric::sink& to) noexcept;
  void end_doubtful(connection& c, status result, fabric::sink& to) noexcept;
  void end(const completion_action& w, status result, fabric::sink& to) noexcept;
  void end_stage(std::uint64_t id, status result, fabric::sink& to) noexcept;

  // ---- the bulk channel (verbs_bulk.cpp) --------------------------------------------------------------------
  status add_bulk(int peer, slices local, std::uint64_t token, bool receive) noexcept;
  status bulk_with(int peer, connection*& c) noexcept;
  bool describe(slices local, bulk_entry& entry) noexcept;
  void list_bulk(connection& c) noexcept;
  void post_bulk(connection& c) noexcept;
  [[nodiscard]] static bool is_bulk(std::uint64_t label) noexcept;
  void take_bulk(const ibv_wc& done, fabric::sink& to) noexcept;
  void end_bulk(const bulk_entry& entry, status result, fabric::sink& to, std::uint64_t bytes = 0) noexcept;
  void release(const bulk_entry& entry) noexcept;
  void end_doubtful_bulk(connection& c, bool dead, fabric::sink& to) noexcept;
  void abandon_bulk(connection& c, fabric::sink& to) noexcept;
  void end_all_bulk(connection& c, fabric::sink& to) noexcept;
  void forget_queue(bulk_channel& b) noexcept;
  void go_on_with_bulk(fabric::sink& to) noexcept;
  bool needs_no_more(connection& c, fabric::sink& to) noexcept;
  void resolve_bulk_doubts(connection& c, fabric::sink& to) noexcept;
  void flow_again(connection& c, fabric::sink& to) noexcept;
  void drop_bulk(bulk_channel& b) noexcept;

  std::unique_ptr<adapter> device_;
  const int rank_;
  const int size_;
  const std::size_t packet_bytes_;
  fabric::capabilities caps_;
  fabric::directory* directory_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completions_ = nullptr;
  int events_ = -1;  ///< epoll set of the channel and the connection manager's news
  std::unique_ptr<receive_queue> receives_;
  std::unique_ptr<buffer_pool> buffers_;  ///< of a message's size
  std::unique_ptr<buffer_pool> words_;    ///< results of atomics
  std::unique_ptr<connection_manager> manager_;
  std::unique_ptr<memory_regions> memory_;
  std::unique_ptr<registration_cache> cache_;  ///< of the program's memory that is sent from and received into
  std::unordered_map<int, connection*> by_peer_;
  connection* last_peer_ = nullptr;  ///< the one that was used last
  std::unordered_map<std::uint32_t, connection*> by_queue_pair_;
  std::vector<connection*> by_index_;
  std::vector<connection*> tails_;    ///< connections with entries that nobody will tell us the end of
  std::vector<connection*> doubted_;  ///< those with operations of which it is not known why they failed
  std::vector<connection*> unsent_;   ///< those with messages to send again
  std::unordered_map<int, connection*> bulk_by_peer_;
  std::vector<connection*> bulk_waiting_;  ///< bulk channels with something that is not posted
  std::uint32_t bulk_sends_ = 0;           ///< that are not over
  std::unordered_map<std::uint64_t, bounced> stages_;
  std::uint64_t next_stage_ = 1;
  std::uint32_t under_way_ = 0;         ///< entries posted and not over, of all connections
  std::uint32_t under_way_max_ = 0;     ///< less when bulk receives, which have completions too, are posted
  std::array<send_request, 16> chain_;  ///< entries that are posted together
  queued_transfers queued_;
  std::array<ibv_wc, 32> fetched_;
  unsigned fetched_first_ = 0, fetched_count_ = 0;
  std::uint32_t breaks_seen_ = 0;
  std::array<std::uint64_t, 8> posted_{};  ///< entries, by operation
  std::uint64_t tail_writes_ = 0;          ///< of these, empty ones
  std::uint64_t word_writes_ = 0;          ///< of these, silent ones
  std::uint64_t lists_ = 0;                ///< calls that posted several entries
  std::uint64_t listed_ = 0;               ///< the entries of these
  std::uint64_t completions_taken_ = 0;    ///< each speaks for one entry or several
  bool armed_ = false;
};

}  // namespace rma::verbs

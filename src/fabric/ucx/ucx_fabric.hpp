// SPDX-License-Identifier: Apache-2.0
/// \file
/// The fabric of all transports of UCX (TCP, shared memory, other networks), on its UCP layer.
///
/// Where UCX has puts and gets of its own, a write's completion means that it is placed: a flush of the endpoint
/// completes all writes that were posted between two polls. UCX guarantees no order between operations, so that a read
/// or an atomic waits (`retry_queue_full`) until earlier writes to the same peer are placed; messages do not wait
/// (capabilities). Where it has only messages, all operations are made of these (messaged/messaged_fabric.hpp).
///
/// UCX emulates operations that a transport lacks at the target, which must be inside the library for them; UCX does
/// not say which these are. So this fabric is never `one_sided`.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/messaged/messaged_fabric.hpp"
#include "fabric/ucx/connection.hpp"
#include "fabric/ucx/library.hpp"

namespace rma::ucx {

class ucx_fabric final : public messaged::messaged_fabric {
 public:
  /// Throws Error(unreachable).
  ucx_fabric(int rank, int size);
  ~ucx_fabric() override;

  /// The address that other ranks connect to, to be published.
  [[nodiscard]] std::string address() const;

  status register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept override;
  void deregister_region(const fabric::region_key& key) noexcept override;

  status write(int peer, slices from, const fabric::region_key& region, std::span<const fabric::remote_slice> to,
               std::uint64_t token, fabric::write_flags how = {}) noexcept override;
  status read(int peer, slices to, const fabric::region_key& region, std::span<const fabric::remote_slice> from,
              std::uint64_t token) noexcept override;
  status fetch_add(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t operand,
                   std::uint64_t& old, std::uint64_t token,
                   fabric::posting when = fabric::posting::now) noexcept override;
  status compare_swap(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t expected,
                      std::uint64_t desired, std::uint64_t& old, std::uint64_t token,
                      fabric::posting when = fabric::posting::now) noexcept override;
  status send_bulk(int, slices, std::uint64_t) noexcept override { return status::not_supported; }
  status post_bulk_receive(int, slices, std::uint64_t) noexcept override { return status::not_supported; }

  [[nodiscard]] int event_fd() const noexcept override { return library_.event_fd(); }
  bool pending() noexcept override;
  void counts(const std::function<void(std::string_view, std::uint64_t)>& add) const override;
  std::string route(int peer) override;

 private:
  /// The header of every message.
  struct envelope {
    std::uint32_t source;
    std::uint16_t kind;
    std::uint16_t bytes;  ///< with this header; the next message follows
  };
  static_assert(batch_bytes <= 0xffff);
  enum class key_kind : std::uint16_t { request = messaged::first_line_kind, give, count_ };
  struct registered {
    ucp_mem_h memory;
    std::vector<std::byte> packed;  ///< the packed remote key
  };

  // ---- the line ---------------------------------------------------------------------------------------------
  [[nodiscard]] std::unique_ptr<messaged::peer> make_peer(int rank) override {
    return std::make_unique<connection>(*this, rank);
  }
  status connect(messaged::peer& p) noexcept override;
  [[nodiscard]] bool can_answer(messaged::peer& p) noexcept override;
  [[nodiscard]] bool has_room(messaged::peer& p) noexcept override;
  [[nodiscard]] std::byte* room_for(messaged::peer& p, std::uint16_t kind, std::size_t bytes) noexcept override;
  void send_batch(messaged::peer& p) noexcept override;
  void transmit_straight(messaged::peer&, std::uint16_t, std::span<const std::byte>, slices,
                         std::size_t) noexcept override {}  // UCX copies, or has puts of its own
  unsigned look() noexcept override;
  [[nodiscard]] bool progress() noexcept override;
  void take_line_message(messaged::peer& p, std::uint16_t kind, std::span<const std::byte> payload) noexcept override;
  void distrust(messaged::peer&) noexcept override {}
  void drop(messaged::peer& p) noexcept override;
  [[nodiscard]] bool all_sent() noexcept override { return true; }  // batches count as outstanding
  void start_flush(messaged::peer& p) noexcept override;

  // ---- connections (ucx_fabric.cpp) -------------------------------------------------------------------------
  status key_of(connection& c, const fabric::region_key& region, ucp_rkey_h& key) noexcept;
  void drop_keys(connection& c) noexcept;
  void give_key(connection& c, std::span<const std::byte> asked) noexcept;
  void take_key(connection& c, std::span<const std::byte> given) noexcept;
  void answer_strangers() noexcept;
  ucs_status_ptr_t close(connection& c, std::uint32_t flags) noexcept;
  void close_all(std::int64_t until_ns) noexcept;
  static void on_error(void* c, ucp_ep_h endpoint, ucs_status_t why) noexcept;

  // ---- data path (ucx_datapath.cpp) -------------------------------------------------------------------------
  operation& new_operation(connection& c, std::uint64_t token) noexcept;
  outgoing& new_batch(connection& c) noexcept;
  unsigned progress_worker() noexcept;
  void end_piece(operation& o, ucs_status_t result) noexcept;
  void end_operation(operation& o) noexcept;
  void tell(operation& o, status result) noexcept;
  void tell_immediate(connection& c, std::uint32_t immediate) noexcept;
  void uncount(connection& c) noexcept;
  bool posted(operation& o, ucs_status_ptr_t request) noexcept;
  status atomic(int peer, const fabric::region_key& region, std::uint64_t address, ucp_atomic_op_t what,
                std::uint64_t operand, std::uint64_t& old, std::uint64_t token) noexcept;
  status ready(int peer, const fabric::region_key& region, connection*& c, ucp_rkey_h& key) noexcept;
  status ready_behind_writes(int peer, const fabric::region_key& region, connection*& c, ucp_rkey_h& key) noexcept;
  void take_messages(std::span<const std::byte> batch) noexcept;
  void take_message(connection& c, std::uint16_t kind, std::span<const std::byte> payload) noexcept;
  static void on_operation(void* request, ucs_status_t result, void* o) noexcept;
  static void on_put(void* request, ucs_status_t result, void* c) noexcept;
  static void on_sent(void* request, ucs_status_t result, void* message) noexcept;
  static ucs_status_t on_active_message(void* self, const void* header, std::size_t header_bytes, void* data,
                                        std::size_t bytes, const ucp_am_recv_param_t* how) noexcept;

  std::unordered_map<std::uint64_t, registered> registered_;  ///< regions of this rank, by key
  std::vector<connection*> strangers_;                        ///< peers that have sent messages before this rank has
  std::deque<std::unique_ptr<operation>> operations_;
  std::deque<std::unique_ptr<outgoing>> outgoing_;
  operation* free_operation_ = nullptr;
  outgoing* free_outgoing_ = nullptr;
  std::uint64_t flushes_ = 0, endpoints_ = 0, key_exchanges_ = 0;
  bool by_messages_ = false;  ///< puts, gets and atomics
  library library_;           ///< destroyed first: its outstanding requests end then, and use the members above
  const calls& ucx_ = library_.ucx();
};

/// The transports in UCX's description of an endpoint, each once: "tcp/eth0 self/memory".
std::string transports_in(std::string_view text);

}  // namespace rma::ucx

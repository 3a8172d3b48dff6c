// SPDX-License-Identifier: Apache-2.0
/// \file
/// The fabric of everything that UCX reaches (TCP, shared memory, other networks), by its UCP layer.
///
/// A write's completion says that it is placed: writes are ended by a flush of the endpoint, one for all that were
/// posted between two polls. UCX promises no order between what it carries, so that a read or an atomic waits
/// (`retry_queue_full`) until earlier writes to the same peer are placed; messages do not wait (capabilities).
///
/// UCX emulates what a transport cannot do at the target, which therefore must be inside the library; it does not say
/// where. So this fabric is never `one_sided`.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/ucx/connection.hpp"
#include "fabric/ucx/library.hpp"

namespace rma::ucx {

class ucx_fabric final : public fabric::network, public fabric::liveness, public fabric::facts {
  using slices = std::span<const fabric::local_slice>;

 public:
  /// Throws Error(unreachable).
  ucx_fabric(int rank, int size);
  ~ucx_fabric() override;

  /// Where others find this rank: to be published.
  [[nodiscard]] std::string address() const;

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
  status send_bulk(int, slices, std::uint64_t) noexcept override { return status::not_supported; }
  status post_bulk_receive(int, slices, std::uint64_t) noexcept override { return status::not_supported; }

  /// Asks `job` how peers are reached; before anything is posted.
  void use(fabric::directory& job) noexcept { directory_ = &job; }
  void forget(int peer) noexcept override;
  [[nodiscard]] int event_fd() const noexcept override { return library_.event_fd(); }
  bool pending() noexcept override;
  bool quiet() noexcept override;
  bool expects_goodbye(int peer) noexcept override;
  unsigned poll(fabric::sink& to, unsigned limit) noexcept override;
  void counts(const std::function<void(std::string_view, std::uint64_t)>& add) const override;
  std::string route(int peer) override;

 private:
  /// Messages of the fabric's own.
  enum class own_kind : std::uint16_t {
    goodbye,
    understood,
    ask_key,
    give_key,
    immediate,
    put,
    ask_placed,  ///< whether all puts before it went well
    ask_get,
    give_get,
    ask_atomic,
    result,  ///< of an atomic, and of `ask_placed`
    count_
  };
  /// In front of every message.
  struct envelope {
    std::uint32_t source;
    std::uint16_t kind;
    std::uint16_t bytes;  ///< with this; what follows is the next message
  };
  static_assert(batch_bytes <= 0xffff);
  /// Where the data of a put made of messages go, which follow.
  struct placement {
    std::uint64_t key = 0;
    std::uint64_t address = 0;
  };
  /// What a get or an atomic made of messages says; the get's data come back behind its `id`.
  struct remote_request {
    std::uint64_t id = 0;  ///< of the operation at its origin, which the answer repeats
    std::uint64_t key = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t operand = 0;  ///< added, or compared with
    std::uint64_t desired = 0;
    std::uint64_t swap = 0;  ///< 0: add
  };
  struct answer {
    std::uint64_t id = 0;
    std::uint64_t found = 0;
    status result = status::done;
    std::uint8_t unused[7] = {};
  };
  struct registered {
    ucp_mem_h memory;
    std::vector<std::byte> packed;  ///< what a peer needs
    std::uint64_t address;
    std::uint64_t bytes;
  };
  struct ended {
    std::uint64_t token;
    status result;
  };
  struct arrival {
    int source;
    std::uint16_t kind;
    std::vector<std::byte> bytes;
  };
  struct own_message {
    int peer;
    own_kind kind;
    std::vector<std::byte> bytes;
  };

  // ---- connections (ucx_fabric.cpp) -------------------------------------------------------------------------
  connection& known(int peer) noexcept;
  status reach(int peer, connection*& c) noexcept;
  status connect(connection& c) noexcept;
  status key_of(connection& c, const fabric::region_key& region, ucp_rkey_h& key) noexcept;
  void drop_keys(connection& c) noexcept;
  void give_key(int peer, std::span<const std::byte> asked) noexcept;
  void take_key(connection& c, std::span<const std::byte> given) noexcept;
  void take_own(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept;
  void send_own(int peer, own_kind kind, std::span<const std::byte> front, std::span<const std::byte> behind = {},
                departure when = departure::now) noexcept;
  status transmit_own(int peer, own_kind kind, std::span<const std::byte> front, std::span<const std::byte> behind,
                      departure when) noexcept;
  void send_waiting() noexcept;
  void take_deaths() noexcept;
  void abandon(connection& c) noexcept;
  void doubt(connection& c) noexcept;
  [[nodiscard]] bool doubt_is_over(const connection& c) const noexcept;
  void resolve_doubts(fabric::sink& to) noexcept;
  void answer_strangers() noexcept;
  ucs_status_ptr_t close(connection& c, std::uint32_t flags) noexcept;
  void say_goodbye() noexcept;
  void close_all(std::int64_t until_ns) noexcept;
  template <class Over>
  void progress_until(std::int64_t until_ns, Over over) noexcept;
  void answer_leavers() noexcept;
  static void on_error(void* c, ucp_ep_h endpoint, ucs_status_t why) noexcept;

  // ---- data path (ucx_datapath.cpp; what is made of messages: ucx_messages.cpp) ------------------------------
  operation& new_operation(connection& c, std::uint64_t token) noexcept;
  outgoing& new_batch(connection& c) noexcept;
  std::byte* begin_message(connection& c, std::uint16_t kind, std::size_t bytes) noexcept;
  void end_message(connection& c, departure when) noexcept;
  void send_batch(connection& c) noexcept;
  void send_batches() noexcept;
  unsigned progress() noexcept;
  void end_piece(operation& o, ucs_status_t result) noexcept;
  void end(operation& o) noexcept;
  void tell(operation& o, status result) noexcept;
  void uncount(connection& c) noexcept;
  bool posted(operation& o, ucs_status_ptr_t request) noexcept;
  status atomic(int peer, const fabric::region_key& region, std::uint64_t address, ucp_atomic_op_t what,
                std::uint64_t operand, std::uint64_t& old, std::uint64_t token) noexcept;
  status ready(int peer, const fabric::region_key& region, connection*& c, ucp_rkey_h& key) noexcept;
  status ready_behind_writes(int peer, const fabric::region_key& region, connection*& c, ucp_rkey_h& key) noexcept;
  status put(connection& c, slices from, ucp_rkey_h key, std::uint64_t to) noexcept;
  status transmit(connection& c, std::uint16_t kind, std::span<const std::byte> header,
                  std::span<const std::byte> payload, departure when = departure::now) noexcept;
  status reach_by_messages(int peer, connection*& c) noexcept;
  status put_by_messages(connection& c, slices from, const fabric::region_key& region, std::uint64_t to) noexcept;
  status get_by_messages(connection& c, slices to, const fabric::region_key& region, std::uint64_t from,
                         std::uint64_t token) noexcept;
  status atomic_by_messages(connection& c, remote_request what, std::uint64_t& old, std::uint64_t token) noexcept;
  void ask_placed(operation& o) noexcept;
  std::uint64_t expect_answer(operation& o) noexcept;
  [[nodiscard]] operation* asked(const connection& c, std::uint64_t id) noexcept;
  void take_put(connection& c, std::span<const std::byte> payload) noexcept;
  void take_order(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept;
  void take_answer(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept;
  void end_asked(connection& c) noexcept;
  [[nodiscard]] std::byte* own_memory(std::uint64_t key, std::uint64_t address, std::uint64_t bytes) noexcept;
  void list(connection& c) noexcept;
  void start_flush(connection& c) noexcept;
  void start_flushes() noexcept;
  void take_messages(std::span<const std::byte> batch) noexcept;
  void take_message(connection& c, std::uint16_t kind, std::span<const std::byte> payload) noexcept;
  void hand(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept;
  void hand_on(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept;
  void hand_arrivals() noexcept;
  static void on_operation(void* request, ucs_status_t result, void* o) noexcept;
  static void on_put(void* request, ucs_status_t result, void* c) noexcept;
  static void on_sent(void* request, ucs_status_t result, void* message) noexcept;
  static ucs_status_t on_active_message(void* self, const void* header, std::size_t header_bytes, void* data,
                                        std::size_t bytes, const ucp_am_recv_param_t* how) noexcept;

  const int rank_;
  const int size_;
  fabric::capabilities caps_;
  fabric::directory* directory_ = nullptr;
  std::unordered_map<std::uint64_t, registered> regions_;  ///< of this rank, by key
  std::uint64_t next_key_ = 1;
  std::unordered_map<int, std::unique_ptr<connection>> by_peer_;
  connection* last_peer_ = nullptr;     ///< the one that was used last
  std::vector<connection*> unplaced_;   ///< with unflushed writes
  std::vector<connection*> broken_;     ///< nobody has been told yet
  std::vector<connection*> strangers_;  ///< have sent something before anything was sent there
  std::vector<connection*> leavers_;    ///< have said goodbye, and still serve this rank
  std::vector<ended> ended_;            ///< for the next poll
  std::vector<ended> handing_;
  std::deque<arrival> arrivals_;  ///< messages that came while none could be handed on
  std::deque<own_message> waiting_;
  std::vector<connection*> batches_;  ///< with messages that have not left, in the order of the first
  std::uint64_t questions_ = 0;       ///< that other ranks were asked
  std::deque<std::unique_ptr<operation>> operations_;
  std::deque<std::unique_ptr<outgoing>> outgoing_;
  operation* free_operation_ = nullptr;
  outgoing* free_outgoing_ = nullptr;
  std::uint32_t under_way_ = 0;  ///< requests of UCX that have not ended
  fabric::sink* sink_ = nullptr;
  bool handing_on_ = false;
  unsigned handed_ = 0, handed_max_ = 0;
  std::mutex deaths_lock_;
  std::vector<int> deaths_;
  std::atomic<bool> has_deaths_ = false;
  std::uint64_t puts_ = 0, gets_ = 0, atomics_ = 0, messages_ = 0, batches_sent_ = 0, flushes_ = 0, endpoints_ = 0,
                key_exchanges_ = 0;
  bool by_messages_ = false;  ///< puts, gets and atomics
  library library_;           ///< goes first: what it still has under way ends then, with calls of the above
  const calls& ucx_ = library_.ucx();
};

/// The transports that UCX's description of an endpoint names, each once: "tcp/eth0 self/memory".
std::string transports_in(std::string_view text);

}  // namespace rma::ucx

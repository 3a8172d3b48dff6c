// SPDX-License-Identifier: Apache-2.0
/// \file
/// The fabric of hosts that have nothing but TCP: one connection for each pair of ranks that has something to say, made
/// at first use. Puts, gets and atomics are messages (wire.hpp), which the target takes when it is inside the library.
///
/// - What small messages say travels together: messages made between two looks at the network are one batch.
/// - Large data go from where they are to where they belong: the kernel takes them from the origin's memory behind the
///   batch, and puts what it receives into the target's. Only what it does not take at once is copied.
/// - The connections that something came from last are asked directly whether there is more; all others by one question
///   to the kernel (epoll), now and then. Directly saves a sixth of a small message's time.
/// - Who asks for much is held back where the question is made (asked_bytes_max), so that answers always go out and two
///   ranks never wait for each other with full connections.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/tcp/connection.hpp"
#include "fabric/tcp/greeting.hpp"

namespace rma::tcp {

/// The key of the job's store under which a rank's address stands.
std::string address_key(int rank);

struct start {
  int rank = 0;
  int size = 1;
  std::string host;             ///< of this rank: an address that the others reach it by
  std::string key;              ///< of the job
  int peer_timeout_ms = 10000;  ///< a host that is silent for so long is given up
  int stranger_ms = 10000;      ///< so long may take who connects to say who it is
};

class tcp_fabric final : public fabric::network, public fabric::liveness, public fabric::facts {
  using slices = std::span<const fabric::local_slice>;

 public:
  /// Throws Error(unreachable) if it cannot listen.
  explicit tcp_fabric(start how);
  ~tcp_fabric() override;

  /// Where others find this rank: to be published.
  [[nodiscard]] std::string address() const { return boot::to_text(where_); }

  [[nodiscard]] const fabric::capabilities& caps() const noexcept override { return caps_; }
  [[nodiscard]] bool reaches(int peer) const noexcept override { return peer >= 0 && peer < how_.size; }

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
  status send_bulk(int peer, slices from, std::uint64_t token) noexcept override;
  status post_bulk_receive(int peer, slices to, std::uint64_t token) noexcept override;

  /// Asks `job` how peers are reached; before anything is posted.
  void use(fabric::directory& job) noexcept { directory_ = &job; }
  void forget(int peer) noexcept override;
  [[nodiscard]] int event_fd() const noexcept override { return events_.get(); }
  bool pending() noexcept override;
  bool quiet() noexcept override;
  bool expects_goodbye(int peer) noexcept override;
  unsigned poll(fabric::sink& to, unsigned limit) noexcept override;
  void counts(const std::function<void(std::string_view, std::uint64_t)>& add) const override;
  std::string route(int peer) override;

 private:
  struct registered {
    std::uint64_t address, bytes;
  };
  struct ended {
    std::uint64_t token;
    status result;
    std::uint64_t bytes;
  };
  struct arrival {
    std::uint16_t kind;
    std::vector<std::byte> bytes;
  };
  enum class departure : std::uint8_t { now, soon };

  // ---- connections (tcp_fabric.cpp) -------------------------------------------------------------------------
  connection& known(int peer) noexcept;
  status reach(int peer, connection*& c) noexcept;
  status connect(connection& c) noexcept;
  void retry_or_doubt(connection& c) noexcept;
  void wait_for_descriptors() noexcept;
  void try_again() noexcept;
  void open(connection& c, boot::unique_fd line) noexcept;
  void close(connection& c) noexcept;
  void lose(connection& c) noexcept;
  void lose_the_silent() noexcept;
  void accept_all() noexcept;
  void step_greeting(int fd) noexcept;
  bool welcome(greeting& g) noexcept;
  void drop_own_attempt(int peer) noexcept;
  [[nodiscard]] std::int64_t greeted_until_ns() const noexcept;
  void drop_eldest_stranger() noexcept;
  void expire_strangers() noexcept;
  bool watch(int fd, std::uint32_t what, bool is_new) noexcept;
  void watch_room(connection& c, bool on) noexcept;
  void doubt(connection& c) noexcept;
  [[nodiscard]] bool doubt_is_over(const connection& c) const noexcept;
  void resolve_doubts(fabric::sink& to) noexcept;
  void abandon(connection& c) noexcept;
  void take_deaths() noexcept;
  void answer_leavers() noexcept;
  void say_goodbye() noexcept;
  template <class Over>
  void progress_until(std::int64_t until_ns, Over over) noexcept;

  // ---- what is posted (tcp_datapath.cpp) --------------------------------------------------------------------
  operation& new_operation() noexcept;
  void free(operation& o) noexcept;
  void ask(connection& c, operation& o) noexcept;
  void end_first(connection& c, status result) noexcept;
  [[nodiscard]] bool has_room(connection& c) noexcept;
  std::byte* begin_message(connection& c, std::uint16_t kind, std::size_t bytes) noexcept;
  void end_message(connection& c, departure when) noexcept;
  void transmit(connection& c, std::uint16_t kind, std::span<const std::byte> head, std::span<const std::byte> rest,
                departure when) noexcept;
  void transmit_data(connection& c, own_kind kind, std::span<const std::byte> head, slices data,
                     departure when) noexcept;
  void send_straight(connection& c, slices data, std::size_t bytes) noexcept;
  void flush(connection& c) noexcept;
  void flush_batches() noexcept;
  status write_here(slices from, const fabric::region_key& region, std::uint64_t to, std::uint64_t token) noexcept;
  status atomic(int peer, const question& asked, std::uint64_t& old, std::uint64_t token) noexcept;
  void start_flush(connection& c) noexcept;
  void start_flushes() noexcept;
  void put(connection& c, slices from, const fabric::region_key& region, std::uint64_t to,
           std::uint64_t token) noexcept;
  void end(std::uint64_t token, status result, std::uint64_t bytes = 0) noexcept {
    if (token != 0) ended_.push_back({token, result, bytes});
  }

  // ---- the bulk channel (tcp_bulk.cpp) ------------------------------------------------------------------------
  status bulk_with(int peer, slices list, connection*& c) noexcept;
  void send_granted(connection& c) noexcept;
  void match_own_bulk(connection& c) noexcept;
  bool place_bulk(connection& c, std::size_t bytes) noexcept;
  void end_bulk_receive(connection& c, status result, std::uint64_t bytes) noexcept;
  void take_bulk_message(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept;
  void abandon_bulk(connection& c) noexcept;

  // ---- what comes (tcp_receive.cpp) -------------------------------------------------------------------------
  unsigned look() noexcept;
  unsigned look_at_all() noexcept;
  bool receive(connection& c) noexcept;
  void take(connection& c) noexcept;
  bool take_message(connection& c, const front& f) noexcept;
  bool begin_landing(connection& c, const front& f) noexcept;
  bool place_put(connection& c, std::size_t bytes) noexcept;
  bool place_answer(connection& c, std::size_t bytes) noexcept;
  void land(connection& c, std::size_t bytes) noexcept;
  void take_own(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept;
  void take_question(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept;
  void take_result(connection& c, std::span<const std::byte> payload) noexcept;
  void hand_on(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept;
  void hand_arrivals() noexcept;
  void take_unread() noexcept;
  void heat(connection& c, std::size_t bytes) noexcept;
  [[nodiscard]] std::byte* own_memory(std::uint64_t key, std::uint64_t address, std::uint64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t apply(const question& asked, std::byte* at) noexcept;

  start how_;
  fabric::capabilities caps_;
  fabric::directory* directory_ = nullptr;
  boot::boot_address where_;
  boot::unique_fd listener_, events_;
  std::unordered_map<std::uint64_t, registered> regions_;  ///< of this rank, by key
  std::uint64_t next_key_ = 1;
  std::unordered_map<int, std::unique_ptr<connection>> by_peer_;
  std::unordered_map<int, connection*> by_line_;
  std::vector<std::unique_ptr<greeting>> greetings_;
  connection* last_peer_ = nullptr;     ///< the one that was used last
  std::array<connection*, 2> hot_{};    ///< something came from them last
  unsigned looks_ = 0;                  ///< since all were asked
  std::vector<connection*> unplaced_;   ///< with unflushed writes
  std::vector<connection*> batches_;    ///< with messages that have not left
  std::vector<connection*> unread_;     ///< with messages that nobody has looked at
  std::vector<connection*> broken_;     ///< in doubt
  std::vector<connection*> postponed_;  ///< without a descriptor
  std::vector<connection*> leavers_;    ///< have said goodbye, and still serve this rank
  std::int64_t ask_silence_at_ns_ = 0;  ///< when the lines are looked at again
  std::int64_t try_again_at_ns_ = 0;    ///< not 0: out of descriptors; when to try again
  bool has_complained_ = false;         ///< about that
  std::vector<ended> ended_, handing_;  ///< for the next poll
  std::deque<arrival> arrivals_;        ///< from this rank itself
  std::deque<std::unique_ptr<operation>> operations_;
  operation* free_operation_ = nullptr;
  std::uint32_t under_way_ = 0;  ///< questions to all peers
  std::uint32_t blocked_ = 0;    ///< connections that wait for room
  fabric::sink* sink_ = nullptr;
  unsigned handed_ = 0, handed_max_ = 0;
  std::mutex deaths_lock_;
  std::vector<int> deaths_;
  std::atomic<bool> has_deaths_ = false;
  std::uint64_t puts_ = 0, gets_ = 0, atomics_ = 0, messages_ = 0, batches_sent_ = 0, connections_ = 0, strangers_ = 0;
};

}  // namespace rma::tcp

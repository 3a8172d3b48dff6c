// SPDX-License-Identifier: Apache-2.0
/// \file
/// The fabric of hosts that have only TCP: one connection for each pair of communicating ranks, made at first use,
/// which carries messages (messaged/messaged_fabric.hpp).
///
/// - Large data are not copied by the library: the kernel reads them from the origin's memory after the batch, and
///   writes received data into the target's. Only data that it does not accept at once are copied.
/// - The connections of the last arrivals are read directly; all others are polled with one epoll call at intervals.
///   Direct reads save a sixth of a small message's time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/messaged/messaged_fabric.hpp"
#include "fabric/tcp/connection.hpp"
#include "fabric/tcp/greeting.hpp"

namespace rma::tcp {

/// The key of a rank's address in the job's store.
std::string address_key(int rank);

struct start {
  int rank = 0;
  int size = 1;
  std::string host;             ///< address by which the others reach this rank
  std::string key;              ///< key of the job
  int peer_timeout_ms = 10000;  ///< a host that is silent for so long counts as dead
  int stranger_ms = 10000;      ///< time for a connecting process to introduce itself
};

class tcp_fabric final : public messaged::messaged_fabric {
 public:
  /// Throws Error(unreachable) if it cannot listen.
  explicit tcp_fabric(start how);
  ~tcp_fabric() override;

  /// The address that other ranks connect to, to be published.
  [[nodiscard]] std::string address() const { return boot::to_text(where_); }

  void deregister_region(const fabric::region_key& key) noexcept override;
  status send_bulk(int peer, slices from, std::uint64_t token) noexcept override;
  status post_bulk_receive(int peer, slices to, std::uint64_t token) noexcept override;

  [[nodiscard]] int event_fd() const noexcept override { return events_.get(); }
  bool pending() noexcept override;
  bool quiet() noexcept override;
  void counts(const std::function<void(std::string_view, std::uint64_t)>& add) const override;
  std::string route(int peer) override;

 private:
  // ---- the line ---------------------------------------------------------------------------------------------
  [[nodiscard]] std::unique_ptr<messaged::peer> make_peer(int rank) override {
    return std::make_unique<connection>(rank);
  }
  status connect(messaged::peer& p) noexcept override;
  [[nodiscard]] bool can_answer(messaged::peer& p) noexcept override {
    return static_cast<bool>(connection_of(p).line);
  }
  [[nodiscard]] bool has_room(messaged::peer& p) noexcept override;
  [[nodiscard]] std::byte* room_for(messaged::peer& p, std::uint16_t kind, std::size_t bytes) noexcept override;
  void send_batch(messaged::peer& p) noexcept override;
  void transmit_straight(messaged::peer& p, std::uint16_t kind, std::span<const std::byte> head, slices data,
                         std::size_t bytes) noexcept override;
  unsigned look() noexcept override;
  [[nodiscard]] bool progress() noexcept override;
  void take_line_message(messaged::peer& p, std::uint16_t kind, std::span<const std::byte> payload) noexcept override;
  void distrust(messaged::peer& p) noexcept override { lose(connection_of(p)); }
  void drop(messaged::peer& p) noexcept override;
  [[nodiscard]] bool all_sent() noexcept override;

  // ---- connections (tcp_fabric.cpp) -------------------------------------------------------------------------
  connection& met_or_new(int peer) noexcept { return connection_of(known(peer)); }
  void retry_or_suspect(connection& c) noexcept;
  void wait_for_descriptors() noexcept;
  void try_again() noexcept;
  void open(connection& c, boot::unique_fd line) noexcept;
  void close(connection& c) noexcept;
  void lose(connection& c) noexcept;
  void lose_the_silent() noexcept;
  void accept_all() noexcept;
  void step_greeting(int fd) noexcept;
  bool accept(greeting& g) noexcept;
  void drop_own_attempt(int peer) noexcept;
  [[nodiscard]] std::int64_t greeted_until_ns() const noexcept;
  void drop_eldest_stranger() noexcept;
  void expire_strangers() noexcept;
  bool watch(int fd, std::uint32_t what, bool is_new) noexcept;
  void watch_room(connection& c, bool on) noexcept;

  // ---- sending (tcp_datapath.cpp) ---------------------------------------------------------------------------
  void send_straight(connection& c, slices data, std::size_t bytes) noexcept;
  void flush(connection& c) noexcept;

  // ---- the bulk channel (tcp_bulk.cpp) ------------------------------------------------------------------------
  status bulk_with(int peer, slices list, connection*& c) noexcept;
  void send_granted(connection& c) noexcept;
  void match_own_bulk(connection& c) noexcept;
  bool place_bulk(connection& c, std::size_t bytes) noexcept;
  void end_bulk_receive(connection& c, status result, std::uint64_t bytes) noexcept;
  void abandon_bulk(connection& c) noexcept;

  // ---- receiving (tcp_receive.cpp) --------------------------------------------------------------------------
  unsigned look_at_hot() noexcept;
  unsigned look_at_all() noexcept;
  bool receive(connection& c) noexcept;
  ssize_t read_line(connection& c, std::size_t& wanted) noexcept;
  void take(connection& c) noexcept;
  bool take_message(connection& c, const front& f) noexcept;
  bool begin_landing(connection& c, const front& f) noexcept;
  bool place_put(connection& c, std::size_t bytes) noexcept;
  bool place_answer(connection& c, std::size_t bytes) noexcept;
  void land(connection& c, std::size_t bytes) noexcept;
  void take_unread() noexcept;
  void heat(connection& c, std::size_t bytes) noexcept;

  start how_;
  boot::boot_address where_;
  boot::unique_fd listener_, events_;
  std::unordered_map<int, connection*> by_line_;
  std::vector<std::unique_ptr<greeting>> greetings_;
  std::array<connection*, 2> hot_{};    ///< connections of the last arrivals
  unsigned looks_ = 0;                  ///< since the last poll of all
  std::vector<connection*> unread_;     ///< with unprocessed messages
  std::vector<connection*> postponed_;  ///< without a descriptor
  std::int64_t ask_silence_at_ns_ = 0;  ///< time of the next check of the lines
  std::int64_t try_again_at_ns_ = 0;    ///< not 0: out of descriptors until this time
  bool has_complained_ = false;         ///< about missing descriptors
  std::uint32_t blocked_ = 0;           ///< connections that wait for room
  std::uint64_t connections_ = 0, strangers_ = 0;
};

}  // namespace rma::tcp

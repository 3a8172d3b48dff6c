// SPDX-License-Identifier: Apache-2.0
/// \file
/// The server of a job: key-value store, fence, abort and the news of deaths, for ranks that know the job key.
///
/// One poll() loop that never waits for any single connection. rmarun runs it in a thread, in tcp mode rank 0 does,
/// tests run several in one process:
///
///   server jobs({.size = 4, .key = random_hex(32)});   // listening, not yet answering
///   jobs.start();                                      // own thread; fork before this
///   join({.address = jobs.address(), .rank = 0, .size = 4, .key = ...});
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "boot/round.hpp"
#include "boot/socket.hpp"

struct pollfd;

namespace rma::boot {

struct server_options {
  int size = 1;
  std::string key;                   ///< job key, at least key_chars_min characters
  std::string address = "local://";  ///< "local://" takes a random name, "tcp://HOST:0" a free port
  int handshake_timeout_ms = 10000;  ///< time for a connection to prove the key
  int peer_timeout_ms = 10000;       ///< tcp: a connection that is silent for so long is taken for dead
  std::size_t strangers_max = 0;     ///< connections that have not proven the key; 0 means size + 64
};

/// A key shorter than this is a mistake: it could be guessed.
inline constexpr std::size_t key_chars_min = 16;

struct abort_news {
  int rank = -1;
  int code = 1;
  std::string message;  ///< one printable line
};

/// All calls are safe from any thread.
class server {
 public:
  /// Listens. Throws rma::Error(bad_boot).
  explicit server(const server_options& how);
  server(const server&) = delete;
  server& operator=(const server&) = delete;
  ~server();

  /// The ranks are given this as RMA_BOOT.
  [[nodiscard]] std::string address() const { return to_text(where_); }

  /// The address in numbers that it listens at; empty for local ones.
  [[nodiscard]] std::string bound() const { return own_address_of(listener_.get()); }

  /// Throws rma::Error(bad_boot) if there can be no thread.
  void start();
  /// Tells the ranks that the server ends in good order, and ends it. Idempotent.
  void stop();

  /// Takes in what `rank`, which has ended, had still sent.
  void read_pending(int rank);
  /// `rank` has ended. If it did not leave, that is a death and all others are told.
  void mark_dead(int rank);
  [[nodiscard]] rank_state state(int rank) const;
  /// `rank` was last seen doing this, for people.
  [[nodiscard]] std::string where(int rank) const;
  /// Ranks that died, first to become known first.
  [[nodiscard]] std::vector<int> deaths() const;
  [[nodiscard]] std::optional<abort_news> aborted() const;
  /// Readable from the first abort on.
  [[nodiscard]] int abort_fd() const noexcept { return abort_event_.get(); }

 private:
  struct connection;
  struct seated_round;

  void run();
  void wait_for_work(std::vector<pollfd>& polled);
  void serve(const std::vector<pollfd>& polled);
  void accept_all();
  void complain();
  void make_room();
  bool read_from(connection& from);
  void on_frame(connection& from, const frame& received);
  void on_hello(connection& from, const frame& received);
  void on_proof(connection& from, const frame& received);
  void on_member_frame(connection& from, const frame& received);
  void on_abort(const connection& from, const frame& received);
  void reject(connection& whom, const std::string& why);
  void admit(connection& newcomer);
  void unseat(connection& leaver);
  void drop_doomed();
  static void flush(connection& to);
  seated_round& round_at(std::size_t number);
  void tell_departures();
  void forget_old_rounds();
  void death_of(int rank);
  void wake_loop() const;

  const int size_;
  const std::string key_;
  const std::chrono::milliseconds handshake_timeout_;
  const int peer_timeout_ms_;
  const std::size_t strangers_max_;
  boot_address where_;
  unique_fd listener_;
  unique_fd wake_event_;  ///< another thread has changed something
  unique_fd abort_event_;

  mutable std::mutex mutex_;                              ///< guards all below
  std::vector<std::unique_ptr<connection>> connections_;  ///< added and removed by the loop only
  std::map<std::size_t, std::unique_ptr<seated_round>> rounds_;
  std::vector<std::size_t> next_round_;  ///< per rank: how often it has left
  std::vector<bool> ended_;              ///< per rank: dead, also for rounds to come
  std::vector<int> deaths_;
  std::optional<abort_news> aborted_;
  boot_clock::time_point accept_again_{};  ///< set when the process is out of descriptors
  bool has_complained_ = false;            ///< about that
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rma::boot

// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank's connection to the server of its job, for local and tcp mode.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "boot/boot.hpp"
#include "boot/frame_link.hpp"
#include "boot/server.hpp"

namespace rma::boot {

/// How long the question waits for an answer, who holds up the start.
inline constexpr std::chrono::seconds ask_patience{1};

/// The job's server is in rank 0's process, not in rmarun.
inline bool rank_0_serves(const options& how) {
  return how.served_by_rank_0 || (!how.served_by_launcher && !how.address.starts_with("local://"));
}

class socket_client final : public client {
 public:
  /// `connected` has been welcomed and all ranks are here. `hosted` is the server if it lives in this process.
  socket_client(const options& how, frame_link connected, std::unique_ptr<server> hosted);
  ~socket_client() override = default;  // not left: to the job, this is a death

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] std::string_view key() const noexcept override { return key_; }
  [[nodiscard]] std::string host() const override { return own_address_of(link_.fd()); }
  [[nodiscard]] bool rank_0_serves() const noexcept override { return rank_0_serves_; }
  status put(std::string_view key, std::string_view value) override;
  status get(std::string_view key, std::string& value) override;
  status fence() override;
  void begin_step(std::string_view what, bool waits) noexcept override;
  [[nodiscard]] std::string late_ranks() override;
  void abort(int code, std::string_view message) noexcept override;
  void finalize() noexcept override;
  void report_death(int rank) noexcept override;
  [[nodiscard]] int event_fd() const noexcept override { return event_set_.get(); }
  status poll_events(std::vector<int>& died) override;
  void take_departures(std::vector<int>& left) override;

 private:
  status send(const std::string& frame_bytes, boot_clock::time_point deadline);
  status await_reply(frame& reply, boot_clock::time_point deadline);
  status request(const std::string& question, frame& reply);
  bool take_news(const frame& received);
  status lose();
  void ring();

  int rank_;
  int size_;
  std::string key_;
  std::chrono::milliseconds timeout_;
  bool rank_0_serves_;              ///< and no rmarun, which would print an abort's message
  std::unique_ptr<server> hosted_;  ///< outlives link_
  frame_link link_;
  unique_fd bell_;        ///< eventfd: news was taken in that poll_events has not told
  unique_fd event_set_;   ///< epoll set of link_ and bell_
  std::deque<int> died_;  ///< not told yet
  std::deque<int> left_;  ///< not told yet
  std::uint32_t deaths_told_ = 0;
  unsigned overdue_ = 0;          ///< answers that have not come in time, and may yet
  status broken_ = status::done;  ///< why no further call can work
  bool in_good_order_ = false;    ///< the server said good-bye, or this rank did
};

}  // namespace rma::boot

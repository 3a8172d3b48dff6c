// SPDX-License-Identifier: Apache-2.0
/// \file
/// Two progress contexts in one thread: a network of queues, surroundings whose time passes when somebody looks at it,
/// and a job that says what the test wants.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "channel/context.hpp"
#include "rma/config.hpp"
#include "rma/detail/word.hpp"

namespace rma::test {

class fake_network final : public fabric::network,
                           public fabric::liveness,
                           public fabric::facts,
                           public fabric::reservations {
 public:
  explicit fake_network(int rank, bool words = false) : network(*this, *this, this), rank_(rank) {
    caps_.words = words;
    caps_.name = "fake";
    caps_.message_bytes_max = 256;
  }
  void connect(int peer, fake_network& to) { peers_[peer] = &to; }
  /// Reads and writes any memory of this process, when it polls.
  void let_move() {
    caps_.polls = fabric::polled_end::both;
    caps_.write_means = fabric::write_completion::placed;
    caps_.messages_after_writes = true;
    moves_ = true;
  }
  unsigned failing = 0;       ///< so many of the next transfers end with an error
  bool fails_placed = false;  ///< those have moved their data all the same
  unsigned transfers = 0;

  std::size_t room = 4;  ///< messages of each sender that wait at a receiver, at most
  unsigned promises = 0;
  bool loses_words = false;
  std::set<int> unheard;  ///< ranks that may have said more than has arrived
  std::function<fabric::delivery_guarantee()> on_reserve;

  const fabric::capabilities& caps() const noexcept override { return caps_; }
  bool reaches(int peer) const noexcept override { return peers_.contains(peer); }
  fabric::delivery_guarantee reserve_delivery(int, std::size_t) noexcept override {
    return on_reserve ? on_reserve() : fabric::delivery_guarantee::none;
  }
  void promise_kept() noexcept { --promises; }
  bool owes_delivery() noexcept override { return promises != 0; }
  status register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept override {
    key = {reinterpret_cast<std::uint64_t>(at), bytes, 1};
    return caps_.words || moves_ ? status::done : status::not_supported;
  }
  void deregister_region(const fabric::region_key&) noexcept override {}
  status write(int, std::span<const fabric::local_slice> from, const fabric::region_key&,
               std::span<const fabric::remote_slice> to, std::uint64_t token,
               fabric::write_flags how = {}) noexcept override {
    if (how.kind == fabric::write_kind::immediate) return status::not_supported;
    if (how.kind == fabric::write_kind::silent) return write_word(from.front().at, to.front().address);
    return move(from.front().at, reinterpret_cast<void*>(to.front().address), to.front().bytes, token);
  }
  status read(int, std::span<const fabric::local_slice> to, const fabric::region_key&,
              std::span<const fabric::remote_slice> from, std::uint64_t token) noexcept override {
    return move(reinterpret_cast<void*>(from.front().address), to.front().at, from.front().bytes, token);
  }
  status fetch_add(int, const fabric::region_key&, std::uint64_t, std::uint64_t, std::uint64_t&, std::uint64_t,
                   fabric::posting) noexcept override {
    return status::not_supported;
  }
  status compare_swap(int, const fabric::region_key&, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t&,
                      std::uint64_t, fabric::posting) noexcept override {
    return status::not_supported;
  }
  status send(int peer, std::uint16_t kind, std::span<const std::byte> header,
              std::span<const std::byte> payload) noexcept override {
    auto& queue = peers_.at(peer)->incoming_[rank_];
    if (queue.size() >= room) return status::retry_queue_full;
    message m{kind, {header.begin(), header.end()}};
    m.bytes.insert(m.bytes.end(), payload.begin(), payload.end());
    queue.push_back(std::move(m));
    return status::done;
  }
  status send_bulk(int, std::span<const fabric::local_slice>, std::uint64_t) noexcept override {
    return status::not_supported;
  }
  /// Ends when the test says so.
  status post_bulk_receive(int, std::span<const fabric::local_slice>, std::uint64_t token) noexcept override {
    posted_.push_back(token);
    return status::posted;
  }
  void end_next(status result, std::uint64_t bytes) {
    ended_.push_back({posted_.front(), result, bytes});
    posted_.pop_front();
  }
  bool quiet() noexcept override { return true; }
  void forget(int) noexcept override {}
  bool expects_goodbye(int peer) noexcept override { return unheard.contains(peer); }
  bool pending() noexcept override {
    return !ended_.empty() || !moves_posted_.empty() ||
           std::ranges::any_of(incoming_, [](const auto& from) { return !from.second.empty(); });
  }
  unsigned poll(fabric::sink& to, unsigned limit) noexcept override {
    unsigned found = 0;
    for (; !moves_posted_.empty() && found < limit; ++found) {
      const moved m = moves_posted_.front();
      moves_posted_.pop_front();
      const bool fails = failing != 0;
      if (fails) --failing;
      if (!fails || fails_placed) std::memcpy(m.to, m.from, m.bytes);
      to.on_completion(m.token, fails ? status::transfer_failed : status::done, 0);
    }
    for (; !ended_.empty() && found < limit; ++found) {
      const ended e = ended_.front();
      ended_.pop_front();
      to.on_completion(e.token, e.result, e.bytes);
    }
    for (auto& [source, queue] : incoming_) {
      for (; !queue.empty() && found < limit; ++found) {
        const message m = std::move(queue.front());
        queue.pop_front();
        to.on_message(source, m.kind, m.bytes);
      }
    }
    return found;
  }

 private:
  /// All ranks are in one process.
  status write_word(const void* from, std::uint64_t address) noexcept {
    if (!caps_.words) return status::not_supported;
    std::uint64_t value = 0;
    std::memcpy(&value, from, sizeof value);
    if (!loses_words) reinterpret_cast<detail::word64*>(address)->store(value);
    return status::done;
  }
  status move(const void* from, void* to, std::size_t bytes, std::uint64_t token) {
    if (!moves_) return status::not_supported;
    ++transfers;
    moves_posted_.push_back({from, to, bytes, token});
    return status::posted;
  }
  struct moved {
    const void* from;
    void* to;
    std::size_t bytes;
    std::uint64_t token;
  };
  struct message {
    std::uint16_t kind;
    std::vector<std::byte> bytes;
  };
  struct ended {
    std::uint64_t token;
    status result;
    std::uint64_t bytes;
  };
  int rank_;
  fabric::capabilities caps_;
  std::map<int, fake_network*> peers_;
  std::deque<std::uint64_t> posted_;  ///< tokens of bulk receives
  std::deque<ended> ended_;
  std::deque<moved> moves_posted_;
  bool moves_ = false;
  std::map<int, std::deque<message>> incoming_;
};

class fake_platform final : public detail::platform {
 public:
  /// `few`: cores, fewer than the node's ranks; 0: enough.
  explicit fake_platform(unsigned few = 0) noexcept : cores(few) {}

  unsigned cores;
  std::function<void()> on_arm, on_sleep, on_yield, on_look;
  std::int64_t look_ns = 1'000'000;  ///< that pass with each look at the clock
  std::vector<int> dying;
  std::set<int> left;
  int sleeps = 0, retracts = 0, rings = 0;
  bool is_inside = false;
  bool wakes = false;  ///< `on_sleep` lets the time pass

  std::int64_t now_ns() noexcept override { return now_ns_ += look_ns; }
  void pass(std::int64_t time_ns) noexcept { now_ns_ += time_ns; }
  std::int64_t peek_ns() const noexcept { return now_ns_; }
  void compute(std::int64_t) noexcept override {}
  void inside(bool yes) noexcept override { is_inside = yes; }
  void yield() noexcept override {
    if (on_yield) on_yield();
  }
  std::uint32_t arm(bool) noexcept override {
    if (on_arm) on_arm();
    return 1;
  }
  void sleep(std::uint32_t, std::int64_t timeout_ns) noexcept override {
    ++sleeps;
    if (!wakes) now_ns_ += timeout_ns;
    if (on_sleep) on_sleep();
  }
  void retract() noexcept override { ++retracts; }
  void ring(int) noexcept override { ++rings; }
  void look_for_deaths(std::vector<int>& died) noexcept override {
    if (on_look) on_look();
    died.insert(died.end(), dying.begin(), dying.end());
    dying.clear();
  }
  bool has_left(int rank) noexcept override { return left.contains(rank); }
  std::string why_waits(std::int64_t) const override { return "pass the test's time"; }
  detail::patience waits(std::int64_t spin_ns) const noexcept override {
    if (cores != 0) return {1, 16, 0, 64, cores};
    return {256, 16, spin_ns, 64, 0};
  }
  std::unique_ptr<detail::helper_thread> start(std::function<void()>) override { return nullptr; }

 private:
  std::int64_t now_ns_ = 1'000'000'000'000;
};

class fake_boot final : public boot::client {
 public:
  explicit fake_boot(int rank) : rank_(rank) {}
  std::vector<int> dying, reported;
  status job = status::done;

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return 2; }
  status put(std::string_view, std::string_view) override { return status::done; }
  status get(std::string_view, std::string&) override { return status::done; }
  status fence() override { return status::done; }
  void abort(int, std::string_view) noexcept override {}
  void finalize() noexcept override {}
  void report_death(int rank) noexcept override { reported.push_back(rank); }
  int event_fd() const noexcept override { return -1; }
  status poll_events(std::vector<int>& died) override {
    died.insert(died.end(), dying.begin(), dying.end());
    dying.clear();
    return job;
  }

 private:
  int rank_;
};

/// One rank.
struct fake_rank {
  explicit fake_rank(int rank, unsigned few_cores = 0, std::map<std::string, std::string> settings = {})
      : config(Config{.environment = false, .settings = std::move(settings)}),
        boot(rank),
        net(rank),
        around(few_cores),
        ctx(config, boot, net, around) {}

  detail::settings config;
  fake_boot boot;
  fake_network net;
  fake_platform around;
  detail::context ctx;
};

struct fake_pair {
  explicit fake_pair(const std::map<std::string, std::string>& settings = {}) : a(0, 0, settings), b(1, 0, settings) {
    a.net.connect(1, b.net);
    b.net.connect(0, a.net);
  }
  fake_rank a;
  fake_rank b;
};

}  // namespace rma::test

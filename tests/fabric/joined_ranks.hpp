// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several ranks' fabrics in one thread, joined by a directory that is a map.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "fabric/fabric.hpp"

namespace rma::test {

/// One rank: its fabric, and what it has been told.
struct job_member : fabric::sink {
  struct message {
    int source;
    std::uint16_t kind;
    std::vector<std::byte> bytes;
  };
  explicit job_member(fabric::network& its) : fabric(its) {}
  virtual ~job_member() = default;

  fabric::network& fabric;
  std::map<std::uint64_t, status> over;          ///< by token
  std::map<std::uint64_t, std::uint64_t> bytes;  ///< by token, as the completion says
  std::size_t completions = 0;                   ///< that have come, of whatever token
  std::vector<message> messages;
  std::vector<std::pair<int, std::uint32_t>> immediates;
  std::vector<int> broken;
  std::function<void(std::uint64_t, status)> at_completion;
  std::function<void(const message&)> at_message;
  std::function<void()> at_immediate;

  /// One of the fabric's counts.
  [[nodiscard]] std::uint64_t count(std::string_view name) const {
    std::uint64_t value = 0;
    fabric.as_facts().counts([&](std::string_view each, std::uint64_t n) { value = each == name ? n : value; });
    return value;
  }
  void on_completion(std::uint64_t token, status result, std::uint64_t got) noexcept override {
    ++completions;
    over[token] = result;
    bytes[token] = got;
    if (at_completion) at_completion(token, result);
  }
  void on_message(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept override {
    messages.push_back({source, kind, {payload.begin(), payload.end()}});
    if (at_message) at_message(messages.back());
  }
  void on_immediate(int source, std::uint32_t immediate) noexcept override {
    immediates.emplace_back(source, immediate);
    if (at_immediate) at_immediate();
  }
  void on_broken(int peer) noexcept override { broken.push_back(peer); }
};

/// A job, whichever its fabric is.
class fabric_job {
 public:
  fabric_job() = default;
  fabric_job(const fabric_job&) = delete;
  fabric_job& operator=(const fabric_job&) = delete;
  virtual ~fabric_job() = default;

  job_member& operator[](int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] const fabric::capabilities& caps() { return (*this)[0].fabric.caps(); }
  /// Sizes of a transfer at which this fabric does something else.
  [[nodiscard]] virtual std::vector<std::size_t> sizes_of_interest() const { return {}; }

  void poll_all() {
    for (auto& m : members_) {
      if (m != nullptr) m->fabric.poll(*m, 1000);
    }
  }
  /// Drives all ranks until `ready`; sleeps for their descriptors between two rounds. False after so many sleeps in
  /// which nothing came.
  bool until(const std::function<bool()>& ready, int idle_max = 100) {
    for (int idle = 0; idle < idle_max;) {
      poll_all();
      if (ready()) return true;
      if (!sleep()) ++idle;
    }
    return false;
  }
  /// Posts again while there is no room.
  status post(const std::function<status()>& call) {
    status s = status::retry_queue_full;
    (void)until([&] { return (s = call()) != status::retry_queue_full; });
    return s;
  }
  /// The same for an operation with this token: one that is over when the call returns counts as told of. True if it
  /// is over or under way.
  bool start(int rank, std::uint64_t token, const std::function<status()>& call) {
    const status s = post(call);
    if (s == status::done) (*this)[rank].on_completion(token, s, 0);
    return s == status::done || s == status::posted;
  }
  bool is_over(int rank, std::uint64_t token) {
    return until([&] { return (*this)[rank].over.contains(token); });
  }
  [[nodiscard]] bool are_quiet() {
    for (auto& m : members_) {
      if (m != nullptr && !m->fabric.as_liveness().quiet()) return false;
    }
    return true;
  }
  std::unique_ptr<job_member> take(int rank) { return std::move(members_[static_cast<std::size_t>(rank)]); }
  /// The rank goes without a word.
  void remove(int rank) { take(rank).reset(); }
  /// The rank leaves; the others go on meanwhile.
  virtual void leave(int rank) {
    std::atomic<bool> gone = false;
    std::thread leaver([&gone, who = take(rank)]() mutable {
      who.reset();
      gone = true;
    });
    (void)until([&] { return gone.load(); });
    leaver.join();
  }
  /// The others are told that the rank is dead.
  virtual void announce_death(int rank) {
    for (auto& m : members_) {
      if (m != nullptr && m.get() != members_[static_cast<std::size_t>(rank)].get())
        m->fabric.as_liveness().forget(rank);
    }
  }
  /// Why this job cannot run what it was asked to; empty if it can.
  std::string cannot;

 protected:
  /// Until something may have come. False if nothing has.
  virtual bool sleep() {
    bool news = false;
    std::vector<pollfd> all;
    for (auto& m : members_) {
      if (m == nullptr) continue;
      news = m->fabric.as_liveness().pending() || news;
      all.push_back({m->fabric.as_liveness().event_fd(), POLLIN, 0});
    }
    return news || ::poll(all.data(), all.size(), 100) != 0;
  }
  void add_member(std::unique_ptr<job_member> m) { members_.push_back(std::move(m)); }
  void remove_all() { members_.clear(); }

 private:
  std::vector<std::unique_ptr<job_member>> members_;
};

/// A member whose fabric is known.
template <class Fabric>
struct joined_rank final : job_member {
  explicit joined_rank(std::unique_ptr<Fabric> its) : job_member(*its), net(std::move(its)) {}
  std::unique_ptr<Fabric> net;
};

template <class Fabric>
class joined_ranks : public fabric_job, public fabric::directory {
 public:
  using member = joined_rank<Fabric>;

  member& operator[](int rank) { return static_cast<member&>(fabric_job::operator[](rank)); }

  status look_up(int, std::string_view key, std::string& value) noexcept override {
    const auto at = known_.find(std::string(key));
    if (at == known_.end()) return status::bad_argument;
    value = at->second;
    return status::done;
  }

 protected:
  /// The next rank, which the others find by `key`.
  void add(std::unique_ptr<Fabric> net, const std::string& key) {
    known_[key] = net->address();
    net->use(*this);
    add_member(std::make_unique<member>(std::move(net)));
  }

 private:
  std::map<std::string, std::string> known_;
};

inline std::vector<std::uint64_t> numbers(std::size_t count, std::uint64_t first) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// So many words of this rank's memory.
inline fabric::local_slice words_at(std::uint64_t* at, std::size_t count) { return {at, count * 8}; }

/// So many words of a region, from the first one given.
inline fabric::remote_slice words_in(const fabric::region_key& region, std::size_t first, std::size_t count) {
  return {region.address + 8 * first, 8 * count};
}

inline std::span<const std::byte> bytes_of(const std::uint64_t& word) { return std::as_bytes(std::span(&word, 1)); }

}  // namespace rma::test

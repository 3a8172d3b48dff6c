// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several ranks' fabrics in one thread, joined by a directory that is a map.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/fabric.hpp"

namespace rma::test {

/// One rank: its fabric, and what has come.
template <class Fabric>
struct joined_rank final : fabric::sink {
  struct message {
    int source;
    std::uint16_t kind;
    std::vector<std::byte> bytes;
  };
  std::unique_ptr<Fabric> net;
  std::map<std::uint64_t, status> over;          ///< by token
  std::map<std::uint64_t, std::uint64_t> bytes;  ///< by token, as the completion says
  std::vector<message> messages;
  std::vector<std::pair<int, std::uint32_t>> immediates;
  std::vector<int> broken;
  std::function<void()> at_immediate;

  /// One of the fabric's counts.
  [[nodiscard]] std::uint64_t count(std::string_view name) const {
    std::uint64_t value = 0;
    net->counts([&](std::string_view each, std::uint64_t n) { value = each == name ? n : value; });
    return value;
  }
  void on_completion(std::uint64_t token, status result, std::uint64_t got) noexcept override {
    over[token] = result;
    bytes[token] = got;
  }
  void on_message(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept override {
    messages.push_back({source, kind, {payload.begin(), payload.end()}});
  }
  void on_immediate(int source, std::uint32_t immediate) noexcept override {
    immediates.emplace_back(source, immediate);
    if (at_immediate) at_immediate();
  }
  void on_broken(int peer) noexcept override { broken.push_back(peer); }
};

template <class Fabric>
class joined_ranks : public fabric::directory {
 public:
  using member = joined_rank<Fabric>;

  member& operator[](int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }

  status look_up(int, std::string_view key, std::string& value) noexcept override {
    const auto at = known_.find(std::string(key));
    if (at == known_.end()) return status::bad_argument;
    value = at->second;
    return status::done;
  }

  void poll_all() {
    for (auto& m : members_) {
      if (m != nullptr) m->net->poll(*m, 1000);
    }
  }
  /// Drives all ranks until `ready`; sleeps for their descriptors between two rounds. False after so many sleeps in
  /// which nothing came.
  bool until(const std::function<bool()>& ready, int idle_max = 100) {
    for (int idle = 0; idle < idle_max;) {
      poll_all();
      if (ready()) return true;
      bool news = false;
      std::vector<pollfd> all;
      for (auto& m : members_) {
        if (m == nullptr) continue;
        news = m->net->pending() || news;
        all.push_back({m->net->event_fd(), POLLIN, 0});
      }
      if (!news && ::poll(all.data(), all.size(), 100) == 0) ++idle;
    }
    return false;
  }
  /// Posts again while there is no room.
  status post(const std::function<status()>& call) {
    status s = status::retry_queue_full;
    (void)until([&] { return (s = call()) != status::retry_queue_full; });
    return s;
  }
  std::unique_ptr<member> take(int rank) { return std::move(members_[static_cast<std::size_t>(rank)]); }
  /// The rank goes without a word.
  void remove(int rank) { take(rank).reset(); }

 protected:
  /// The next rank, which the others find by `key`.
  void add(std::unique_ptr<Fabric> net, const std::string& key) {
    known_[key] = net->address();
    net->use(*this);
    members_.push_back(std::make_unique<member>());
    members_.back()->net = std::move(net);
  }

 private:
  std::map<std::string, std::string> known_;
  std::vector<std::unique_ptr<member>> members_;
};

}  // namespace rma::test

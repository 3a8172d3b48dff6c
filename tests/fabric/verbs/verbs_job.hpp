// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several ranks' verbs fabrics in one thread: each its own adapter, joined by a directory that is a map.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/open.hpp"
#include "fabric/verbs/verbs_fabric.hpp"
#include "rma/error.hpp"

namespace rma::test {

inline constexpr const char* job_key = "00112233445566778899aabbccddeeff";

/// One rank: its fabric, and what has come.
struct verbs_member final : fabric::sink {
  struct message {
    int source;
    std::uint16_t kind;
    std::vector<std::byte> bytes;
  };
  std::unique_ptr<verbs::verbs_fabric> net;
  std::map<std::uint64_t, status> over;  ///< by token
  std::vector<message> messages;
  std::vector<std::pair<int, std::uint32_t>> immediates;
  std::vector<int> broken;

  void on_completion(std::uint64_t token, status result) noexcept override { over[token] = result; }
  void on_message(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept override {
    messages.push_back({source, kind, {payload.begin(), payload.end()}});
  }
  void on_immediate(int source, std::uint32_t immediate) noexcept override {
    immediates.emplace_back(source, immediate);
  }
  void on_broken(int peer) noexcept override { broken.push_back(peer); }
};

class verbs_job final : public fabric::directory {
 public:
  explicit verbs_job(int size) {
    for (int r = 0; r < size; ++r) {
      auto m = std::make_unique<verbs_member>();
      m->net =
          std::make_unique<verbs::verbs_fabric>(std::make_unique<verbs::adapter>(""), verbs::member{r, size, job_key});
      known_[verbs::address_key(r)] = m->net->address();
      m->net->use(*this);
      members_.push_back(std::move(m));
    }
  }

  verbs_member& operator[](int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }

  status look_up(std::string_view key, std::string& value) noexcept override {
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
  bool until(const std::function<bool()>& ready) {
    for (int idle = 0; idle < 100;) {
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
    (void)until([&] {
      s = call();
      return s != status::retry_queue_full;
    });
    return s;
  }
  /// The rank goes without a word.
  void remove(int rank) { members_[static_cast<std::size_t>(rank)] = nullptr; }

 private:
  std::map<std::string, std::string> known_;
  std::vector<std::unique_ptr<verbs_member>> members_;
};

/// Whether this machine has a device that the fabric can use; else says why not.
inline bool have_verbs(std::string& why_not) {
  try {
    (void)verbs::open("");
    return true;
  } catch (const Error& e) {
    why_not = e.what();
    return false;
  }
}

}  // namespace rma::test

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks as threads of the test. They return values; only the test itself asserts.
#pragma once

#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "boot/boot.hpp"
#include "boot/digest.hpp"
#include "boot/server.hpp"

namespace rma::boot::test {

inline options options_for(const server& jobs, int rank, int size, const std::string& key) {
  options how;
  how.address = jobs.address();
  how.rank = rank;
  how.size = size;
  how.key = key;
  how.timeout_ms = 20000;
  how.served_by_rank_0 = !jobs.address().starts_with("local://");  // by the test, to be exact
  return how;
}

/// A server and what its ranks need to know.
struct world {
  explicit world(int ranks, int handshake_timeout_ms = 10000, std::size_t strangers_max = 0,
                 const std::string& address = "local://")
      : size(ranks),
        key(random_hex(32)),
        jobs({.size = ranks,
              .key = key,
              .address = address,
              .handshake_timeout_ms = handshake_timeout_ms,
              .strangers_max = strangers_max}) {
    jobs.start();
  }

  [[nodiscard]] options options_of(int rank) const { return options_for(jobs, rank, size, key); }

  /// All ranks join at the same time.
  std::vector<std::unique_ptr<client>> join_all() {
    std::vector<std::future<std::unique_ptr<client>>> joining;
    for (int rank = 0; rank < size; ++rank) {
      joining.push_back(std::async(std::launch::async, [this, rank] { return join(options_of(rank)); }));
    }
    std::vector<std::unique_ptr<client>> clients;
    for (auto& each : joining) clients.push_back(each.get());
    return clients;
  }

  /// Every rank joins, runs `work(client&)` in a thread of its own, and leaves. Results by rank.
  template <class Work>
  auto run(Work work) -> std::vector<decltype(work(std::declval<client&>()))> {
    std::vector<std::future<decltype(work(std::declval<client&>()))>> working;
    for (int rank = 0; rank < size; ++rank) {
      working.push_back(std::async(std::launch::async, [this, rank, &work] {
        const auto me = join(options_of(rank));
        auto result = work(*me);
        me->finalize();
        return result;
      }));
    }
    std::vector<decltype(work(std::declval<client&>()))> results;
    for (auto& each : working) results.push_back(each.get());
    return results;
  }

  int size;
  std::string key;
  server jobs;
};

/// The status and the text of the error that `join` throws; {done, ""} if it throws none.
inline std::pair<status, std::string> join_error(const options& how) {
  try {
    const auto joined = join(how);
    joined->finalize();
    return {status::done, ""};
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace rma::boot::test

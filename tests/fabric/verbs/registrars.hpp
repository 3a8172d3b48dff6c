// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stand-ins for an adapter: one that counts, and one that really keeps the pages that it was given.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "fabric/verbs/own_pages.hpp"
#include "fabric/verbs/registration_cache.hpp"

namespace rma::verbs::test {

/// Remembers what is registered. The addresses need not be memory.
class counting_registrar final : public registrar {
 public:
  std::size_t room_bytes = ~std::size_t{0};  ///< that can be registered at the same time
  std::function<bool(page_range)> refuses = [](page_range) { return false; };
  unsigned enrolled = 0;
  unsigned withdrawn = 0;
  bool confused = false;  ///< something unknown was withdrawn

  status enroll(void* at, std::size_t bytes, registration& made) noexcept override {
    const auto first = reinterpret_cast<std::uintptr_t>(at);
    if (refuses({first, first + bytes})) return status::bad_argument;
    if (bytes_now() + bytes > room_bytes) return status::out_of_memory;
    made.local_key = ++enrolled;
    made.remote_key = ~made.local_key;
    live_[made.local_key] = {first, first + bytes};
    return status::done;
  }
  void withdraw(const registration& made) noexcept override {
    confused = confused || live_.erase(made.local_key) != 1;
    ++withdrawn;
  }

  /// The ranges that are registered now, in order of addresses.
  [[nodiscard]] std::vector<std::pair<std::uintptr_t, std::uintptr_t>> live() const {
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> all;
    for (const auto& [key, pages] : live_) all.emplace_back(pages.first, pages.last);
    std::sort(all.begin(), all.end());
    return all;
  }
  [[nodiscard]] std::size_t bytes_now() const {
    std::size_t sum = 0;
    for (const auto& [key, pages] : live_) sum += pages.bytes();
    return sum;
  }
  [[nodiscard]] bool knows(const registration_cache::entry& e) const {
    const auto found = live_.find(e.keys().local_key);
    return found != live_.end() && found->second == e.pages();
  }

 private:
  std::map<std::uint32_t, page_range> live_;
};

/// Keeps references to the pages in a pipe, as an adapter keeps pinned pages: what is read from it is what these pages
/// hold now, wherever the addresses lead meanwhile.
class keeping_registrar final : public registrar {
 public:
  std::function<void()> before_enroll = [] {};
  std::function<void()> after_enroll = [] {};  ///< the pages are taken, the caller does not know yet
  std::atomic<unsigned> enrolled{0};
  std::atomic<unsigned> withdrawn{0};

  status enroll(void* at, std::size_t bytes, registration& made) noexcept override {
    before_enroll();
    ::madvise(at, bytes, MADV_POPULATE_WRITE);  // an adapter's pages are to be written to
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return status::out_of_memory;
    const iovec pages{at, bytes};
    const bool kept = ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(bytes)) >= static_cast<int>(bytes) &&
                      ::vmsplice(ends[1], &pages, 1, 0) == static_cast<ssize_t>(bytes);
    ::close(ends[1]);
    if (!kept) {
      ::close(ends[0]);
      return status::bad_argument;
    }
    made.handle = at;
    made.local_key = static_cast<std::uint32_t>(ends[0]);
    ++enrolled;
    after_enroll();
    return status::done;
  }
  void withdraw(const registration& made) noexcept override {
    ::close(static_cast<int>(made.local_key));
    ++withdrawn;
  }

  /// True if what is stored at `at` is seen through the registration, at the start of each page.
  static bool reaches(const registration_cache::entry& e, void* at, std::size_t bytes) {
    const std::size_t before = reinterpret_cast<std::uintptr_t>(at) - e.pages().first;
    std::vector<std::byte> seen(before + bytes);
    int copy[2];
    if (::pipe2(copy, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    ::fcntl(copy[1], F_SETPIPE_SZ, static_cast<int>(e.pages().bytes()));
    mark(at, bytes);
    bool same = ::tee(static_cast<int>(e.keys().local_key), copy[1], e.pages().bytes(), 0) ==
                static_cast<ssize_t>(e.pages().bytes());
    same = same && ::read(copy[0], seen.data(), seen.size()) == static_cast<ssize_t>(seen.size());
    ::close(copy[0]);
    ::close(copy[1]);
    for (std::size_t i = 0; i + sizeof(std::uint64_t) <= bytes && same; i += page) {
      same = std::memcmp(seen.data() + before + i, static_cast<const std::byte*>(at) + i, sizeof(std::uint64_t)) == 0;
    }
    return same;
  }

 private:
  /// Something new in each page.
  static void mark(void* at, std::size_t bytes) {
    static std::atomic<std::uint64_t> last{0};
    for (std::size_t i = 0; i + sizeof(std::uint64_t) <= bytes; i += page) {
      const std::uint64_t value = ++last;
      std::memcpy(static_cast<std::byte*>(at) + i, &value, sizeof value);
    }
  }
};

}  // namespace rma::verbs::test

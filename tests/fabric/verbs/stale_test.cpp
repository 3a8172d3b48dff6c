// SPDX-License-Identifier: Apache-2.0
// Goal: what acquire() gives always reaches the memory that is at these addresses now, whatever has been unmapped,
// moved and mapped anew before, by whatever thread; and nobody who frees memory ever waits for somebody who waits for
// it. Method: registrations that really keep their pages, so that a stale one is seen: what is stored now does not
// appear in it. Threads take turns at the cache, as under the progress lock, and free memory whenever they like.
#include <malloc.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "fabric/verbs/registrars.hpp"
#include "fabric/verbs/registration_cache.hpp"
#include "sanitizers.hpp"
#include "skip.hpp"

using namespace rma;
using namespace rma::verbs;
using namespace rma::verbs::test;

namespace {

constexpr registration_cache::limits few{std::size_t{1} << 30, 16};  // an entry takes a descriptor here
constexpr std::size_t blocks_max = 8;

constexpr bool heap_is_libc = !rma::test::address_sanitizer && !rma::test::thread_sanitizer;

void* map(std::size_t pages, void* at = nullptr) {
  const int fixed = at != nullptr ? MAP_FIXED : 0;
  return ::mmap(at, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
}

/// Between an unmapping and a mapping of ours, an allocator may have taken the addresses.
bool map_unless_taken(std::size_t pages, void* at) {
  return ::mmap(at, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
         at;
}

bool unmap_and_map(std::size_t pages, void* at) {
  return ::munmap(at, pages * page) == 0 && map_unless_taken(pages, at);
}

/// A cache, and who may call it.
struct shared_cache {
  keeping_registrar adapter;
  registration_cache cache{adapter, few};
  std::mutex turn;
  std::atomic<unsigned> stale{0};

  /// Acquiring waits for changes under way, but not for ever: then it registers for one use. Where registrations are
  /// counted, that must not happen, however slow the machine.
  void hear() {
    while (!cache.catch_up()) continue;
  }
  /// Communicates from a buffer: false if what was acquired is not the buffer's memory.
  bool use(void* at, std::size_t bytes) {
    std::unique_lock lock(turn);
    auto* const e = cache.acquire(at, bytes);
    lock.unlock();
    const bool fresh = e != nullptr && keeping_registrar::reaches(*e, at, bytes);
    if (!fresh) ++stale;
    lock.lock();
    if (e != nullptr) cache.release(e);
    return fresh;
  }
};

/// malloc's thresholds, which otherwise grow with what is freed.
class fixed_thresholds {
 public:
  fixed_thresholds(int trim_bytes, int mmap_bytes) { set(trim_bytes, mmap_bytes); }
  ~fixed_thresholds() { set(128 << 10, 128 << 10); }
  fixed_thresholds(const fixed_thresholds&) = delete;
  fixed_thresholds& operator=(const fixed_thresholds&) = delete;

 private:
  static void set(int trim_bytes, int mmap_bytes) {
    ::mallopt(M_TRIM_THRESHOLD, trim_bytes);
    ::mallopt(M_MMAP_THRESHOLD, mmap_bytes);
  }
};

/// Runs `work(index)` in so many threads at once.
template <class Work>
void in_threads(unsigned count, Work work) {
  std::barrier start(static_cast<std::ptrdiff_t>(count));
  std::vector<std::thread> all;
  for (unsigned i = 0; i < count; ++i) {
    all.emplace_back([&start, &work, i] {
      start.arrive_and_wait();
      work(i);
    });
  }
  for (std::thread& t : all) t.join();
}

}  // namespace

TEST_CASE("memory that is mapped anew at the same addresses is registered anew", "[fabric][verbs][stale]") {
  shared_cache s;
  if (s.cache.obstacle() != nullptr) return rma::test::skip(s.cache.obstacle());
  void* const at = map(8);
  const auto part = [&](std::size_t index) { return static_cast<std::byte*>(at) + index * page; };
  REQUIRE(s.use(at, 8 * page));
  REQUIRE(s.use(at, 8 * page));
  REQUIRE(s.adapter.enrolled == 1);
  unsigned expected = 1;
  for (int turn = 0; turn < 200; ++turn) {
    CAPTURE(turn);
    const int how = turn % 7;
    if (how == 0) REQUIRE(unmap_and_map(8, at));
    if (how == 1) REQUIRE(map(8, at) == at);
    if (how == 2) REQUIRE(map(1, part(5)) == part(5));
    if (how == 3) REQUIRE(::madvise(part(2), page, MADV_DONTNEED) == 0);
    if (how == 4) REQUIRE(unmap_and_map(1, part(7)));
    if (how == 5) {
      void* const elsewhere = map(2);
      std::memset(elsewhere, 1, 2 * page);
      REQUIRE(::mremap(elsewhere, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
    }
    if (how == 6) {
      void* elsewhere = map(2);
      elsewhere = ::mremap(at, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere);
      const bool back = map_unless_taken(2, at);
      REQUIRE(elsewhere != MAP_FAILED);
      REQUIRE(back);
      ::munmap(elsewhere, 2 * page);
    }
    s.hear();
    REQUIRE(s.use(at, 8 * page));
    REQUIRE(s.adapter.enrolled == ++expected);
    REQUIRE(s.use(part(1), 6 * page));
    REQUIRE(s.adapter.enrolled == expected);
  }
  CHECK(s.cache.counts().invalidations == 200);
  CHECK(s.adapter.withdrawn == 200);
  ::munmap(at, 8 * page);
  s.hear();
  CHECK(s.cache.counts().bytes == 0);
  CHECK(s.adapter.withdrawn == 201);
}

// Between an unmapping and its event another thread may get the same addresses: the kernel likes to give them again.
TEST_CASE("threads that unmap while others map", "[fabric][verbs][stale]") {
  shared_cache s;
  if (s.cache.obstacle() != nullptr) return rma::test::skip(s.cache.obstacle());
  const unsigned threads = GENERATE(2U, 8U);
  in_threads(threads, [&s](unsigned) {
    for (int turn = 0; turn < 300; ++turn) {
      void* const at = map(16);
      s.use(at, 16 * page);
      ::munmap(at, 16 * page);
    }
  });
  CHECK(s.stale == 0);
  CHECK(s.cache.counts().entries <= few.entries);
}

TEST_CASE("blocks of the heap, small and large, freed and grown", "[fabric][verbs][stale]") {
  shared_cache s;
  if (s.cache.obstacle() != nullptr) return rma::test::skip(s.cache.obstacle());
  const auto seed = GENERATE(take(2, random(1U, 1U << 30)));
  CAPTURE(seed);
  const unsigned threads = GENERATE(1U, 4U);
  in_threads(threads, [&](unsigned index) {
    std::mt19937 random(seed + index);
    struct block {
      void* at;
      std::size_t bytes;
    };
    std::vector<block> blocks;
    const auto size = [&random] {
      const std::size_t most = std::size_t{1} << (5 + random() % 15);  // to 512 KiB: above what malloc maps by itself
      return 8 + random() % most;
    };
    for (int turn = 0; turn < 500; ++turn) {
      if (blocks.size() < blocks_max) {
        const std::size_t bytes = size();
        blocks.push_back({std::malloc(bytes), bytes});
      }
      block& b = blocks[random() % blocks.size()];
      s.use(b.at, b.bytes);
      const auto what = random() % 4;
      if (what == 0) {
        const std::size_t bytes = size();
        b = {std::realloc(b.at, bytes), bytes};  // NOLINT: a failure ends the test
        s.use(b.at, b.bytes);
      } else if (what == 1) {
        std::free(b.at);
        b = blocks.back();
        blocks.pop_back();
      }
    }
    for (const block& b : blocks) std::free(b.at);
  });
  CHECK(s.stale == 0);
}

TEST_CASE("a large block that moves when it grows", "[fabric][verbs][stale]") {
  shared_cache s;
  if (s.cache.obstacle() != nullptr) return rma::test::skip(s.cache.obstacle());
  const fixed_thresholds guard(128 << 10, 128 << 10);
  std::size_t bytes = std::size_t{1} << 18;
  void* at = std::malloc(bytes);
  unsigned moved = 0;
  for (int turn = 0; turn < 100; ++turn) {
    REQUIRE(s.use(at, bytes));
    const std::size_t next = bytes >= (std::size_t{1} << 19) ? std::size_t{1} << 18 : bytes + 5 * page;
    // Something lies where the block would grow.
    const auto end = reinterpret_cast<std::uintptr_t>(at) + ::malloc_usable_size(at);
    void* const wall = ::mmap(reinterpret_cast<void*>((end + page - 1) / page * page), page, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    void* const to = std::realloc(at, next);
    if (wall != MAP_FAILED) ::munmap(wall, page);
    REQUIRE(to != nullptr);
    moved += to != at ? 1 : 0;
    at = to;
    bytes = next;
    REQUIRE(s.use(at, bytes));
  }
  CHECK((moved > 0 || !heap_is_libc));
  std::free(at);
}

// A merged registration may reach into memory that its neighbors' owner gives back at that moment.
TEST_CASE("memory that is unmapped while it is registered", "[fabric][verbs][stale]") {
  shared_cache s;
  if (s.cache.obstacle() != nullptr) return rma::test::skip(s.cache.obstacle());
  void* const at = map(16);
  const auto part = [&](std::size_t index) { return static_cast<std::byte*>(at) + index * page; };
  const bool refilled = GENERATE(true, false);
  const bool pages_taken = GENERATE(true, false);
  REQUIRE(s.use(part(0), 4 * page));
  bool first = true;
  (pages_taken ? s.adapter.after_enroll : s.adapter.before_enroll) = [&] {
    if (!std::exchange(first, false)) return;
    ::munmap(part(0), 2 * page);
    if (refilled) map(2, part(0));
  };
  REQUIRE(s.use(part(2), 6 * page));  // with the others: 8 pages
  REQUIRE_FALSE(first);
  if (!refilled && !map_unless_taken(2, part(0))) return rma::test::skip("somebody else has mapped the same addresses");
  CHECK(s.use(part(0), 4 * page));
  CHECK(s.use(part(0), 8 * page));
  ::munmap(at, 16 * page);
}

TEST_CASE("memory that changes while it is in use", "[fabric][verbs][stale]") {
  shared_cache s;
  if (s.cache.obstacle() != nullptr) return rma::test::skip(s.cache.obstacle());
  void* const at = map(8);
  auto* const e = s.cache.acquire(at, 8 * page);
  REQUIRE(e != nullptr);
  REQUIRE(unmap_and_map(8, at));
  auto* const anew = s.cache.acquire(at, page);
  REQUIRE(anew != e);
  CHECK(keeping_registrar::reaches(*anew, at, page));
  CHECK(s.adapter.withdrawn == 0);
  s.cache.release(e);
  CHECK(s.adapter.withdrawn == 1);
  s.cache.release(anew);
  CHECK(s.adapter.withdrawn == 1);
  ::munmap(at, 8 * page);
}

TEST_CASE("memory that others can change is registered for one use", "[fabric][verbs][stale]") {
  shared_cache s;
  if (s.cache.obstacle() != nullptr) return rma::test::skip(s.cache.obstacle());
  const int fd = ::memfd_create("stale_test", MFD_CLOEXEC);
  REQUIRE(::ftruncate(fd, static_cast<off_t>(8 * page)) == 0);
  const own_pages pages(8, MAP_SHARED, fd);
  for (unsigned turn = 1; turn <= 3; ++turn) {
    CHECK(s.use(pages.at(), pages.bytes()));
    CHECK(s.adapter.withdrawn == turn);
    REQUIRE(::ftruncate(fd, 0) == 0);
    REQUIRE(::ftruncate(fd, static_cast<off_t>(8 * page)) == 0);
  }
  ::close(fd);
  CHECK(s.cache.counts().entries == 0);
}

TEST_CASE("two caches of one process: the first that has a page keeps it", "[fabric][verbs][stale]") {
  shared_cache one;
  if (one.cache.obstacle() != nullptr) return rma::test::skip(one.cache.obstacle());
  shared_cache two;
  void* const at = map(8);
  for (int turn = 0; turn < 50; ++turn) {
    CAPTURE(turn);
    shared_cache& first = turn % 2 == 0 ? one : two;
    shared_cache& second = turn % 2 == 0 ? two : one;
    first.hear();
    second.hear();
    REQUIRE(first.use(at, 8 * page));
    REQUIRE(second.use(at, 8 * page));
    REQUIRE(first.use(at, 8 * page));
    CHECK(first.cache.counts().entries == 1);
    CHECK(second.cache.counts().entries == 0);
    // The first hears of this after the second has taken the pages over, and must not end its watch.
    REQUIRE(unmap_and_map(8, at));
    second.hear();
    REQUIRE(second.use(at, 8 * page));
    first.hear();
    CHECK(first.cache.counts().entries == 0);
    CHECK(second.cache.counts().entries == 1);
    REQUIRE(unmap_and_map(8, at));
    second.hear();
    REQUIRE(second.use(at, 8 * page));
    second.cache.invalidate(at, 8 * page);
  }
  ::munmap(at, 8 * page);
}

// The pipe's pages are not pinned: a fork would part them from the parent's. So here registrations are only counted.
TEST_CASE("a child can do nothing to its parent's registrations, and does not wait", "[fabric][verbs][stale]") {
  counting_registrar adapter;
  registration_cache cache(adapter, few);
  if (cache.obstacle() != nullptr) return rma::test::skip(cache.obstacle());
  const own_pages pages(9);
  void* const at = pages.at();
  cache.release(cache.acquire(at, 8 * page));
  cache.release(cache.acquire(pages.at(8), page));
  std::atomic<bool> over = false;
  std::thread other([&] {  // events are being read while the process forks
    while (!over) ::madvise(pages.at(8), page, MADV_DONTNEED);
  });
  int worst = 0;
  for (int turn = 0; turn < 20; ++turn) {
    auto* const e = cache.acquire(at, 8 * page);
    cache.release(cache.acquire(pages.at(8), page));
    const unsigned withdrawn = adapter.withdrawn;
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      int said = cache.acquire(at, page) == nullptr ? 0 : 1;
      cache.invalidate(at, page);
      cache.release(e);
      cache.catch_up();
      ::munmap(at, 4 * page);
      cache.~registration_cache();
      if (adapter.withdrawn != withdrawn) said = 2;
      ::_exit(said);
    }
    cache.release(e);
    int how = 0;
    ::waitpid(child, &how, 0);
    worst = std::max(worst, how);
  }
  over = true;
  other.join();
  CHECK(worst == 0);
  CHECK(cache.counts().failures == 0);
  cache.release(cache.acquire(at, 8 * page));
  const std::uint64_t hits = cache.counts().hits;
  cache.release(cache.acquire(at, 8 * page));
  CHECK(cache.counts().hits == hits + 1);
}

namespace {

/// Frees and takes memory in each call, as libibverbs does.
class allocating_registrar final : public registrar {
 public:
  status enroll(void*, std::size_t bytes, registration& made) noexcept override {
    made.handle = std::malloc(64 + bytes % 4096);
    return status::done;
  }
  void withdraw(const registration& made) noexcept override {
    void* const large = std::malloc(300'000);
    std::memset(large, 1, 300'000);
    std::free(made.handle);
    std::free(large);
  }
};

}  // namespace

TEST_CASE("freeing trims the heap under everybody's hands, and nobody waits for ever", "[fabric][verbs][stale]") {
  allocating_registrar adapter;
  const fixed_thresholds guard(4096, 256 << 10);  // each free of the last block gives pages back
  registration_cache cache(adapter, {std::size_t{4} << 20, 64});
  if (cache.obstacle() != nullptr) return rma::test::skip(cache.obstacle());
  std::mutex turn;
  in_threads(6, [&](unsigned index) {
    std::mt19937 random(index);
    for (int i = 0; i < 1000; ++i) {
      const std::size_t bytes = 100 + random() % (random() % 4 == 0 ? 400'000 : 60'000);
      void* const at = std::malloc(bytes);
      std::memset(at, 1, bytes);
      std::unique_lock lock(turn);
      auto* const e = cache.acquire(at, bytes);
      if (random() % 2 == 0) lock.unlock();
      if (random() % 8 == 0) std::free(std::malloc(200'000));
      if (!lock.owns_lock()) lock.lock();
      cache.release(e);
      if (random() % 2 == 0) lock.unlock();
      std::free(at);
    }
    ::malloc_trim(0);
  });
  CHECK(cache.counts().failures == 0);
  CHECK((cache.counts().invalidations > 0 || !heap_is_libc));
  CHECK(cache.counts().hits + cache.counts().misses == 6000);
}

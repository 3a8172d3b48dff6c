// SPDX-License-Identifier: Apache-2.0
// Goal: pages are promoted only where that is safe, and a refusal says why; contents, addresses and what other threads
// write stay, both ways, also where the system has no memory for private pages.
//
// Method: pages of every kind that must be refused; then the way there and back, seen through the segment. A thread
// that counts in every page while they come back; a limit on private memory. Each way back is followed by another user
// of the segment, who must not be seen.
//
// Break: copy back after the old pages are gone, while a thread counts; give back the part of the segment although its
// pages stay; move private pages to where they belong after they are written to; leave the hole that the system made
// before it found no memory.
#include "fabric/shm/promote.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fabric/shm/node.hpp"
#include "rma/rma.hpp"
#include "skip.hpp"

using namespace rma;
using namespace rma::shm;
using namespace rma::shm::test;

namespace {

/// From now on the system has no memory for private pages in the place of others, which it has taken away already when
/// it finds out (as Linux before 6.12 does).
bool none_in_place = false;

}  // namespace

extern "C" void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (none_in_place && (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_FIXED) != 0) {
    ::munmap(at, bytes);
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

namespace {

constexpr std::size_t page = 4096;

/// Pages of the test's own.
class pages_of_kind {
 public:
  explicit pages_of_kind(std::size_t bytes, int protection = PROT_READ | PROT_WRITE,
                         int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1)
      : bytes_(bytes), at_(::mmap(nullptr, bytes, protection, flags, fd, 0)) {
    REQUIRE(at_ != MAP_FAILED);
  }
  ~pages_of_kind() { ::munmap(at_, bytes_); }
  pages_of_kind(const pages_of_kind&) = delete;
  pages_of_kind& operator=(const pages_of_kind&) = delete;

  [[nodiscard]] std::byte* at() const { return static_cast<std::byte*>(at_); }
  [[nodiscard]] page_range range() const { return {at(), bytes_}; }

 private:
  std::size_t bytes_;
  void* at_;
};

void fill(std::byte* at, std::size_t bytes, unsigned salt) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>((i * 31 + i / page + salt) & 0xff);
}

bool filled(const std::byte* at, std::size_t bytes, unsigned salt) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] != static_cast<std::byte>((i * 31 + i / page + salt) & 0xff)) return false;
  }
  return true;
}

bool says(const std::string& text, const char* word) {
  INFO(text);
  const bool found = text.find(word) != std::string::npos;
  CHECK(found);
  return found;
}

/// How many mappings these pages are part of.
std::size_t mappings_of(page_range pages) {
  const auto first = reinterpret_cast<std::uintptr_t>(pages.at);
  std::size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream in(line);
    std::uintptr_t from = 0, to = 0;
    char dash = 0;
    in >> std::hex >> from >> dash >> to;
    count += from < first + pages.bytes && to > first ? 1 : 0;
  }
  return count;
}

/// A thread that counts in the last word of each page until the object's end, and sees whether all that it wrote is
/// there.
class counting_thread {
 public:
  explicit counting_thread(page_range pages) : pages_(pages), thread_([this] { count(); }) { rounds_.wait(0); }
  ~counting_thread() { stop(); }
  counting_thread(const counting_thread&) = delete;
  counting_thread& operator=(const counting_thread&) = delete;

  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// The number of rounds, which the words must be now.
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }

 private:
  std::uint64_t& word(std::size_t at) const {
    return *reinterpret_cast<std::uint64_t*>(pages_.at + at + page - sizeof(std::uint64_t));
  }
  void count() {
    for (std::size_t at = 0; at < pages_.bytes; at += page) word(at) = 0;
    for (std::uint64_t round = 0; !over_; ++round) {
      for (std::size_t at = 0; at < pages_.bytes; at += page) {
        lost_ += word(at) != round ? 1 : 0;
        word(at) = round + 1;
        asm volatile("" ::: "memory");  // each word is written, and read again in the next round
      }
      rounds_ = round + 1;
      rounds_.notify_one();
    }
  }

  page_range pages_;
  std::atomic<bool> over_ = false;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::uint64_t lost_ = 0;
  std::thread thread_;
};

/// `filled`, but for what a counting thread has left there.
bool counted(const std::byte* at, std::size_t bytes, unsigned salt, std::uint64_t rounds) {
  std::vector<std::byte> expected(bytes);
  fill(expected.data(), bytes, salt);
  for (std::size_t i = page; i <= bytes; i += page) {
    std::memcpy(expected.data() + i - sizeof rounds, &rounds, sizeof rounds);
  }
  return std::memcmp(at, expected.data(), bytes) == 0;
}

/// No more memory of a kind for this process than it has, and a little for the library.
class memory_limited {
 public:
  static constexpr std::size_t room_bytes = std::size_t{1} << 20;

  memory_limited(__rlimit_resource resource, const std::string& in_status) : resource_(resource) {
    std::ifstream in("/proc/self/status");
    rlim_t kib = 0;
    for (std::string word; in >> word && word != in_status + ":";) {}
    in >> kib;
    REQUIRE(kib != 0);
    REQUIRE(::getrlimit(resource_, &before_) == 0);
    const rlimit now{kib * 1024 + room_bytes, before_.rlim_max};
    REQUIRE(::setrlimit(resource_, &now) == 0);
  }
  ~memory_limited() { ::setrlimit(resource_, &before_); }
  memory_limited(const memory_limited&) = delete;
  memory_limited& operator=(const memory_limited&) = delete;

 private:
  __rlimit_resource resource_;
  rlimit before_{};
};
/// For mappings that are made elsewhere, and for those that take the place of others.
class no_private_memory {
 public:
  no_private_memory() { none_in_place = true; }
  ~no_private_memory() { none_in_place = false; }
  no_private_memory(const no_private_memory&) = delete;
  no_private_memory& operator=(const no_private_memory&) = delete;

 private:
  memory_limited elsewhere_{RLIMIT_DATA, "VmData"};
};
memory_limited no_address_space() { return {RLIMIT_AS, "VmSize"}; }

}  // namespace

TEST_CASE("whole pages around a range", "[fabric][shm][promote]") {
  const auto around = [](std::size_t at, std::size_t bytes) {
    const page_range r = pages_around(reinterpret_cast<void*>(at), bytes);
    return std::pair(reinterpret_cast<std::size_t>(r.at), r.bytes);
  };
  CHECK(around(8 * page, page) == std::pair(8 * page, page));
  CHECK(around(8 * page + 1, page) == std::pair(8 * page, 2 * page));
  CHECK(around(8 * page + 1, page - 1) == std::pair(8 * page, page));
  CHECK(around(8 * page - 1, 2) == std::pair(7 * page, 2 * page));
  CHECK(around(8 * page, 0).second == 0);
}

TEST_CASE("what must not be promoted, and why", "[fabric][shm][promote]") {
  SECTION("nothing") { says(promotion_obstacle({}), "empty"); }
  SECTION("read-only pages") {
    const pages_of_kind pages(page, PROT_READ);
    says(promotion_obstacle(pages.range()), "not private and writable");
  }
  SECTION("shared pages") {
    const pages_of_kind pages(page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    says(promotion_obstacle(pages.range()), "not private and writable");
  }
  SECTION("pages of a file") {
    const int fd = ::memfd_create("promote_test", MFD_CLOEXEC);
    REQUIRE(::ftruncate(fd, page) == 0);
    const pages_of_kind pages(page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
    says(promotion_obstacle(pages.range()), "belong to a file");
    ::close(fd);
  }
  SECTION("the stack") { says(promotion_obstacle(pages_around(__builtin_frame_address(0), 1)), "stack"); }
  SECTION("locked pages") {  // by system call: the address sanitizer makes mlock do nothing
    const pages_of_kind pages(page);
    if (::syscall(SYS_mlock, pages.at(), page) != 0) return rma::test::skip("no memory may be locked here");
    says(promotion_obstacle(pages.range()), "locked");
  }
  SECTION("a hole") {
    const pages_of_kind pages(3 * page);
    REQUIRE(::munmap(pages.at() + page, page) == 0);
    says(promotion_obstacle(pages.range()), "not mapped");
  }
  SECTION("one bad page at the end") {
    const pages_of_kind pages(3 * page);
    REQUIRE(::mprotect(pages.at() + 2 * page, page, PROT_READ) == 0);
    says(promotion_obstacle(pages.range()), "not private and writable");
    CHECK(promotion_obstacle({pages.at(), 2 * page}).empty());
  }
  SECTION("a process with threads") {
    const pages_of_kind pages(page);
    std::atomic<bool> over = false;
    std::thread other([&] { over.wait(false); });
    says(promotion_obstacle(pages.range()), "2 threads");
    over = true;
    over.notify_one();
    other.join();
  }
}

TEST_CASE("promoted pages keep contents and address, are shared, and come back", "[fabric][shm][promote]") {
  const std::size_t bytes = GENERATE(std::size_t{page}, 7 * page, (std::size_t{9} << 20) + page);  // chunks of 4 MiB
  CAPTURE(bytes);
  lone_board alone;
  constexpr std::size_t offset = 2 * page;
  const pages_of_kind pages(bytes);
  REQUIRE(promotion_obstacle(pages.range()).empty());
  REQUIRE(alone.node->populate(offset, bytes) == status::done);
  const std::byte* const common = alone.node->segment(0) + offset;
  fill(pages.at(), bytes, 1);

  REQUIRE(promote(*alone.node, pages.range(), offset) == "");
  CHECK(filled(pages.at(), bytes, 1));
  CHECK(filled(common, bytes, 1));
  fill(pages.at(), bytes, 2);  // the user's stores are everybody's
  CHECK(filled(common, bytes, 2));
  fill(alone.node->segment(0) + offset, bytes, 3);
  CHECK(filled(pages.at(), bytes, 3));
  says(promotion_obstacle(pages.range()), "not private and writable");  // once is enough

  CHECK(demote(*alone.node, pages.range(), offset));
  CHECK(filled(pages.at(), bytes, 3));
  fill(pages.at(), bytes, 4);  // private again
  CHECK(filled(common, bytes, 3));
  CHECK(promotion_obstacle(pages.range()).empty());
}

TEST_CASE("a forked child has promoted pages of its own", "[fabric][shm][promote]") {
  lone_board alone;
  const std::size_t bytes = 40 * page;
  const pages_of_kind pages(bytes);
  fill(pages.at(), bytes, 1);
  const std::size_t offset = 7 * page;
  REQUIRE(alone.node->populate(offset, bytes) == status::done);
  REQUIRE(promote(*alone.node, pages.range(), offset) == "");
  int go[2];
  REQUIRE(::pipe(go) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::byte now{};
    (void)!::read(go[0], &now, 1);  // the other has written meanwhile
    bool own = filled(pages.at(), bytes, 1);
    fill(pages.at(), bytes, 3);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      fill(pages.at(), bytes, 4);
      ::_exit(0);
    }
    int ended = 0;
    own = ::waitpid(grandchild, &ended, 0) == grandchild && own;
    own = own && filled(pages.at(), bytes, 3);
    ::_exit(own ? 0 : 1);
  }
  fill(pages.at(), bytes, 2);
  REQUIRE(::write(go[1], "x", 1) == 1);
  int ended = 0;
  REQUIRE(::waitpid(child, &ended, 0) == child);
  CHECK(ended == 0);
  CHECK(filled(pages.at(), bytes, 2));
  CHECK(filled(alone.node->segment(0) + offset, bytes, 2));  // still shared
  ::close(go[0]);
  ::close(go[1]);
}

TEST_CASE("neighbors of promoted pages are left alone", "[fabric][shm][promote]") {
  lone_board alone;
  const pages_of_kind pages(3 * page);
  fill(pages.at(), 3 * page, 5);
  REQUIRE(alone.node->populate(0, page) == status::done);
  REQUIRE(promote(*alone.node, {pages.at() + page, page}, 0) == "");
  CHECK(filled(pages.at(), 3 * page, 5));
  CHECK(promotion_obstacle({pages.at(), page}).empty());
  CHECK(promotion_obstacle({pages.at() + 2 * page, page}).empty());
  CHECK(demote(*alone.node, {pages.at() + page, page}, 0));
  CHECK(filled(pages.at(), 3 * page, 5));
}

TEST_CASE("pages that came back are one mapping with their neighbors", "[fabric][shm][promote]") {
  lone_board alone;
  const pages_of_kind pages(16 * page);
  fill(pages.at(), 16 * page, 11);
  const std::size_t before = mappings_of(pages.range());
  REQUIRE(alone.node->populate(0, page) == status::done);
  for (std::size_t at = page; at < 15 * page; at += 2 * page) {
    REQUIRE(promote(*alone.node, {pages.at() + at, page}, 0) == "");
    CHECK(demote(*alone.node, {pages.at() + at, page}, 0));
  }
  CHECK(filled(pages.at(), 16 * page, 11));
  CHECK(mappings_of(pages.range()) == before);
}

TEST_CASE("a refused promotion changes nothing", "[fabric][shm][promote]") {
  lone_board alone;
  const pages_of_kind pages(2 * page);
  fill(pages.at(), 2 * page, 6);
  REQUIRE(::mprotect(pages.at() + page, page, PROT_READ) == 0);
  REQUIRE(alone.node->populate(0, 2 * page) == status::done);
  CHECK_FALSE(promote(*alone.node, pages.range(), 0).empty());
  CHECK(filled(pages.at(), 2 * page, 6));
  pages.at()[0] = std::byte{1};
  CHECK(alone.node->segment(0)[0] == std::byte{0});
}

TEST_CASE("pages come back beside a thread that writes to them", "[fabric][shm][promote]") {
  const std::map<std::string, std::string> larger{{"RMA_SEGMENT_BYTES", "64M"}};
  lone_board alone(larger);
  constexpr std::size_t bytes = std::size_t{32} << 20;
  constexpr std::size_t offset = 3 * page;
  for (int repeat = 0; repeat < 8; ++repeat) {
    CAPTURE(repeat);
    const pages_of_kind pages(bytes);
    fill(pages.at(), bytes, 7);
    REQUIRE(alone.node->populate(offset, bytes) == status::done);
    REQUIRE(promote(*alone.node, pages.range(), offset) == "");
    counting_thread other(pages.range());
    CHECK_FALSE(demote(*alone.node, pages.range(), offset));
    fill(alone.node->segment(0) + offset, bytes, 8);  // seen by nobody
    other.stop();
    CHECK(other.lost() == 0);
    CHECK(counted(pages.at(), bytes, 7, other.rounds()));
    CHECK(filled(alone.node->segment(0) + offset, bytes, 8));
  }
}

TEST_CASE("a page that is dropped after it came back beside a thread is zero", "[fabric][shm][promote]") {
  lone_board alone;
  const pages_of_kind pages(2 * page);
  fill(pages.at(), 2 * page, 9);
  REQUIRE(alone.node->populate(0, 2 * page) == status::done);
  REQUIRE(promote(*alone.node, pages.range(), 0) == "");
  counting_thread other(pages.range());
  CHECK_FALSE(demote(*alone.node, pages.range(), 0));
  other.stop();
  CHECK(counted(pages.at(), 2 * page, 9, other.rounds()));
  REQUIRE(::madvise(pages.at(), 2 * page, MADV_DONTNEED) == 0);
  CHECK(std::all_of(pages.at(), pages.at() + 2 * page, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_CASE("without memory for private pages the shared ones stay", "[fabric][shm][promote]") {
  const bool beside_a_thread = GENERATE(false, true);
  CAPTURE(beside_a_thread);
  lone_board alone;
  constexpr std::size_t bytes = 4 * memory_limited::room_bytes;
  const pages_of_kind pages(bytes);
  REQUIRE(alone.node->populate(0, bytes) == status::done);
  fill(pages.at(), bytes, 10);
  REQUIRE(promote(*alone.node, pages.range(), 0) == "");
  std::uint64_t rounds = 0;
  bool came_back = true;
  const auto come_back = [&] {
    const no_private_memory limit;
    came_back = demote(*alone.node, pages.range(), 0);
  };
  if (beside_a_thread) {
    counting_thread other(pages.range());
    come_back();
    other.stop();
    CHECK(other.lost() == 0);
    rounds = other.rounds();
  } else {
    come_back();
  }
  CHECK_FALSE(came_back);
  CHECK((beside_a_thread ? counted(pages.at(), bytes, 10, rounds) : filled(pages.at(), bytes, 10)));
}

TEST_CASE("no later window shares memory that was promoted", "[fabric][shm][promote]") {
  enum class at_free { alone, beside_a_thread, without_memory };
  const at_free how = GENERATE(at_free::alone, at_free::beside_a_thread, at_free::without_memory);
  CAPTURE(static_cast<int>(how));
  Config config;
  config.environment = false;
  config.settings = {{"RMA_SEGMENT_BYTES", "32M"}};
  Runtime rt(config);
  constexpr std::size_t bytes = 4 * memory_limited::room_bytes;
  const pages_of_kind pages(bytes);
  fill(pages.at(), bytes, 11);
  Hints promoted;
  promoted.promote = true;
  auto window = Window<std::byte>::create(rt.world(), {pages.at(), bytes}, promoted);
  REQUIRE(window.promoted());
  std::uint64_t rounds = 0;
  if (how == at_free::alone) {
    window.free();
  } else if (how == at_free::without_memory) {
    const no_private_memory limit;
    window.free();
  } else {
    counting_thread other(pages.range());
    window.free();
    other.stop();
    CHECK(other.lost() == 0);
    rounds = other.rounds();
  }
  auto next = Window<std::byte>::allocate(rt.world(), 2 * bytes);
  std::fill_n(next.local().data(), 2 * bytes, std::byte{0xaa});
  CHECK((how == at_free::beside_a_thread ? counted(pages.at(), bytes, 11, rounds) : filled(pages.at(), bytes, 11)));
  next.free();
}

TEST_CASE("without address space for shared pages nothing is promoted", "[fabric][shm][promote]") {
  lone_board alone;
  constexpr std::size_t bytes = 4 * memory_limited::room_bytes;
  const pages_of_kind pages(bytes);
  REQUIRE(alone.node->populate(0, bytes) == status::done);
  fill(pages.at(), bytes, 12);
  std::string why;
  {
    const memory_limited limit = no_address_space();
    why = promote(*alone.node, pages.range(), 0);
  }
  says(why, "refuses to replace");
  std::fill_n(alone.node->segment(0), bytes, std::byte{0});
  CHECK(filled(pages.at(), bytes, 12));
}

// SPDX-License-Identifier: Apache-2.0
// Goal: pages are promoted only where that is safe, and a refusal says why; contents and addresses stay, both ways.
// Method: pages of every kind that must be refused; then the way there and back, seen through the segment.
#include "fabric/shm/promote.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>
#include <vector>

#include "fabric/shm/node.hpp"
#include "skip.hpp"

using namespace rma;
using namespace rma::shm;
using namespace rma::shm::test;

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
  const std::byte* const shared = alone.node->segment(0) + offset;
  fill(pages.at(), bytes, 1);

  REQUIRE(promote(*alone.node, pages.range(), offset) == "");
  CHECK(filled(pages.at(), bytes, 1));
  CHECK(filled(shared, bytes, 1));
  fill(pages.at(), bytes, 2);  // the user's stores are everybody's
  CHECK(filled(shared, bytes, 2));
  fill(alone.node->segment(0) + offset, bytes, 3);
  CHECK(filled(pages.at(), bytes, 3));
  says(promotion_obstacle(pages.range()), "not private and writable");  // once is enough

  demote(*alone.node, pages.range(), offset);
  CHECK(filled(pages.at(), bytes, 3));
  fill(pages.at(), bytes, 4);  // private again
  CHECK(filled(shared, bytes, 3));
  CHECK(promotion_obstacle(pages.range()).empty());
}

TEST_CASE("neighbours of promoted pages are left alone", "[fabric][shm][promote]") {
  lone_board alone;
  const pages_of_kind pages(3 * page);
  fill(pages.at(), 3 * page, 5);
  REQUIRE(alone.node->populate(0, page) == status::done);
  REQUIRE(promote(*alone.node, {pages.at() + page, page}, 0) == "");
  CHECK(filled(pages.at(), 3 * page, 5));
  CHECK(promotion_obstacle({pages.at(), page}).empty());
  CHECK(promotion_obstacle({pages.at() + 2 * page, page}).empty());
  demote(*alone.node, {pages.at() + page, page}, 0);
  CHECK(filled(pages.at(), 3 * page, 5));
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

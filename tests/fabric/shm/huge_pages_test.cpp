// SPDX-License-Identifier: Apache-2.0
// Goal: large windows lie in huge pages, small ones and those of who does not want that do not, and what is freed is
// given back. Method: the kernel says how much of this process's shared memory is mapped by huge pages.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "fabric/shm/board.hpp"
#include "rma/rma.hpp"
#include "skip.hpp"

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t huge = rma::shm::huge_bytes;

std::size_t huge_bytes_mapped() {
  std::ifstream maps("/proc/self/smaps");
  std::size_t bytes = 0;
  for (std::string word; maps >> word;) {
    std::size_t kib = 0;
    if (word == "ShmemPmdMapped:" && maps >> kib) bytes += kib * 1024;
  }
  return bytes;
}

/// A page of shared memory becomes a huge one when asked to.
bool kernel_has_huge_pages() {
  constexpr int collapse_now = 25;
  const int fd = ::memfd_create("probe", MFD_CLOEXEC);
  void* const room = ::mmap(nullptr, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const auto first = reinterpret_cast<std::uintptr_t>(room);
  auto* const place = static_cast<std::byte*>(room) + ((first + huge - 1) / huge * huge - first);
  bool has = fd >= 0 && room != MAP_FAILED && ::ftruncate(fd, huge) == 0 &&
             ::mmap(place, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
  if (has) {
    *place = std::byte{1};
    has = ::madvise(place, huge, collapse_now) == 0;
  }
  if (room != MAP_FAILED) ::munmap(room, 2 * huge);
  if (fd >= 0) ::close(fd);
  return has;
}

rma::Config alone(const char* huge_pages) {
  rma::Config config;
  config.environment = false;
  config.settings["RMA_HUGE_PAGES"] = huge_pages;
  return config;
}

rma::Window<std::uint8_t> window_of(rma::Runtime& runtime, std::size_t bytes) {
  auto win = rma::Window<std::uint8_t>::allocate(runtime.world(), bytes);
  CHECK(std::all_of(win.local().begin(), win.local().end(), [](std::uint8_t each) { return each == 0; }));
  std::fill(win.local().begin(), win.local().end(), std::uint8_t{1});
  return win;
}

}  // namespace

TEST_CASE("large windows lie in huge pages and give them back", "[fabric][shm][huge_pages]") {
  if (!kernel_has_huge_pages()) return rma::test::skip("the kernel makes no huge pages of shared memory");
  rma::Runtime runtime(alone("on"));
  const std::size_t before = huge_bytes_mapped();
  auto one = window_of(runtime, mebibyte);
  CHECK(huge_bytes_mapped() == before + huge);
  auto seven = window_of(runtime, 7 * mebibyte);  // one half of the last page, and what every window has
  CHECK(huge_bytes_mapped() == before + 5 * huge);
  auto small = window_of(runtime, mebibyte / 2);
  CHECK(huge_bytes_mapped() == before + 5 * huge);
  one.free();
  seven.free();
  CHECK(huge_bytes_mapped() == before);
  CHECK(small.local()[0] == 1);
  small.free();
}

TEST_CASE("a segment without room for whole huge pages is used up to its end", "[fabric][shm][huge_pages]") {
  rma::Config small = alone("on");
  small.settings["RMA_SEGMENT_BYTES"] = "4M";
  rma::Runtime runtime(small);
  auto first = window_of(runtime, 4096);
  auto win = window_of(runtime, 3 * mebibyte);  // not from the second huge page on
  win.free();
  first.free();
}

TEST_CASE("no huge pages where they are not wanted", "[fabric][shm][huge_pages]") {
  rma::Runtime runtime(alone("off"));
  auto win = window_of(runtime, 4 * mebibyte);
  CHECK(huge_bytes_mapped() == 0);
  win.free();
}
